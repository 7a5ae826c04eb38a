package server_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// A recital is a model that answers with these deltas and ends normally.
type recital []lathe.Delta

func (recital) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (s recital) Generate(context.Context, *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		m := lathe.Message{Role: lathe.RoleAssistant}
		for _, d := range s {
			switch d.Kind {
			case lathe.DeltaReasoning:
				m.Parts = append(m.Parts, lathe.Reasoning{Text: d.Text})
			default:
				m.Parts = append(m.Parts, lathe.Text{Text: d.Text, Commentary: d.Kind == lathe.DeltaCommentary})
			}
			if !yield(d, nil) {
				return
			}
		}
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Reason: lathe.FinishStop, Message: m}}, nil)
	}
}

// A blank answer is an answer with the wire's normal stop, and says what it is; the run did not answer.
func TestBlankAnswersEndNormallyOnEachWire(t *testing.T) {
	t.Parallel()
	onWires(t, func(t *testing.T, client *wireClient, stream bool) {
		f := serve(t, &setting{model: recital{{Kind: lathe.DeltaReasoning, Text: "hm"}}})
		body, _ := client.codec.AppendRequest(nil, &lathe.Request{Model: "sim/demo", Messages: []lathe.Message{lathe.User("hi")}}, &wire.EncodeOptions{Stream: stream, Entry: "x"})
		a := client.send(t.Context(), f, stream, string(body))
		if a.err != nil || a.reason != lathe.FinishStop || strings.TrimSpace(a.message.Text()) != "" || !strings.Contains(a.body, `"reason":"empty_answer"`) {
			t.Fatalf("%v %s: %s", a.err, a.reason, a.body)
		}
		if got := a.header.Get("X-Lathe-Reason"); (got == "empty_answer") == stream {
			t.Errorf("X-Lathe-Reason is %q", got)
		}
		if runs := f.stored(&store.RunFilter{}); len(runs) != 1 || runs[0].Reason != lathe.ReasonEmptyAnswer {
			t.Errorf("%+v", runs)
		}
	})
}

// A relayed blank answer keeps its bytes.
func TestRelayedBlankAnswersKeepTheirBytes(t *testing.T) {
	t.Parallel()
	for how, stream := range bothWays {
		kind, answer := "application/json", `{"id":"1","object":"chat.completion","created":1,"model":"m","own":1,"choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"stop"}]}`
		if stream {
			kind, answer = "text/event-stream", "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"own\":1,\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"</think>\\n\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
		}
		chat, err := provider.OpenAI("m", &provider.Options{BaseURL: "http://models.example/v1", Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
		})})
		if err != nil {
			t.Fatal(err)
		}
		f := serve(t, &setting{model: chat, opts: func(o *server.Options) { o.Setup.Tools = nil }})
		resp, body := f.do("POST", "/v1/chat/completions", fmt.Sprintf(`{"model":"sim/x","stream":%v,"messages":[{"role":"user","content":"hi"}]}`, stream))
		if resp.StatusCode != http.StatusOK || body != answer {
			t.Errorf("%s: %d: %s\nwant %s", how, resp.StatusCode, body, answer)
		}
		want := lathe.ReasonEmptyAnswer
		if stream { // the mark was shown
			want = lathe.ReasonAnswered
		}
		if runs := f.stored(&store.RunFilter{}); len(runs) != 1 || runs[0].Reason != want {
			t.Errorf("%s: %+v", how, runs)
		}
		if got := resp.Header.Get("X-Lathe-Reason"); (got != "") == stream {
			t.Errorf("%s: X-Lathe-Reason is %q", how, got)
		}
	}
}

// A word of commentary does not continue in the answer, in a stream or whole.
func TestCommentaryAndAnswerAreApart(t *testing.T) {
	t.Parallel()
	onWires(t, func(t *testing.T, client *wireClient, stream bool) {
		f := serve(t, &setting{model: recital{{Kind: lathe.DeltaCommentary, Text: "pre"}, {Kind: lathe.DeltaText, Text: "two"}}})
		body, _ := client.codec.AppendRequest(nil, &lathe.Request{Model: "sim/demo", Messages: []lathe.Message{lathe.User("hi")}}, &wire.EncodeOptions{Stream: stream, Entry: "x"})
		if a := client.send(t.Context(), f, stream, string(body)); a.err != nil || a.message.Text() != "pre\n\ntwo" {
			t.Errorf("%v: %q", a.err, a.message.Text())
		}
	})
}

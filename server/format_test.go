package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

const sumFormat = `{"type":"json_schema","json_schema":{"name":"s","strict":true,"schema":{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"],"additionalProperties":false}}}`

// A formatServer is a model server that enforces the format of a request from the first token if the request has one: such a request
// gets an answer, one of answers after the other, and a call only if both is set and no tool has run. Without a format it gets a call and,
// after the result, text.
type formatServer struct {
	wire    lathe.Wire
	both    bool
	dialect bool // calls are text
	answers []string
	mu      sync.Mutex
	n       int
	sent    []string // what each request had
	bodies  []string
}

func (s *formatServer) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	req, err := servedWires[s.wire].ParseRequest(body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var has []string
	if len(req.Tools) > 0 || s.dialect && strings.Contains(string(body), "calculator") && !strings.Contains(string(body), "response_format") {
		has = append(has, "tools")
	}
	format := len(req.Sampling.ResponseFormat) > 0
	if format {
		has = append(has, "format")
	}
	s.sent, s.bodies = append(s.sent, strings.Join(has, "+")), append(s.bodies, string(body))
	ran := strings.Contains(strings.ReplaceAll(string(body), `\`, ""), `"result":42`)
	m := lathe.Message{Role: lathe.RoleAssistant}
	f := &lathe.Finish{Reason: lathe.FinishStop}
	switch {
	case format && (!s.both || ran):
		m.Parts = []lathe.Part{lathe.Text{Text: s.answers[min(s.n, len(s.answers)-1)]}}
		s.n++
	case ran:
		m.Parts = []lathe.Part{lathe.Text{Text: "It is 42."}}
	case s.dialect:
		m.Parts = []lathe.Part{lathe.Text{Text: "<tool_call>\n{\"name\":\"calculator\",\"arguments\":{\"expression\":\"7 + 35\"}}\n</tool_call>"}}
	default:
		m.Parts = []lathe.Part{lathe.ToolCall{ID: "toolu_1", Name: "calculator", Arguments: `{"expression":"7 + 35"}`}}
		f.Reason = lathe.FinishToolCalls
	}
	f.Message = m
	answer := wire.AppendAnswer(nil, servedWires[s.wire], &wire.Answer{AnswerHead: wire.AnswerHead{ID: "1", Model: "m", Created: 1, Request: req}, Finish: f})
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(answer))), Request: r}, nil
}

// Clients of each wire get an answer in the format that they ask for from servers that take formats beside tools, and from those that do
// not: the tool runs, the answer is the only text, and it is asked for again if it does not match.
func TestStructuredAnswersWithTools(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	destinations := []struct {
		wire                 lathe.Wire
		kind, model, dialect string
		both                 bool
	}{
		{lathe.WireOpenAIChat, "openai", "m", "", true},
		{lathe.WireOpenAIChat, "vllm", "m", "", false},
		{lathe.WireOpenAIChat, "llamacpp", "m", "", false},
		{lathe.WireOpenAIChat, "sglang", "m", "hermes", false},
		{lathe.WireResponses, "openai", "m", "", true},
		{lathe.WireResponses, "vllm", "m", "", false},
		{lathe.WireMessages, "anthropic", "claude-opus-4-6", "", true},
		{lathe.WireGemini, "gemini", "gemini-2.5-pro", "", false},
		{lathe.WireGemini, "gemini", "gemini-3-pro", "", true},
	}
	for _, d := range destinations {
		for name, c := range map[string]struct {
			answers []string
			more    int // requests
			reason  lathe.Reason
			text    string
		}{
			"right":        {[]string{`{"sum":42}`}, 0, lathe.ReasonAnswered, `{"sum":42}`},
			"right second": {[]string{`{"sum":"42"}`, `{"sum":42}`}, 1, lathe.ReasonAnswered, `{"sum":42}`},
			"never right":  {[]string{`{"sum":"42"}`}, 1, lathe.ReasonInvalidAnswer, `{"sum":"42"}`},
		} {
			t.Run(fmt.Sprint(d.wire, d.kind, d.model, d.dialect, name), func(t *testing.T) {
				t.Parallel()
				onWires(t, func(t *testing.T, client *wireClient, stream bool) {
					s := &formatServer{wire: d.wire, both: d.both, dialect: d.dialect != "", answers: c.answers}
					chat, err := provider.New(d.wire, d.model, &provider.Options{BaseURL: "http://models.example", Server: provider.Server{Kind: d.kind}, Transport: s})
					if err != nil {
						t.Fatal(err)
					}
					model := lathe.Model(chat)
					if d.dialect != "" {
						if model, err = provider.WithDialect(chat, d.dialect, nil); err != nil {
							t.Fatal(err)
						}
					}
					f := serve(t, &setting{model: model})
					body, _ := client.codec.AppendRequest(nil, &lathe.Request{Model: "sim/demo", Messages: []lathe.Message{lathe.User("What is 7 + 35?")},
						Sampling: lathe.Sampling{ResponseFormat: []byte(sumFormat)}}, &wire.EncodeOptions{Stream: stream, Entry: "x"})
					a := client.send(t.Context(), f, stream, string(body))
					if a.err != nil || a.reason != lathe.FinishStop || a.message.Text() != c.text {
						t.Fatalf("%v %s: %s", a.err, a.reason, a.body)
					}
					if strings.Contains(a.body, "It is 42") {
						t.Errorf("text before the answer: %s", a.body)
					}
					runs := f.stored(&store.RunFilter{})
					if len(runs) != 1 || runs[0].Reason != c.reason || runs[0].ToolCalls != 1 {
						t.Errorf("%d runs, the first %s after %d calls", len(runs), runs[0].Reason, runs[0].ToolCalls)
					}
					if !strings.Contains(a.body, `"reason":"`+string(c.reason)+`"`) {
						t.Errorf("no reason %s: %s", c.reason, a.body)
					}
					if got := a.header.Get("X-Lathe-Reason"); (got == string(c.reason)) != (c.reason == lathe.ReasonInvalidAnswer && !stream) {
						t.Errorf("X-Lathe-Reason is %q", got)
					}
					if strings.Contains(a.body, "response_format") {
						t.Errorf("the format is listed as dropped: %s", a.body)
					}
					want := []string{"tools", "tools", "format"}
					again := "format"
					if d.both {
						want, again = []string{"tools+format", "tools+format"}, "tools+format"
					}
					for range c.more {
						want = append(want, again)
					}
					if !slices.Equal(s.sent, want) {
						t.Errorf("the server got %q, want %q", s.sent, want)
					}
					if d.wire != lathe.WireOpenAIChat || d.dialect != "" { // a dialect has the tools in the system text
						return
					}
					// The next request goes on from what the last one sent, the loop's own requests included.
					var before, after struct{ Messages []json.RawMessage }
					readJSON(t, s.bodies[len(s.bodies)-1], &before)
					if b := client.ask(f, stream, nil, lathe.User("What is 7 + 35?"), client.back(a.message), lathe.User("Thanks.")); b.err != nil {
						t.Fatalf("%v: %s", b.err, b.body)
					}
					readJSON(t, s.bodies[len(s.bodies)-1], &after)
					for i, m := range before.Messages {
						if i >= len(after.Messages) || string(after.Messages[i]) != string(m) {
							t.Errorf("message %d was %s, and then the request is %s", i, m, s.bodies[len(s.bodies)-1])
							break
						}
					}
				})
			})
		}
	}
}

// A relayed answer keeps its bytes and is not asked for again; the run says that it does not match.
func TestRelayedAnswersAreChecked(t *testing.T) {
	t.Parallel()
	for how, stream := range bothWays {
		for text, reason := range map[string]lathe.Reason{`{"sum":42}`: lathe.ReasonAnswered, `{"sum":"42"}`: lathe.ReasonInvalidAnswer} {
			var answer string
			n := 0
			chat, err := provider.OpenAI("m", &provider.Options{BaseURL: "http://models.example/v1", Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				n++
				kind := "application/json"
				answer = fmt.Sprintf(`{"id":"1","object":"chat.completion","created":1,"model":"m","own":1,"choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}]}`, text)
				if stream {
					kind = "text/event-stream"
					answer = fmt.Sprintf("data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"own\":1,\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":%q},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", text)
				}
				return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
			})})
			if err != nil {
				t.Fatal(err)
			}
			f := serve(t, &setting{model: chat, opts: func(o *server.Options) { o.Setup.Tools = nil }})
			resp, body := f.do("POST", "/v1/chat/completions", fmt.Sprintf(`{"model":"sim/x","stream":%v,"response_format":%s,"messages":[{"role":"user","content":"hi"}]}`, stream, sumFormat))
			if resp.StatusCode != http.StatusOK || body != answer || n != 1 {
				t.Errorf("%s: %d after %d requests: %s\nwant %s", how, resp.StatusCode, n, body, answer)
			}
			if runs := f.stored(&store.RunFilter{}); len(runs) != 1 || runs[0].Reason != reason {
				t.Errorf("%s: %+v", how, runs)
			}
			if got := resp.Header.Get("X-Lathe-Reason"); (got != "") != (reason == lathe.ReasonInvalidAnswer && !stream) {
				t.Errorf("%s: X-Lathe-Reason is %q", how, got)
			}
		}
	}
}

package provider_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
)

// Blocks of answers that a server pauses.
const (
	pausedThinking = `{"type":"thinking","thinking":"I search.","signature":"EqQB=="}`
	pausedText     = `{"type":"text","text":"I look it up. "}`
	pausedCall     = `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query": "x"}}`
	pausedResult   = `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","encrypted_content":"abc="}]}`
)

// pausingServer answers with the nth of its answers, each the blocks and the stop_reason, and keeps the messages that it was sent.
type pausingServer struct {
	answers [][]string // the last element is the stop_reason; "500": that status
	whole   bool       // not streamed

	mu   sync.Mutex
	sent []string
}

func (p *pausingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var req struct{ Messages json.RawMessage }
	_ = json.Unmarshal(body, &req)
	p.mu.Lock()
	p.sent = append(p.sent, string(req.Messages))
	n := min(len(p.sent), len(p.answers)) - 1
	blocks, stop := p.answers[n][:len(p.answers[n])-1], p.answers[n][len(p.answers[n])-1]
	p.mu.Unlock()
	if stop == "500" {
		w.WriteHeader(500)
		return
	}
	const usage = `"usage":{"input_tokens":100,"cache_read_input_tokens":10,"output_tokens":7}`
	if p.whole {
		_, _ = fmt.Fprintf(w, `{"id":"msg_%d","type":"message","role":"assistant","model":"m","content":[%s],"stop_reason":%q,%s}`, n, strings.Join(blocks, ","), stop, usage)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(typ, rest string) { _, _ = fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q%s}\n\n", typ, typ, rest) }
	event("message_start", fmt.Sprintf(`,"message":{"id":"msg_%d","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,%s}`, n, usage))
	for i, b := range blocks {
		event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, i, b))
		event("content_block_stop", fmt.Sprintf(`,"index":%d`, i))
	}
	event("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%q},%s`, stop, usage))
	event("message_stop", "")
}

func (p *pausingServer) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent
}

// A turn that the server pauses is continued with its content as it came, and is one answer: its parts and its usage are those of
// all requests.
func TestPausedTurnIsContinued(t *testing.T) {
	t.Parallel()
	for how, whole := range map[string]bool{"streamed": false, "whole": true} {
		for _, entry := range []string{"", "claude"} {
			t.Run(how+" "+entry, func(t *testing.T) {
				t.Parallel()
				p := &pausingServer{whole: whole, answers: [][]string{
					{pausedThinking, pausedText, pausedCall, "pause_turn"}, {pausedResult, pausedCall, "pause_turn"}, {`{"type":"text","text":"It is x."}`, "end_turn"}}}
				m := serveOn(t, lathe.WireMessages, p.ServeHTTP, func(o *provider.Options) { o.Entry = entry })
				a := ask(t, t.Context(), m)
				if a.err != nil || a.text != "I look it up. It is x." || a.reasoning != "I search." || len(a.retries) != 0 {
					t.Fatalf("%+v", a)
				}
				f := a.finish
				want := lathe.Usage{InputTokens: 330, OutputTokens: 21, TotalTokens: 351, CachedTokens: 30}
				if diff := cmp.Diff(want, f.Usage); diff != "" || f.Reason != lathe.FinishStop || f.RawReason != "end_turn" || f.Message.Text() != a.text || len(f.Message.Parts) != 6 {
					t.Errorf("%+v\n%s", f, diff)
				}
				if diff := cmp.Diff([]lathe.Fault{{Kind: "pause_turn", Count: 2}}, f.Faults); diff != "" {
					t.Error(diff)
				}
				sent := p.requests()
				const user = `[{"role":"user","content":[{"type":"text","text":"hi"}]}`
				first := user + `,{"role":"assistant","content":[` + pausedThinking + "," + strings.Join([]string{pausedText, pausedCall}, ",")
				for i, want := range []string{user + "]", first + "]}]", first + "," + pausedResult + "," + pausedCall + "]}]"} {
					if len(sent) != 3 || sent[i] != want {
						t.Errorf("request %d was\n%s\nwant\n%s", i, sent[i], want)
					}
				}
			})
		}
	}
}

// A server that always pauses is asked as often as max_continuations says.
func TestContinuationsAreBounded(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 2} {
		p := &pausingServer{answers: [][]string{{pausedCall, "pause_turn"}}}
		m := serveOn(t, lathe.WireMessages, p.ServeHTTP, func(o *provider.Options) { o.Limits.MaxContinuations = limit })
		a := ask(t, t.Context(), m)
		if limit == 0 {
			limit = 8
		}
		if a.err == nil || len(p.requests()) != limit+1 {
			t.Fatalf("%v after %d requests, want %d", a.err, len(p.requests()), limit+1)
		}
		if up := a.upstream(t); up.Kind != lathe.UpstreamBadProtocol || up.Message != fmt.Sprintf("the server paused the answer more than max_continuations (%d) times", limit) {
			t.Errorf("%+v", up)
		}
	}
}

// A continuation that fails is not repeated: the caller has the beginning of the turn. An answer with a call of the client is not
// continued, nor is one whose client gets the bytes.
func TestContinuationsStop(t *testing.T) {
	t.Parallel()
	p := &pausingServer{answers: [][]string{{pausedText, "pause_turn"}, {"500"}}}
	if a := ask(t, t.Context(), serveOn(t, lathe.WireMessages, p.ServeHTTP, nil)); a.err == nil || a.text != "I look it up. " || len(p.requests()) != 2 || len(a.retries) != 0 || !a.upstream(t).Continued {
		t.Errorf("%+v after %d requests", a, len(p.requests()))
	}
	p = &pausingServer{answers: [][]string{{"500"}}}
	if a := ask(t, t.Context(), serveOn(t, lathe.WireMessages, p.ServeHTTP, nil)); a.err == nil || a.upstream(t).Continued {
		t.Errorf("%+v: it was no continuation", a)
	}
	p = &pausingServer{answers: [][]string{{`{"type":"tool_use","id":"toolu_1","name":"f","input":{}}`, "pause_turn"}}}
	if a := ask(t, t.Context(), serveOn(t, lathe.WireMessages, p.ServeHTTP, nil)); a.err != nil || a.finish.Reason != lathe.FinishToolCalls || len(p.requests()) != 1 {
		t.Errorf("%+v after %d requests", a, len(p.requests()))
	}
	p = &pausingServer{answers: [][]string{{pausedText, "pause_turn"}}}
	m := serveOn(t, lathe.WireMessages, p.ServeHTTP, nil)
	for _, err := range m.Generate(t.Context(), &lathe.Request{Messages: []lathe.Message{lathe.User("hi")},
		Relay: &lathe.Relay{Wire: lathe.WireMessages, Stream: true, Take: func(*lathe.Raw) {}}}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := len(p.requests()); n != 1 {
		t.Errorf("a relayed turn took %d requests", n)
	}
}

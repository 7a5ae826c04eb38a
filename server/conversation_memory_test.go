package server_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// longTurn is the text of a turn that clients do not send back.
var longTurn = strings.Repeat("x", 200_000)

// computesLong is a model whose first turn of each run has a long text, a call of this server and one of the client. It notes the
// memory of the requests at work.
func computesLong(f **fixture, noted *atomic.Int64) *fake {
	return &fake{turn: func(_ int, req *lathe.Request) lathe.Message {
		noted.Store(int64((*f).inflight()))
		if req.Messages[len(req.Messages)-1].Role == lathe.RoleUser {
			return says(lathe.Text{Text: longTurn}, calls("s1", "calculator", `{"expression":"7 + 35"}`), calls("c1", "weather", `{"city":"Oslo"}`))
		}
		return says(lathe.Text{Text: "It is done."})
	}}
}

const weatherItem = `"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}]`

// waysToContinue are the ways in which the input of a request continues a response to the input "hi" that ends with a call of the
// client. whole is the body of the response.
var waysToContinue = map[string]func(t *testing.T, one *response, whole string) string{
	"previous_response_id": func(_ *testing.T, one *response, _ string) string {
		return fmt.Sprintf(`"previous_response_id":%q,"input":[%s]`, one.ID, one.output())
	},
	"item_reference": func(t *testing.T, one *response, whole string) string {
		return `"input":[{"role":"user","content":"hi"},` + references(t, whole) + "," + one.output() + "]"
	},
	"id of a call": func(_ *testing.T, one *response, _ string) string {
		return fmt.Sprintf(`"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":%q,"name":"weather","arguments":"{}"},%s]`,
			one.Output[len(one.Output)-1].CallID, one.output())
	},
}

// output is the item with the result of the call that the response ends with.
func (r *response) output() string {
	return fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"rain"}`, r.Output[len(r.Output)-1].CallID)
}

// What the server puts into the conversation of a request counts as memory of the request, whatever the way in which the request
// names it, and the share of a key limits it.
func TestMemoryOfWhatRequestsNameIsCounted(t *testing.T) {
	t.Parallel()
	for way, input := range waysToContinue {
		for _, where := range []string{"here", "in another process"} {
			t.Run(way+" "+where, func(t *testing.T) {
				t.Parallel()
				var f *fixture
				var noted atomic.Int64
				kept := store.NewMemory(nil)
				f = serve(t, &setting{model: computesLong(&f, &noted), store: kept})
				one, whole := f.respond(false, `"input":"hi",`+weatherItem)
				if one == nil || one.Output[len(one.Output)-1].CallID == "" {
					t.Fatal(whole)
				}
				if where != "here" {
					f = serve(t, &setting{model: computesLong(&f, &noted), store: kept})
				}
				noted.Store(0)
				if two, text := f.respond(false, input(t, one, whole)+","+weatherItem); two == nil || two.text() != "It is done." {
					t.Fatal(text)
				}
				if noted.Load() < int64(len(longTurn)) {
					t.Errorf("a request whose conversation has %d bytes holds %d", len(longTurn), noted.Load())
				}
				f.empties()
				f = serve(t, &setting{model: computesLong(&f, &noted), store: kept, opts: func(o *server.Options) { o.Limits.MaxInflightBytes = int64(len(longTurn)) }})
				if two, text := f.respond(false, input(t, one, whole)+","+weatherItem); two != nil || !strings.Contains(text, "request_too_large") || !strings.Contains(text, "serve.max_inflight_bytes") {
					t.Errorf("with less memory than the conversation takes: %s", text)
				}
				f.empties()
			})
		}
	}
}

// A chain of responses is one conversation, which the limits of a conversation bound.
func TestChainsOfResponsesAreBounded(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{model: &fake{turn: func(int, *lathe.Request) lathe.Message { return says(lathe.Text{Text: "Yes."}) }}, opts: func(o *server.Options) {
		o.Limits.MaxMessages = 5
	}})
	one, text := f.respond(false, `"input":"a"`)
	if one == nil {
		t.Fatal(text)
	}
	two, text := f.respond(false, fmt.Sprintf(`"previous_response_id":%q,"input":"b"`, one.ID))
	if two == nil {
		t.Fatal(text)
	}
	three, text := f.respond(false, fmt.Sprintf(`"previous_response_id":%q,"input":"c"`, two.ID))
	if three == nil { // five messages
		t.Fatal(text)
	}
	if four, text := f.respond(false, fmt.Sprintf(`"previous_response_id":%q,"input":"d"`, three.ID)); four != nil || !strings.Contains(text, "serve.max_messages") {
		t.Errorf("seven messages: %s", text)
	}
	if resp, text := f.do("POST", "/v1/responses/input_tokens", fmt.Sprintf(`{"model":"sim/demo","previous_response_id":%q,"input":"d"}`, three.ID)); resp.StatusCode != 413 {
		t.Errorf("the count of seven messages: %d %s", resp.StatusCode, text)
	}
}

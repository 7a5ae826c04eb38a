package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// longTurn is the text of a turn that clients do not send back.
var longTurn = strings.Repeat("x", 200_000)

// computesLong is a model whose first turn of each run has a long text, a call of this server and one of the client. It notes the
// memory of the requests at work.
func computesLong(f **fixture, noted *int) *fake {
	return &fake{turn: func(_ int, req *lathe.Request) lathe.Message {
		*noted = (*f).inflight()
		if req.Messages[len(req.Messages)-1].Role == lathe.RoleUser {
			return says(lathe.Text{Text: longTurn}, calls("s1", "calculator", `{"expression":"7 + 35"}`), calls("c1", "weather", `{"city":"Oslo"}`))
		}
		return says(lathe.Text{Text: "It is done."})
	}}
}

const weatherItem = `"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}]`

// What the server puts into the conversation of a request counts as memory of the request, whatever the way in which the request
// names it, and the share of a key limits it.
func TestMemoryOfWhatRequestsNameIsCounted(t *testing.T) {
	t.Parallel()
	outputs := func(one *response) string {
		return fmt.Sprintf(`[{"type":"function_call_output","call_id":%q,"output":"rain"}]`, one.Output[len(one.Output)-1].CallID)
	}
	for way, input := range map[string]func(one *response, whole string) string{
		"previous_response_id": func(one *response, _ string) string {
			return fmt.Sprintf(`"previous_response_id":%q,"input":%s`, one.ID, outputs(one))
		},
		"item_reference": func(one *response, whole string) string {
			return `"input":[{"role":"user","content":"hi"},` + references(t, whole) + "," + strings.TrimPrefix(outputs(one), "[")
		},
		"id of a call": func(one *response, _ string) string {
			id := one.Output[len(one.Output)-1].CallID
			return fmt.Sprintf(`"input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":%q,"name":"weather","arguments":"{}"},%s`, id, strings.TrimPrefix(outputs(one), "["))
		},
	} {
		for _, where := range []string{"here", "in another process"} {
			t.Run(way+" "+where, func(t *testing.T) {
				t.Parallel()
				var f *fixture
				noted := 0
				kept := store.NewMemory(nil)
				f = serve(t, &setting{model: computesLong(&f, &noted), store: kept})
				one, whole := f.respond(false, `"input":"hi",`+weatherItem)
				if one == nil || one.Output[len(one.Output)-1].CallID == "" {
					t.Fatal(whole)
				}
				if where != "here" {
					f = serve(t, &setting{model: computesLong(&f, &noted), store: kept})
				}
				noted = 0
				if two, text := f.respond(false, input(one, whole)+","+weatherItem); two == nil || two.text() != "It is done." {
					t.Fatal(text)
				}
				if noted < len(longTurn) {
					t.Errorf("a request whose conversation has %d bytes holds %d", len(longTurn), noted)
				}
				f.empties()
				f = serve(t, &setting{model: computesLong(&f, &noted), store: kept, opts: func(o *server.Options) { o.Limits.MaxInflightBytes = int64(len(longTurn)) }})
				if two, text := f.respond(false, input(one, whole)+","+weatherItem); two != nil || !strings.Contains(text, "request_too_large") || !strings.Contains(text, "serve.max_inflight_bytes") {
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

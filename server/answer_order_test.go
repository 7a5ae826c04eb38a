package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
)

// The items of an answer with a carrier have one order, streamed and whole.
func TestCarrierHasItsPlaceStreamedAndWhole(t *testing.T) {
	t.Parallel()
	for name, c := range wireClients {
		order := func(stream bool) (kinds []string) {
			a := c.ask(serve(t, &setting{model: mixed()}), stream, []*lathe.ToolSpec{weatherSpec()}, lathe.User("hi"))
			for _, p := range a.message.Parts {
				kinds = append(kinds, fmt.Sprintf("%T", p))
			}
			return slices.Compact(kinds) // streams of Gemini may have a text in two parts
		}
		if streamed, whole := order(true), order(false); !slices.Equal(streamed, whole) || !slices.Contains(whole, "lathe.ToolCall") {
			t.Errorf("%s: streamed %q, whole %q", name, streamed, whole)
		}
	}
}

// A client that does not see a call of this server gets the texts around it apart.
func TestTextsAroundACallOfTheServerAreApart(t *testing.T) {
	t.Parallel()
	for how, stream := range bothWays {
		model := &fake{turn: func(n int, req *lathe.Request) lathe.Message {
			if req.Messages[len(req.Messages)-1].Role == lathe.RoleUser {
				return says(lathe.Text{Text: "One."}, calls("s1", "calculator", `{"expression":"1 + 1"}`), lathe.Text{Text: "Two."})
			}
			return says(lathe.Text{Text: "Three."})
		}}
		a := wireClients["chat"].ask(serve(t, &setting{model: model}), stream, nil, lathe.User("hi"))
		if got := a.message.Text(); a.err != nil || got != "One.\nTwo.\n\nThree." {
			t.Errorf("%s: %v, the text is %q", how, a.err, got)
		}
	}
}

// A model server of Responses that calls a custom tool as a function: the client, whose answer is not relayed, gets the call of its custom tool.
func TestCallOfACustomToolComesBackAsOne(t *testing.T) {
	t.Parallel()
	m := &modelServer{stream: `{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"function_call","id":"f","call_id":"c1","name":"patch","arguments":"{\"input\":\"a text\"}","status":"completed"}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`}
	f := serve(t, &setting{model: m.model(t, lathe.WireResponses)})
	a := wireClients["responses"].send(t.Context(), f, false, respHead+`[{"role":"user","content":"hi"}],"tools":[{"type":"custom","name":"patch"}]}`)
	if a.status != http.StatusOK || !strings.Contains(a.body, `"type":"custom_tool_call"`) || !strings.Contains(a.body, `"input":"a text"`) || strings.Contains(a.body, `"type":"function_call"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}

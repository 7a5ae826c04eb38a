package provider_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
)

// answering is a server that streams these deltas of a chat completion, or one whole message, and ends normally.
func answering(t testing.TB, whole bool, deltas ...string) *provider.Chat {
	t.Helper()
	m, err := provider.OpenAI("m", &provider.Options{BaseURL: "http://models.example/v1", Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		kind, body := "text/event-stream", ""
		for _, d := range deltas {
			body += fmt.Sprintf("data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", d)
		}
		body += "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
		if whole {
			kind, body = "application/json", fmt.Sprintf(`{"id":"1","choices":[{"index":0,"message":%s,"finish_reason":"stop"}]}`, deltas[0])
		}
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Thinking that the prompt opened is reasoning with thinking: starts_open, in a dialect and natively, unless the server tells it apart. A
// closing mark that a server leaves at the beginning of the text is no part of it, and a bare call is a call natively, too.
func TestThinkingThatThePromptOpenedIsReasoning(t *testing.T) {
	t.Parallel()
	const bare = `{"content":"{\"name\": \"add_numbers\", \"arguments\": {\"a\": 7}}"}`
	for name, c := range map[string]struct {
		dialect         string
		opts            provider.DialectOptions
		whole           bool
		deltas          []string
		text, reasoning string
		calls           int
	}{
		"native":            {opts: provider.DialectOptions{ThinkingStartsOpen: true}, deltas: []string{`{"content":"Hm.</th"}`, `{"content":"ink>\n\nIt is 42."}`}, text: "\n\nIt is 42.", reasoning: "Hm."},
		"dialect":           {dialect: "hermes", opts: provider.DialectOptions{ThinkingStartsOpen: true}, deltas: []string{`{"content":"Hm.</think>It is 42."}`}, text: "It is 42.", reasoning: "Hm."},
		"whole":             {opts: provider.DialectOptions{ThinkingStartsOpen: true}, whole: true, deltas: []string{`{"content":"Hm.</think>It is 42."}`}, text: "It is 42.", reasoning: "Hm."},
		"no thought":        {opts: provider.DialectOptions{ThinkingStartsOpen: true}, deltas: []string{`{"content":"</think>It is 42."}`}, text: "It is 42."},
		"told apart":        {opts: provider.DialectOptions{ThinkingStartsOpen: true}, deltas: []string{`{"reasoning_content":"Hm."}`, `{"content":"It is 42."}`}, text: "It is 42.", reasoning: "Hm."},
		"told apart, whole": {opts: provider.DialectOptions{ThinkingStartsOpen: true}, whole: true, deltas: []string{`{"reasoning_content":"Hm.","content":"It is 42."}`}, text: "It is 42.", reasoning: "Hm."},
		"off":               {deltas: []string{`{"content":"Hm.</think>It is 42."}`}, text: "Hm.</think>It is 42."},
		"mark left":         {deltas: []string{`{"reasoning_content":"Hm."}`, `{"content":"\n</thi"}`, `{"content":"nk>\n"}`, `{"content":"\nIt is </think> 42."}`}, text: "It is </think> 42.", reasoning: "Hm."},
		"mark left, whole":  {whole: true, deltas: []string{`{"content":"</think>\n\nIt is 42."}`}, text: "It is 42."},
		"mark left, parts":  {whole: true, deltas: []string{`{"content":[{"type":"text","text":"\n"},{"type":"text","text":"</think>It is"},{"type":"text","text":" 42."}]}`}, text: "It is 42."},
		"beginning of one":  {deltas: []string{`{"content":" </thi"}`, `{"content":"s>"}`}, text: " </this>"},
		"only its begin":    {deltas: []string{`{"content":" </thi"}`}, text: " </thi"},
		"bare":              {opts: provider.DialectOptions{BareCalls: true}, deltas: []string{bare}, calls: 1},
		"bare, whole":       {opts: provider.DialectOptions{BareCalls: true}, whole: true, deltas: []string{bare}, calls: 1},
		"bare, dialect":     {dialect: "hermes", opts: provider.DialectOptions{BareCalls: true}, deltas: []string{bare}, calls: 1},
		"bare, recovered":   {opts: provider.DialectOptions{BareCalls: true, RecoverLeakedCalls: true}, deltas: []string{bare}, calls: 1},
		"bare, off":         {dialect: "hermes", deltas: []string{bare}, text: `{"name": "add_numbers", "arguments": {"a": 7}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := provider.WithDialect(answering(t, c.whole, c.deltas...), c.dialect, &c.opts)
			if err != nil {
				t.Fatal(err)
			}
			deltas, f := generate(t, m, &lathe.Request{Messages: []lathe.Message{lathe.User("x")}, Tools: addTool})
			reasoning := ""
			for _, d := range deltas {
				if d.Kind == lathe.DeltaReasoning {
					reasoning += d.Text
				}
			}
			if got := textOf(deltas); got != c.text || f.Message.Text() != c.text || reasoning != c.reasoning || len(f.Message.Calls()) != c.calls {
				t.Errorf("shown %q, reasoning %q, message %+v", got, reasoning, f.Message)
			}
			if marked := slices.Contains(f.Faults, lathe.Fault{Kind: "thinking_mark", Count: 1}); marked != strings.HasPrefix(name, "mark left") {
				t.Errorf("the faults are %+v", f.Faults)
			}
		})
	}
}

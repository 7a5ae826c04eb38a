package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
)

// A conversation that goes on at another server, which has the key and nothing else, contains what the first one did: the
// client sends back what its agent keeps, which is everything but the calls of the server.
func TestHiddenTurnsComeBackInCarriers(t *testing.T) {
	t.Parallel()
	const ask = "What is 7 + 35?"
	for name, w := range map[string]struct {
		path, first string
		next        func(t *testing.T, answer string) string
	}{
		"responses": {"/v1/responses", `{"model":"sim/demo","input":"` + ask + `"}`, nextResponse},
		"responses streamed": {"/v1/responses", `{"model":"sim/demo","input":"` + ask + `","stream":true}`, func(t *testing.T, answer string) string {
			i := strings.LastIndex(answer, `"output":[`)
			return nextResponse(t, "{"+balanced(answer[i:], "[", "]")+"}")
		}},
		"messages": {"/v1/messages", `{"model":"sim/demo","max_tokens":99,"messages":[{"role":"user","content":"` + ask + `"}]}`, func(t *testing.T, answer string) string {
			var a struct{ Content []json.RawMessage }
			readJSON(t, answer, &a)
			return `{"model":"sim/demo","max_tokens":99,"messages":[{"role":"user","content":"` + ask + `"},{"role":"assistant","content":[` +
				without(a.Content, `"mcp_`) + `]},{"role":"user","content":"Thanks."}]}`
		}},
		"gemini": {"/v1beta/models/sim/demo:generateContent", `{"contents":[{"role":"user","parts":[{"text":"` + ask + `"}]}]}`, func(t *testing.T, answer string) string {
			var a struct {
				Candidates []struct {
					Content struct{ Parts []json.RawMessage }
				}
			}
			readJSON(t, answer, &a)
			return `{"contents":[{"role":"user","parts":[{"text":"` + ask + `"}]},{"role":"model","parts":[` + without(a.Candidates[0].Content.Parts, "\x00") +
				`]},{"role":"user","parts":[{"text":"Thanks."}]}]}`
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keyed := func() *fixture {
				return serve(t, &setting{nothing: true, opts: func(o *server.Options) { o.SealKey = secret.New(strings.Repeat("k", 32)) }})
			}
			here, there := keyed(), keyed()
			resp, answer := here.do("POST", w.path, w.first)
			if resp.StatusCode != 200 || strings.Contains(answer, "exact") != (name != "gemini") {
				t.Fatalf("%s: %s", resp.Status, answer)
			}
			body := w.next(t, answer)
			if strings.Contains(body, "exact") {
				t.Fatalf("the client sends the call of the server back: %s", body)
			}
			if resp, answer = there.do("POST", w.path, body); resp.StatusCode != 200 {
				t.Fatalf("%s: %s", resp.Status, answer)
			}
			sent := there.seen.all()
			last := sent[len(sent)-1]
			if !strings.Contains(last, `"role":"tool"`) || !strings.Contains(last, `exact`) || strings.Contains(last, "lathe1.") || strings.Count(last, "Let me use calculator.") != 1 {
				t.Errorf("the model got %s\nof %s", last, body)
			}
			if resp.Header.Get("X-Lathe-Lost-Joins") != "" {
				t.Error("a carrier was refused")
			}
		})
	}
}

func nextResponse(t *testing.T, answer string) string {
	var a struct{ Output []json.RawMessage }
	readJSON(t, answer, &a)
	return `{"model":"sim/demo","input":[{"type":"message","role":"user","content":"What is 7 + 35?"},` + without(a.Output, `"mcp_call"`) +
		`,{"type":"message","role":"user","content":"Thanks."}]}`
}

func readJSON(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// without returns the items that do not contain text, joined.
func without(items []json.RawMessage, text string) string {
	var kept []string
	for _, item := range items {
		if !strings.Contains(string(item), text) {
			kept = append(kept, string(item))
		}
	}
	return strings.Join(kept, ",")
}

// balanced returns the beginning of text up to the bracket that closes the first one.
func balanced(text, open, closed string) string {
	depth := 0
	for i := range text {
		switch text[i : i+1] {
		case open:
			depth++
		case closed:
			if depth--; depth == 0 {
				return text[:i+1]
			}
		}
	}
	return text
}

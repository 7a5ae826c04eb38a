package provider_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/provider"
)

const (
	peg    = `{"error":{"code":500,"message":"The model produced output that does not match the expected peg-native format","type":"server_error"}}`
	ollama = `{"error":{"message":"error parsing tool call: raw='{\"a\":', err=unexpected end of JSON input","type":"api_error","param":null,"code":null}}`
	groq   = `{"error":{"message":"Failed to call a function. Please adjust your prompt.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=add"}}`
)

// A server that could not parse the call that the model wrote is no failed server: the model gets an error as the call's result, in a
// request that servers accept, or the turn is repeated without tools.
func TestCallThatTheServerCannotParse(t *testing.T) {
	t.Parallel()
	head := chunk(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"add_numbers","arguments":"{\"a\":"}}]}`)
	whole := chunk(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"add_numbers","arguments":"{\"a\":7,\"b\":35}"}}]}`)
	second := chunk(`{"tool_calls":[{"index":1,"id":"call_2","type":"function","function":{"name":"add_numbers","arguments":"{\"a\""}}]}`)
	for _, c := range []struct {
		name, stream string
		status       int
		results      []string // codes of the results in the second request
		repeats      bool     // repeated without tools, if the settings say so
	}{
		{name: "first event", stream: data(peg), results: []string{"tool_payload_parse_error"}, repeats: true},
		{name: "after reasoning", stream: data(chunk(`{"reasoning_content":"hm"}`), peg), results: []string{"tool_payload_parse_error"}, repeats: true},
		{name: "after text", stream: data(text("I add."), peg), results: []string{"tool_payload_parse_error"}},
		{name: "within a call", stream: data(head, peg), results: []string{"tool_payload_parse_error"}, repeats: true},
		{name: "after a whole call", stream: data(whole, second, peg), results: []string{"incomplete_call", "tool_payload_parse_error"}, repeats: true},
		{name: "Ollama, in the stream", stream: data(head, ollama), results: []string{"tool_payload_parse_error"}, repeats: true},
		{name: "Ollama, as a status", stream: ollama, status: 500, results: []string{"tool_payload_parse_error"}, repeats: true},
		{name: "Groq", stream: groq, status: 400, results: []string{"tool_payload_parse_error"}, repeats: true},
		{name: "whole answer", stream: peg, results: []string{"tool_payload_parse_error"}, repeats: true},
	} {
		for _, retry := range []bool{false, true} {
			name, settings := c.name, lathe.Settings{}
			if retry {
				name, settings.OnParseError = name+", retry", lathe.ParseErrorRetryWithout
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var bodies []string
				m := serve(t, func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					bodies = append(bodies, string(body))
					switch {
					case len(bodies) > 1:
						stream(w, data(text("42"), finished("stop"), done))
					case c.status != 0:
						w.WriteHeader(c.status)
						io.WriteString(w, c.stream)
					default:
						stream(w, c.stream)
					}
				}, nil)
				s := play(t, m, "Add 7 and 35.", settings, lathe.Limits{})
				if s.result.Reason != lathe.ReasonAnswered || s.result.Answer != "42" || len(bodies) != 2 {
					t.Fatalf("ended %s with %q after %d requests: %v", s.result.Reason, s.result.Answer, len(bodies), s.result.Err)
				}
				if n := len(all[*event.ToolCallExecuted](s)); n != 0 {
					t.Errorf("%d calls executed", n)
				}
				if n := len(all[*event.ToolCallParseError](s)); n != 1 {
					t.Errorf("%d parse errors", n)
				}
				if f := all[*event.ModelCallFinished](s)[0]; f.Status != "success" || !hasFault(f.Faults, "unreadable_call") {
					t.Errorf("the first model call: %s with %v", f.Status, f.Faults)
				}
				var req struct {
					Tools    []any
					Messages []struct {
						Role, Content string
						ToolCalls     []struct {
							ID       string
							Function struct{ Name, Arguments string }
						} `json:"tool_calls"`
					}
				}
				if err := json.Unmarshal([]byte(bodies[1]), &req); err != nil {
					t.Fatal(err)
				}
				if retry && c.repeats {
					if len(req.Messages) != 1 || len(req.Tools) != 0 || s.shown != "42" {
						t.Errorf("the turn is repeated with %d tools and the messages %v; shown: %q", len(req.Tools), req.Messages, s.shown)
					}
					return
				}
				var results []string
				for _, m := range req.Messages[1:] {
					for _, call := range m.ToolCalls {
						if call.ID == "" || call.Function.Name == "" || !json.Valid([]byte(call.Function.Arguments)) {
							t.Errorf("sent the call %+v", call)
						}
					}
					if m.Role == "tool" {
						var r struct{ Error struct{ Code string } }
						if err := json.Unmarshal([]byte(m.Content), &r); err != nil {
							t.Errorf("result %s: %v", m.Content, err)
						}
						results = append(results, r.Error.Code)
					}
				}
				if strings.Join(results, " ") != strings.Join(c.results, " ") {
					t.Errorf("results %v, want %v", results, c.results)
				}
			})
		}
	}
}

func hasFault(list []lathe.Fault, kind string) bool {
	for _, f := range list {
		if f.Kind == kind {
			return true
		}
	}
	return false
}

// The loop asks again after a blank answer. If the server cannot parse what the model writes then, the run ends with the
// blank answer and its cause: the server did not fail, and the tools did their work.
func TestUnparsedFinalAnswerIsABlankAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		last     string
		settings lathe.Settings
		limits   lathe.Limits
		reason   lathe.Reason
		blank    lathe.Blank
	}{
		"unparsed":             {data(peg), lathe.Settings{}, lathe.Limits{}, lathe.ReasonEmptyAnswer, lathe.BlankOutputDropped},
		"enforced":             {data(peg), lathe.Settings{ToolUseMode: lathe.ModeEnforced}, lathe.Limits{}, lathe.ReasonEmptyAnswer, lathe.BlankOutputDropped},
		"at a limit":           {data(peg), lathe.Settings{}, lathe.Limits{MaxIterations: 1}, lathe.ReasonMaxIterations, lathe.BlankOutputDropped},
		"after text":           {data(text("4"), peg), lathe.Settings{}, lathe.Limits{}, lathe.ReasonUpstreamError, ""},
		"the server fails":     {data(`{"error":{"code":500,"message":"out of memory"}}`), lathe.Settings{}, lathe.Limits{}, lathe.ReasonUpstreamError, ""},
		"no loop's own prompt": {data(peg), lathe.Settings{NoFixEmptyFinal: true}, lathe.Limits{}, lathe.ReasonEmptyAnswer, lathe.BlankEmpty},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			m := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				switch n++; {
				case n == 1:
					stream(w, data(chunk(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"add_numbers","arguments":"{\"a\":7,\"b\":35}"}}]}`), finished("tool_calls"), done))
				case n == 2 && c.limits.MaxIterations == 0:
					stream(w, data(chunk(`{"content":"\n"}`), finished("stop"), done))
				default:
					stream(w, c.last)
				}
			}, func(o *provider.Options) { o.Retry.Attempts = 1 })
			s := play(t, m, "Add 7 and 35.", c.settings, c.limits)
			if s.result.Reason != c.reason || s.result.Blank != c.blank {
				t.Errorf("ended %s with the cause %q: %v", s.result.Reason, s.result.Blank, s.result.Err)
			}
			if n := len(all[*event.ToolCallExecuted](s)); n != 1 {
				t.Errorf("%d calls executed", n)
			}
		})
	}
}

// What remains an error: the same words where no call was possible or a client gets the bytes, and similar words about the request.
func TestErrorsThatAreNotAboutACall(t *testing.T) {
	t.Parallel()
	tools := addTool
	arguments := `{"error":{"code":500,"message":"Failed to parse tool call arguments as JSON: missing closing quote","type":"server_error"}}`
	for name, c := range map[string]struct {
		body string
		req  lathe.Request
	}{
		"no tools":    {peg, lathe.Request{}},
		"no choice":   {peg, lathe.Request{Tools: tools, ToolChoice: lathe.ToolChoice{Mode: lathe.ChoiceNone}}},
		"relayed":     {peg, lathe.Request{Tools: tools, Relay: &lathe.Relay{Wire: lathe.WireOpenAIChat, Stream: true, Take: func(*lathe.Raw) {}}}},
		"of a client": {peg, lathe.Request{Tools: tools, ClientCalls: true}},
		"the request": {arguments, lathe.Request{Tools: tools}},
	} {
		m := serve(t, func(w http.ResponseWriter, _ *http.Request) { stream(w, data(c.body)) }, func(o *provider.Options) { o.Retry.Attempts = 1 })
		c.req.Messages = []lathe.Message{lathe.User("x")}
		var err error
		for _, err = range m.Generate(t.Context(), &c.req) {
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A run whose model writes unreadable calls without end stops at its limits.
func TestUnreadableCallsWithoutEnd(t *testing.T) {
	t.Parallel()
	requests := 0
	m := serve(t, func(w http.ResponseWriter, _ *http.Request) { requests++; stream(w, data(text("a"), peg)) }, nil)
	s := play(t, m, "x", lathe.Settings{OnLimit: lathe.OnLimitStop}, lathe.Limits{MaxIterations: 5})
	if s.result.Reason == lathe.ReasonAnswered || requests > 5 {
		t.Errorf("ended %s after %d requests", s.result.Reason, requests)
	}
}

// A run that ends with a blank answer says why, in its result and its last event.
func TestBlankAnswerHasACause(t *testing.T) {
	t.Parallel()
	spent := func(n string) string {
		return strings.ReplaceAll(usage, `"completion_tokens":4`, `"completion_tokens":`+n)
	}
	for name, c := range map[string]struct {
		stream string
		mode   lathe.ToolUseMode
		want   lathe.Blank
	}{
		"reasoning":       {data(chunk(`{"reasoning_content":"hm"}`), finished("stop"), done), "", lathe.BlankReasoning},
		"cut in thinking": {data(chunk(`{"reasoning_content":"hm"}`), finished("length"), done), "", lathe.BlankLength},
		"cut at once":     {data(chunk(`{"content":""}`), finished("length"), done), "", lathe.BlankLength},
		"swallowed":       {data(chunk(`{"content":""}`), finished("stop"), spent("14"), done), "", lathe.BlankOutputDropped},
		"nothing":         {data(chunk(`{"content":""}`), finished("stop"), spent("1"), done), "", lathe.BlankEmpty},
		"disabled":        {data(chunk(callHead), args("{}"), finished("tool_calls"), done), lathe.ModeDisabled, lathe.BlankCallsIgnored},
		"text":            {data(text("42"), finished("stop"), done), "", ""},
	} {
		m := serve(t, func(w http.ResponseWriter, _ *http.Request) { stream(w, c.stream) }, nil)
		s := play(t, m, "x", lathe.Settings{ToolUseMode: c.mode}, lathe.Limits{})
		if end := all[*event.RunFinished](s); s.result.Blank != c.want || end[0].Blank != c.want {
			t.Errorf("%s: %q, and %q in the event, want %q", name, s.result.Blank, end[0].Blank, c.want)
		}
	}
}

package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
)

// pieceWires are the wires besides chat completions whose streams have the arguments of calls in pieces.
var pieceWires = []string{"responses", "codex", "messages"}

// chatCall is the stream of a model that calls weather with pieces of arguments.
func chatCall(id string, pieces ...string) string {
	s := chunk(`{"tool_calls":[{"index":0,"id":"`+id+`","type":"function","function":{"name":"weather","arguments":""}}]}`, "null")
	for _, piece := range pieces {
		s += chunk(`{"tool_calls":[{"index":0,"function":{"arguments":`+quote(piece)+`}}]}`, "null")
	}
	return s
}

const chatCallsEnd = `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"

// A writtenCall is what a stream on Responses or Messages says of a client's call.
type writtenCall struct {
	pieces []string // of arguments
	closed bool     // the call was said to be complete
	ended  bool     // the stream has ended as one that is complete
	kinds  []string // of all items, in the order in which they began
}

func readWritten(t *testing.T, stream string) (w writtenCall) {
	t.Helper()
	events := sse.NewReader(strings.NewReader(stream), nil)
	open := ""
	for {
		ev, err := events.Next()
		if err != nil {
			return w
		}
		var e struct {
			Type         string
			Delta        json.RawMessage
			Item         struct{ Type string }
			ContentBlock struct{ Type string } `json:"content_block"`
		}
		if json.Unmarshal(ev.Data, &e) != nil {
			continue // [DONE]
		}
		switch e.Type {
		case "response.output_item.added":
			w.kinds = append(w.kinds, e.Item.Type)
		case "response.function_call_arguments.delta":
			var text string
			_ = json.Unmarshal(e.Delta, &text)
			w.pieces = append(w.pieces, text)
		case "response.function_call_arguments.done":
			w.closed = true
		case "content_block_start":
			open = e.ContentBlock.Type
			w.kinds = append(w.kinds, open)
		case "content_block_delta":
			var d struct {
				Type string
				Text string `json:"partial_json"`
			}
			if _ = json.Unmarshal(e.Delta, &d); d.Type == "input_json_delta" {
				w.pieces = append(w.pieces, d.Text)
			}
		case "content_block_stop":
			w.closed = w.closed || open == "tool_use"
		case "response.completed", "response.incomplete", "message_stop":
			w.ended = true
		}
	}
}

// The first piece of a call's arguments, and the reasoning before it, are with the client before the model has written the last
// piece: the server's tools are in play.
func TestEveryWireWritesCallsAtOnce(t *testing.T) {
	t.Parallel()
	for _, name := range pieceWires {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pr, pw := io.Pipe()
			f := serve(t, &setting{instead: func(_ int, r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: pr, Request: r}, nil
			}})
			c := wireClients[name]
			// The head of the answer goes with its first piece.
			go func() { _, _ = io.WriteString(pw, chunk(`{"reasoning_content":"It rains there."}`, "null")) }()
			resp, err := f.client.Post(f.url+c.path(true), "application/json", strings.NewReader(c.body(true, []*lathe.ToolSpec{weatherSpec()}, lathe.User("hi"))))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			got := ""
			for i, next := range []struct{ write, want string }{
				{want: "It rains there."},
				{chatCall("c1", `{"ci`, `ty":`), `ty\":`},
				{chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"\"Os"}}]}`, "null"), `\"Os`},
			} {
				if i > 0 {
					if _, err := io.WriteString(pw, next.write); err != nil {
						t.Fatal(err)
					}
				}
				for buf := make([]byte, 4096); !strings.Contains(got, next.want); {
					n, err := resp.Body.Read(buf) // the test's own limit of time ends it
					if got += string(buf[:n]); err != nil {
						t.Fatalf("%v after %s", err, got)
					}
				}
			}
			if w := readWritten(t, got); w.closed || w.ended {
				t.Errorf("the call is complete: %s", got)
			}
			_, _ = io.WriteString(pw, chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"lo\"}"}}]}`, "null")+chatCallsEnd)
			_ = pw.Close()
			rest, err := io.ReadAll(resp.Body)
			w := readWritten(t, got+string(rest))
			if err != nil || strings.Join(w.pieces, "|") != `{"ci|ty":|"Os|lo"}` || !w.closed || !w.ended {
				t.Errorf("%v: %+v", err, w)
			}
			want := []string{"reasoning", "function_call", "reasoning"} // the last is the carrier
			if name == "messages" {
				want = []string{"thinking", "tool_use", "redacted_thinking"}
			}
			if !slices.Equal(w.kinds, want) {
				t.Errorf("the items are %q, want %q", w.kinds, want)
			}
		})
	}
}

// The order in which the items of a mixed turn are written is that of an answer in one piece: a call of the client that follows
// one of the server is written after it, and whole.
func TestClientCallAfterOneOfTheServer(t *testing.T) {
	t.Parallel()
	server := func(i string) string {
		return chunk(`{"tool_calls":[{"index":`+i+`,"id":"s`+i+`","type":"function","function":{"name":"calculator","arguments":"{\"expression\":\"6 * 7\"}"}}]}`, "null")
	}
	client := func(i string) string {
		return chunk(`{"tool_calls":[{"index":`+i+`,"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":"}}]}`, "null") +
			chunk(`{"tool_calls":[{"index":`+i+`,"function":{"arguments":"\"Oslo\"}"}}]}`, "null")
	}
	for _, name := range pieceWires {
		for how, x := range map[string]struct {
			body   string
			pieces int
			items  map[string][]string
		}{
			"server first": {server("0") + client("1"), 1, map[string][]string{
				"responses": {"mcp_call", "reasoning", "function_call"}, "messages": {"mcp_tool_use", "mcp_tool_result", "redacted_thinking", "tool_use"}}},
			"client first": {client("0") + server("1"), 2, map[string][]string{
				"responses": {"function_call", "mcp_call", "reasoning"}, "messages": {"tool_use", "mcp_tool_use", "mcp_tool_result", "redacted_thinking"}}},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				c := wireClients[name]
				f := serve(t, step(x.body+chatCallsEnd, chunk(`{"role":"assistant","content":"It rains."}`, `"stop"`)+"data: [DONE]\n\n"))
				ask := lathe.User("hi")
				a := c.ask(f, true, []*lathe.ToolSpec{weatherSpec()}, ask)
				w := readWritten(t, a.body)
				if a.err != nil || strings.Join(w.pieces, "") != `{"city":"Oslo"}` || len(a.message.Calls()) != 1 || a.message.Calls()[0].Arguments != `{"city":"Oslo"}` {
					t.Fatalf("%v: %s", a.err, a.body)
				}
				if want := x.items[strings.Replace(name, "codex", "responses", 1)]; len(w.pieces) != x.pieces || !slices.Equal(w.kinds, want) {
					t.Errorf("%d pieces, items %q, want %d, %q", len(w.pieces), w.kinds, x.pieces, want)
				}
				result := lathe.Message{Role: lathe.RoleTool, Wire: c.codec.Wire(), Parts: []lathe.Part{lathe.ToolResult{CallID: a.message.Calls()[0].ID, Name: "weather", Content: "rain"}}}
				if b := c.ask(f, true, []*lathe.ToolSpec{weatherSpec()}, ask, c.back(a.message), result); b.err != nil || b.message.Text() != "It rains." || b.header.Get("X-Lathe-Lost-Joins") != "" {
					t.Fatalf("%v %v: %s", b.err, b.header, b.body)
				}
				all := f.seen.all()
				if sent := all[len(all)-1]; strings.Count(sent, `"role":"tool"`) != 2 || strings.Count(sent, `"name":"weather","arguments"`) != 1 || strings.Count(sent, `"name":"calculator","arguments"`) != 1 {
					t.Errorf("the model was sent %s", sent)
				}
			})
		}
	}
}

// Another server that has nothing but the key restores the reasoning of a turn whose call was written at once.
func TestCarrierAfterAWrittenCall(t *testing.T) {
	t.Parallel()
	for _, name := range pieceWires {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keyed := func(bodies ...string) *fixture {
				set := step(bodies...)
				set.opts = func(o *server.Options) { o.SealKey = secret.New(strings.Repeat("k", 32)) }
				return serve(t, set)
			}
			here := keyed(chunk(`{"reasoning_content":"It rains there."}`, "null") + chatCall("c1", `{"city":`, `"Oslo"}`) + chatCallsEnd)
			there := keyed(chunk(`{"role":"assistant","content":"It rains."}`, `"stop"`) + "data: [DONE]\n\n")
			c, ask := wireClients[name], lathe.User("hi")
			a := c.ask(here, true, []*lathe.ToolSpec{weatherSpec()}, ask)
			if a.err != nil || len(a.message.Calls()) != 1 {
				t.Fatalf("%v: %s", a.err, a.body)
			}
			result := lathe.Message{Role: lathe.RoleTool, Wire: c.codec.Wire(), Parts: []lathe.Part{lathe.ToolResult{CallID: a.message.Calls()[0].ID, Name: "weather", Content: "rain"}}}
			if b := c.ask(there, true, []*lathe.ToolSpec{weatherSpec()}, ask, c.back(a.message), result); b.err != nil || b.message.Text() != "It rains." || b.header.Get("X-Lathe-Lost-Joins") != "" {
				t.Fatalf("%v %v: %s", b.err, b.header, b.body)
			}
			sent := there.seen.all()[0]
			if strings.Count(sent, "It rains there.") != 1 || strings.Count(sent, `"name":"weather","arguments":"{\"city\":\"Oslo\"}"`) != 1 || strings.Contains(sent, "lathe1.") {
				t.Errorf("the model was sent %s", sent)
			}
		})
	}
}

// Whatever comes of a call after its client got the beginning of it: if the run does not contain the call, the call is never
// complete, and the stream ends with an error.
func TestEveryWireWithdrawsACall(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	const unreadable = `data: {"error":{"code":500,"message":"The model produced output that does not match the expected peg-native format","type":"server_error"}}` + "\n\n"
	answer := chunk(`{"role":"assistant","content":"The weather is fine."}`, `"stop"`) + "data: [DONE]\n\n"
	again := chatCall("c9", `{"city":"Rome"}`) + chatCallsEnd
	for how, x := range map[string]struct {
		first, then string
		limits      lathe.Limits
	}{
		"cut":                           {first: chatCall("c1", `{"city":`) + unreadable, then: answer},
		"cut after its name":            {first: chatCall("c1") + unreadable, then: answer},
		"cut, then another call":        {first: chatCall("c1", `{"city":`) + unreadable, then: again},
		"whole":                         {first: chatCall("c1", `{"city":`, `"Oslo"}`) + unreadable, then: answer},
		"whole in one piece":            {first: chatCall("c1", `{"city":"Oslo"}`) + unreadable, then: again},
		"whole, with space after it":    {first: chatCall("c1", `{"city":`, `"Oslo"}`, " \n") + unreadable, then: answer},
		"a number":                      {first: chatCall("c1", "1", "2") + unreadable, then: answer},
		"in a fence":                    {first: chatCall("c1", "```json\n{\"city\":", "\"Oslo\"}") + unreadable, then: answer},
		"at the model's limit":          {first: chatCall("c1", `{"city":`) + strings.Replace(chatCallsEnd, "tool_calls", "length", 1), then: again},
		"cut in the last turn of a run": {first: chatCall("c1", `{"city":`) + unreadable, limits: lathe.Limits{MaxIterations: 1}},
	} {
		for _, name := range pieceWires {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				set := step(x.first, x.then)
				set.limits = x.limits
				f := serve(t, set)
				a := wireClients[name].ask(f, true, []*lathe.ToolSpec{weatherSpec()}, lathe.User("hi"))
				w := readWritten(t, a.body)
				if !strings.Contains(a.body, "Do not execute it.") || a.err == nil || w.closed || w.ended || json.Valid([]byte(strings.Join(w.pieces, ""))) {
					t.Errorf("%v: %+v\n%s", a.err, w, a.body)
				}
			})
		}
	}
}

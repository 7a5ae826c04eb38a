package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// A boundServer is a model server of Messages whose model binds thinking to everything before it, with what it has received and
// refused.
type boundServer struct {
	next    http.RoundTripper
	edit    func(n int, answer string) string // edits the answers without a call, numbered from 1; nil: they stay
	mu      sync.Mutex
	answers int
	bodies  []string
	betas   []string
	refused []string
}

func newBoundServer() *boundServer { return &boundServer{next: sim.New(nil).Transport()} }

func (s *boundServer) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	resp, err := s.next.RoundTrip(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies, s.betas = append(s.bodies, string(body)), append(s.betas, r.Header.Get("Anthropic-Beta"))
	if err == nil && resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		s.refused = append(s.refused, string(text))
		resp.Body = io.NopCloser(bytes.NewReader(text))
	} else if err == nil && s.edit != nil {
		text, _ := io.ReadAll(resp.Body)
		if hasAnswer(string(text)) {
			s.answers++
			text = []byte(s.edit(s.answers, string(text)))
		}
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(text)), -1
		resp.Header.Del("Content-Length")
	}
	return resp, err
}

// model returns the model of the server, with the setting thinking_binding.
func (s *boundServer) model(t *testing.T, binding string) lathe.Model {
	t.Helper()
	m, err := provider.Anthropic("sim/fault-bound-thinking", &provider.Options{BaseURL: "http://models.example", Server: provider.Server{Kind: "anthropic", Accepts: map[string]string{"thinking_binding": binding}}, Entry: "x", Transport: s,
		Retry: provider.Retry{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// walk asks a question, appends the answer to the history, and answers the calls of the client until there are no more.
func walk(t *testing.T, c *wireClient, f *fixture, stream bool, history []lathe.Message, question string) []lathe.Message {
	t.Helper()
	history = append(slices.Clip(history), lathe.User(question))
	for range 5 {
		a := c.ask(f, stream, []*lathe.ToolSpec{weatherSpec()}, history...)
		if a.err != nil {
			t.Fatalf("%q: %v\n%s", question, a.err, a.body)
		}
		history = append(history, c.back(a.message))
		calls := a.message.Calls()
		if len(calls) == 0 {
			return history
		}
		for _, call := range calls {
			history = append(history, lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: call.ID, Name: call.Name, Content: `{"sky":"grey"}`}}})
		}
	}
	t.Fatalf("%q: no end", question)
	return nil
}

// A conversation of any client comes back to a model that binds its thinking with everything before each block: rounds of this
// server's tools, turns with calls of both sides, and what another process has kept.
func TestBoundThinkingFindsWhatStoodBefore(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	onWires(t, func(t *testing.T, c *wireClient, stream bool) {
		s, kept := newBoundServer(), store.NewMemory(nil)
		open := func() *fixture { return serve(t, &setting{model: s.model(t, "keep"), store: kept}) }
		f := open()
		var history []lathe.Message
		for i, question := range []string{"What is 7 + 35?", "What is the weather in Oslo, and what is 2 + 3?", "What is 1 + 1?", "What is the weather in Rome?", "What is 5 + 6?", "Thanks."} {
			if i == 3 { // another process
				f.stop()
				f = open()
			}
			history = walk(t, c, f, stream, history, question)
		}
		if len(s.refused) > 0 {
			t.Errorf("refused: %s\nafter %d requests", s.refused[0], len(s.bodies))
		}
		if last := s.bodies[len(s.bodies)-1]; strings.Count(last, `"signature":`) < 5 { // of the calls of this server at least
			t.Errorf("the last request has thinking %d times", strings.Count(last, `"signature":`))
		}
	})
}

// Whatever a session keeps, a turn is whole until it is over: the model server gets the results of the client's calls behind the thinking
// and the results that it knows. What hid in the turn is cut when the next one begins.
func TestRetentionLeavesAnOpenTurnWhole(t *testing.T) {
	t.Parallel()
	onWires(t, func(t *testing.T, c *wireClient, stream bool) {
		for _, other := range []bool{false, true} {
			s, kept := newBoundServer(), store.NewMemory(nil)
			open := func() *fixture {
				return serve(t, &setting{model: s.model(t, "keep"), store: kept, retention: &loop.Retention{}})
			}
			f := open()
			history := []lathe.Message{lathe.User("What is the weather in Oslo, and what is 2 + 3?")}
			a := c.ask(f, stream, []*lathe.ToolSpec{weatherSpec()}, history...)
			calls := a.message.Calls()
			if a.err != nil || len(calls) != 1 {
				t.Fatalf("%v: %s", a.err, a.body)
			}
			if other {
				f.stop()
				f = open()
			}
			history = append(history, c.back(a.message), lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: calls[0].ID, Name: calls[0].Name, Content: `{"sky":"grey"}`}}})
			a = c.ask(f, stream, []*lathe.ToolSpec{weatherSpec()}, history...)
			last := s.bodies[len(s.bodies)-1]
			if a.err != nil || len(s.refused) > 0 || strings.Count(last, `{"type":"thinking"`) != strings.Count(last, `"role":"assistant"`) || strings.Contains(last, `"signature":""`) {
				t.Errorf("another process %v: %v, refused %q, the request\n%s", other, a.err, s.refused, last)
			}
			walk(t, c, f, stream, append(history, c.back(a.message)), "Thanks.")
			if last = s.bodies[len(s.bodies)-1]; strings.Count(last, `{"type":"thinking"`) != 0 {
				t.Errorf("another process %v: the thinking of a turn that is over is in\n%s", other, last)
			}
		}
	})
}

// A block of thinking that can no longer be valid, since the offered tools have changed, is left out and listed: the conversation
// goes on, under either setting.
func TestBoundThinkingAfterAChange(t *testing.T) {
	t.Parallel()
	for _, binding := range []string{"keep", "drop_block"} {
		s, kept := newBoundServer(), store.NewMemory(nil)
		f := serve(t, &setting{model: s.model(t, binding), store: kept})
		c := wireClients["messages"]
		history := walk(t, c, f, false, nil, "What is 7 + 35?")
		f.stop()
		f = serve(t, &setting{model: s.model(t, binding), store: kept, tools: []lathe.Tool{&schemaTool{lathe.ToolSpec{Name: "another", Allowlist: []string{"*"}}}}})
		a := c.ask(f, false, []*lathe.ToolSpec{weatherSpec()}, append(history, lathe.User("What is 1 + 1?"))...)
		if a.err != nil || !strings.Contains(a.message.Text(), "1 + 1 = 2") {
			t.Fatalf("%s: %v %s", binding, a.err, a.body)
		}
		if len(s.refused) == 0 || !strings.Contains(s.refused[0], "bound to a different conversation") {
			t.Errorf("%s: refused %q", binding, s.refused)
		}
		if !strings.Contains(a.body, `"dropped":["messages[1].content[0]","messages[1].content[`) {
			t.Errorf("%s: the blocks are not listed: %s", binding, a.body)
		}
		before := len(s.refused)
		history = append(history, lathe.User("What is 1 + 1?"), c.back(a.message))
		walk(t, c, f, false, history, "Thanks.")
		if len(s.refused) > before { // the refused blocks are known now
			t.Errorf("%s: refused again: %q", binding, s.refused[before:])
		}
	}
}

// A block behind a message that the client has changed is left out and listed, without a request that the server refuses; thinking that was
// written behind the change comes back.
func TestThinkingBehindAChangedMessageIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, binding := range []string{"keep", "drop_block"} {
		for how, stream := range bothWays {
			t.Run(binding+"/"+how, func(t *testing.T) {
				t.Parallel()
				s := newBoundServer()
				f := serve(t, &setting{model: s.model(t, binding)})
				c := wireClients["messages"]
				history := walk(t, c, f, stream, nil, "What is 7 + 35?")
				history = walk(t, c, f, stream, history, "What is 1 + 1?")
				history[0] = lathe.User("What is 7 + 36?")
				a := c.ask(f, stream, []*lathe.ToolSpec{weatherSpec()}, append(history, lathe.User("Hello."))...)
				if a.err != nil || strings.Count(a.body, `"messages[`) != 4 || !strings.Contains(a.body, `"messages[3].content[0]"`) {
					t.Errorf("%v: the four blocks are not listed: %s", a.err, a.body)
				}
				history = append(history, lathe.User("Hello."), c.back(a.message))
				walk(t, c, f, stream, history, "Thanks.")
				if last := s.bodies[len(s.bodies)-1]; len(s.refused) > 0 || strings.Count(last, `"signature":"`) != 1 {
					t.Errorf("refused %q, the last request is\n%s", s.refused, last)
				}
			})
		}
	}
}

// The thinking of the turn that ends an answer comes back with its signature. Clients of Messages get it from a model of Messages.
func TestThinkingOfTheLastTurnComesBack(t *testing.T) {
	t.Parallel()
	for how, stream := range bothWays {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := newBoundServer()
			f := serve(t, &setting{model: s.model(t, "keep")})
			c := wireClients["messages"]
			for _, question := range []string{"What is 7 + 35?", "Hello."} { // with a call of the server, and without
				history := walk(t, c, f, stream, nil, question)
				a := c.ask(f, stream, []*lathe.ToolSpec{weatherSpec()}, append(history, lathe.User("Thanks."))...)
				last := s.bodies[len(s.bodies)-1]
				thoughts := strings.Count(last, `{"type":"thinking"`)
				if a.err != nil || len(s.refused) > 0 || strings.Contains(a.body, `"dropped"`) || strings.Contains(last, `"signature":""`) || thoughts != strings.Count(last, `"role":"assistant"`) {
					t.Errorf("%s: %v, refused %q, the answer\n%s\nto\n%s", question, a.err, s.refused, a.body, last)
				}
			}
		})
	}
}

// With keep, a search does not change the list of tools: what it finds is behind its result, in this request and in later ones.
func TestBoundThinkingAndSearch(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	var tools []lathe.Tool
	for i := range 20 {
		tools = append(tools, tool.Func(fmt.Sprintf("shelf_%02d", i), fmt.Sprintf("Returns what is on shelf %d.", i),
			func(context.Context, struct{}) (string, error) { return "nothing", nil }, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}}))
	}
	onWires(t, func(t *testing.T, c *wireClient, stream bool) {
		s, kept := newBoundServer(), store.NewMemory(nil)
		open := func() *fixture {
			return serve(t, &setting{model: s.model(t, "keep"), store: kept, tools: tools, search: tool.Search{Mode: tool.SearchOn}})
		}
		f := open()
		history := walk(t, c, f, stream, nil, "What is 7 + 35?")
		history = walk(t, c, f, stream, history, "Use the tool search {\"names\":[\"shelf_07\",\"shelf_03\"]}")
		f.stop()
		f = open()
		history = walk(t, c, f, stream, history, "What is 1 + 1?")
		walk(t, c, f, stream, history, "What is 2 + 1?")
		if len(s.refused) > 0 {
			t.Errorf("refused: %s", s.refused[0])
		}
		last := len(s.bodies) - 1
		if n := strings.Count(s.bodies[last], `"tool_addition"`); n == 0 || !strings.Contains(s.betas[last], "inline-tools-2026-09-15") {
			t.Errorf("%d definitions, betas %q, in %s", n, s.betas[last], s.bodies[last])
		}
	})
}

// The run behind the sentence of a waiting run comes back as it was, after the approval and in another process. If the conversation has
// continued before, the result of the call has changed the messages before later thinking, which is then left out of each request, without one
// that the server refuses.
func TestBoundThinkingAndWaitingRuns(t *testing.T) {
	t.Parallel()
	for name, waits := range map[string]bool{"approved at once": false, "approved later": true} {
		for how, stream := range bothWays {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				s := newBoundServer()
				h := open(t, func(set *setting) { set.model = s.model(t, "keep") })
				history := said("user", "What is 7 + 35?")
				next := func(question string) reply {
					got := h.complete(stream, history)
					history += "," + said("assistant", got.text) + "," + said("user", question)
					return got
				}
				next("write 5")
				got := next("What is 1 + 1?")
				if got.reason != "awaiting_approval" {
					t.Fatalf("%+v", got)
				}
				if waits {
					next("What is 2 + 2?")
				}
				h.answerOnly("approve")
				h.rest(got.runID)
				for range 2 {
					if got := next("What is 3 + 3?"); got.reason != "answered" {
						t.Errorf("%+v", got)
					}
				}
				if len(s.refused) > 0 {
					t.Errorf("refused %q", s.refused)
				}
			})
		}
	}
}

// With drop_block, requests with thinking ask the server to drop blocks that it cannot accept, and it does.
func TestServersDropBoundThinking(t *testing.T) {
	t.Parallel()
	s, kept := newBoundServer(), store.NewMemory(nil)
	thinks := func(f *fixture, history ...lathe.Message) *wireAnswer {
		body := strings.TrimSuffix(wireClients["messages"].body(false, nil, history...), "}") + `,"thinking":{"type":"adaptive"}}`
		return wireClients["messages"].send(t.Context(), f, false, body)
	}
	f := serve(t, &setting{model: s.model(t, "drop_block"), store: kept})
	a := thinks(f, lathe.User("What is 7 + 35?"))
	f.stop()
	f = serve(t, &setting{model: s.model(t, "drop_block"), store: kept, tools: []lathe.Tool{&schemaTool{lathe.ToolSpec{Name: "another", Allowlist: []string{"*"}}}}})
	b := thinks(f, lathe.User("What is 7 + 35?"), wireClients["messages"].back(a.message), lathe.User("What is 1 + 1?"))
	if a.err != nil || b.err != nil || len(s.refused) > 0 {
		t.Fatalf("%v, %v, refused %q", a.err, b.err, s.refused)
	}
	last := len(s.bodies) - 1
	if !strings.Contains(s.bodies[last], `"block_binding":{"prefix_mismatch_behavior":"drop_block"}`) || !strings.Contains(s.betas[last], "thinking-binding-controls-2026-08-01") {
		t.Errorf("sent %s\nwith the betas %q", s.bodies[last], s.betas[last])
	}
}

// Clients of Responses and Gemini get the data of such reasoning from a model of their wire, and each model server gets it back in its place.
func TestReasoningOfTheLastTurnComesBackOnItsWire(t *testing.T) {
	t.Parallel()
	for client, of := range map[string]struct {
		wire   lathe.Wire
		member string
	}{"responses": {lathe.WireResponses, `"encrypted_content":"`}, "gemini": {lathe.WireGemini, `"thoughtSignature":"`}} {
		for how, stream := range bothWays {
			t.Run(client+"/"+how, func(t *testing.T) {
				t.Parallel()
				s := newBoundServer()
				m, err := provider.New(of.wire, "sim/fault-strict-signatures", &provider.Options{BaseURL: "http://models.example", Entry: "x", Transport: s, Retry: provider.Retry{Attempts: 1}})
				if err != nil {
					t.Fatal(err)
				}
				f := serve(t, &setting{model: m})
				var history []lathe.Message
				for _, question := range []string{"What is 7 + 35?", "Hello.", "Thanks."} {
					history = walk(t, wireClients[client], f, stream, history, question)
				}
				if last := s.bodies[len(s.bodies)-1]; len(s.refused) > 0 || strings.Count(last, of.member) != 3 {
					t.Errorf("refused %q, and the last request is\n%s", s.refused, last)
				}
			})
		}
	}
}

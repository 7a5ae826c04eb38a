package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/upstreams"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// sentRequests is a script whose requests are kept as their server gets them.
type sentRequests struct {
	byHistory
	tools    *[][]string // each definition in its JSON form
	messages *[][]lathe.Message
}

func (s sentRequests) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	var tools []string
	for _, spec := range req.Tools {
		tools = append(tools, spec.Name+" "+spec.Description+" "+string(spec.Schema))
	}
	*s.tools = append(*s.tools, tools)
	*s.messages = append(*s.messages, slices.Clone(req.Messages))
	return s.byHistory.Generate(ctx, req)
}

// searchedSet is a set of n tools that a run defers.
func searchedSet(t testing.TB, n int, search tool.Search) *tool.Set {
	t.Helper()
	w := &world{}
	tools := make([]lathe.Tool, n)
	for i := range tools {
		g := w.tool(fmt.Sprintf("tool_%02d", i), lathe.ReadOnly)
		g.spec.Description = fmt.Sprintf("Reads the value of number %d.", i)
		tools[i] = g
	}
	set, err := tool.NewSetWithSearch(lathe.Limits{}, search, tools...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func searchLoop(t testing.TB, model lathe.Model, set *tool.Set) *loop.Loop {
	t.Helper()
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll(), Now: func() time.Time { return time.Unix(1_000_000, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	lp, err := loop.New(model, runner, nil)
	if err != nil {
		t.Fatal(err)
	}
	return lp
}

// What a request sends is a prefix of what the next one sends: definitions are appended in load order, whatever the model
// searches for, calls without a search or asks for twice.
func TestDefinitionsOfARequestAreAPrefixOfTheNext(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		var turns byHistory
		for i := range 2 + r.IntN(5) {
			var calls []lathe.ToolCall
			for j := range 1 + r.IntN(3) {
				id := fmt.Sprintf("c%d_%d", i, j)
				switch n := r.IntN(30); r.IntN(4) {
				case 0:
					calls = append(calls, call(id, tool.SearchName, fmt.Sprintf(`{"query":"number %d or %d, %d","limit":%d}`, n, r.IntN(30), r.IntN(30), 1+r.IntN(4))))
				case 1:
					calls = append(calls, call(id, tool.SearchName, fmt.Sprintf(`{"names":["tool_%02d","tool_%02d","nothing"]}`, n, r.IntN(30))))
				case 2:
					calls = append(calls, call(id, fmt.Sprintf("tool_%02d", n), `{"n":1}`))
				default:
					calls = append(calls, call(id, "nothing", `{}`))
				}
			}
			turns = append(turns, ask(calls...))
		}
		turns = append(turns, textTurn("done"))
		sent := sentRequests{turns, &[][]string{}, &[][]lathe.Message{}}
		set := searchedSet(t, 30, tool.Search{Mode: tool.SearchOn, Always: []string{"tool_1?"}, MaxLoaded: 6})
		in := user("x")
		in.Settings = &lathe.Settings{MaxParallel: 1 + r.IntN(4)}
		in.Limits = &lathe.Limits{MaxUnknownTools: 100}
		res, events := collect(t, t.Context(), searchLoop(t, sent, set), in)
		if res.Err != nil {
			t.Fatalf("seed %d: %v", seed, res.Err)
		}
		requests := *sent.tools
		if len(requests[0]) != 11 || !strings.HasPrefix(requests[0][10], tool.SearchName) {
			t.Fatalf("seed %d: the first request has %d definitions: %q", seed, len(requests[0]), requests[0])
		}
		for i := 1; i < len(requests) && len(requests[i]) > 0; i++ { // a request for an answer has none
			if n := len(requests[i-1]); n > len(requests[i]) || !slices.Equal(requests[i-1], requests[i][:n]) {
				t.Errorf("seed %d: request %d changes the definitions of request %d:\n%s", seed, i, i-1, cmp.Diff(requests[i-1], requests[i]))
			}
			before, now := (*sent.messages)[i-1], (*sent.messages)[i]
			if diff := cmp.Diff(before, now[:len(before)]); diff != "" {
				t.Errorf("seed %d: request %d changes messages: %s", seed, i, diff)
			}
			if len(requests[i]) > 11+6 {
				t.Errorf("seed %d: request %d has %d definitions, where 6 may be loaded", seed, i, len(requests[i]))
			}
		}
		checkLoaded(t, events, requests)

		last := slices.DeleteFunc(requests, func(definitions []string) bool { return len(definitions) == 0 })
		next := sentRequests{byHistory{textTurn("done")}, &[][]string{}, &[][]lathe.Message{}}
		in = &loop.Input{Messages: append(slices.Clone(res.History), lathe.User("and now?"))}
		collect(t, t.Context(), searchLoop(t, next, set), in)
		got, want := (*next.tools)[0], last[len(last)-1]
		if len(want) < 11+6 && !slices.Equal(got, want) {
			t.Errorf("seed %d: the next request of the conversation changes the definitions:\n%s", seed, cmp.Diff(want, got))
		}
		if len(got) > 11+6 {
			t.Errorf("seed %d: the next request has %d definitions, where 6 may be loaded", seed, len(got))
		}
	}
}

// checkLoaded holds the events of a run to its requests: what is sent is what was sent first, and what ToolsLoaded says.
func checkLoaded(t *testing.T, events []event.Event, requests [][]string) {
	t.Helper()
	names := func(definitions []string) (names []string) {
		for _, d := range definitions {
			name, _, _ := strings.Cut(d, " ")
			names = append(names, name)
		}
		return names
	}
	want, n := names(requests[0]), 0
	for _, e := range events {
		switch d := e.Data.(type) {
		case *event.ToolsLoaded:
			want = append(want, d.Tools...)
			if len(d.Tools) == 0 || len(d.Hash) != 64 {
				t.Errorf("%+v", d)
			}
		case *event.ModelCallStarted:
			if d.Tools > 0 && !slices.Equal(want, names(requests[n])) {
				t.Errorf("request %d: %q, the events say %q", n, names(requests[n]), want)
			}
			n++
		default:
		}
	}
}

// A run that ends after any event is resumed with the request that it would have made: as bytes, on each wire.
func TestAResumedRunSendsTheToolsThatItLoaded(t *testing.T) {
	t.Parallel()
	turns := byHistory{
		ask(call("s1", tool.SearchName, `{"query":"number 7 or 9","limit":2}`), call("s2", tool.SearchName, `{"names":["tool_03"]}`)),
		ask(call("a", "tool_07", `{"n":1}`), call("b", "tool_20", `{"n":2}`)),
		textTurn("done"),
	}
	set := searchedSet(t, 30, tool.Search{Mode: tool.SearchOn, Always: []string{"tool_00"}})
	input := func() *loop.Input {
		in := user("x")
		in.Park = true
		return in
	}
	whole := sentBytes{byHistory: turns, bytes: &[]string{}}
	l := &log{}
	if res := l.run(t, searchLoop(t, whole, set), input(), 1_000); res == nil || res.Answer != "done" {
		t.Fatalf("%+v", res)
	}
	if got := l.fold(t).Loaded; !slices.Equal(got, []string{"tool_07", "tool_09", "tool_03", "tool_20"}) {
		t.Errorf("loaded %q", got)
	}
	for n := 1; n < len(l.lines); n++ {
		killed, sent := &log{}, sentBytes{byHistory: turns, bytes: &[]string{}}
		killed.run(t, searchLoop(t, sent, set), input(), n)
		if res := killed.run(t, searchLoop(t, sent, set), &loop.Input{Resume: killed.fold(t)}, 1_000); res == nil || res.Answer != "done" {
			t.Fatalf("killed after %d events: %+v", n, res)
		}
		last := (*sent.bytes)[len(*sent.bytes)-1]
		if want := (*whole.bytes)[len(*whole.bytes)-1]; last != want {
			t.Errorf("killed after %d events, the last request is\n%s\nand was\n%s", n, last, want)
		}
		for _, b := range *sent.bytes {
			if !slices.Contains(*whole.bytes, b) {
				t.Errorf("killed after %d events: a request that the whole run has not made:\n%s", n, b)
			}
		}
	}
}

// sentBytes keeps the bytes of each request, on all wires.
type sentBytes struct {
	byHistory
	bytes *[]string
}

func (s sentBytes) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	var all []byte
	for _, w := range []lathe.Wire{lathe.WireOpenAIChat, lathe.WireResponses, lathe.WireMessages, lathe.WireGemini} {
		body, _ := upstreams.Of(w).AppendRequest(nil, req, &wire.EncodeOptions{})
		all = append(all, body...)
	}
	*s.bytes = append(*s.bytes, string(all))
	return s.byHistory.Generate(ctx, req)
}

// A conversation keeps the tools that it called and found. Of more than max_loaded it keeps those that were used last. An error of a
// search, text that is not an answer of it, names that the set does not have, and IDs that a server uses again load nothing.
func TestToolsOfTheHistoryAreLoaded(t *testing.T) {
	t.Parallel()
	set := searchedSet(t, 30, tool.Search{Mode: tool.SearchOn})
	model := &script{turns: []turn{textTurn("done")}}
	in := user("x")
	found, err := json.Marshal(map[string]any{"tools": []any{map[string]any{"name": "tool_09"}}})
	if err != nil {
		t.Fatal(err)
	}
	in.Messages = append(in.Messages,
		lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{call("s", tool.SearchName, `{"query":"x"}`), call("a", "tool_05", `{}`)}},
		lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "s", Name: tool.SearchName, Content: string(found)}}},
		lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: "a", Name: "tool_05", Content: "1"}}},
		lathe.User("and now?"))
	_, events := collect(t, t.Context(), searchLoop(t, model, set), in)
	if got := model.requests()[0].tools; !slices.Equal(got, []string{tool.SearchName, "tool_09", "tool_05"}) {
		t.Errorf("sent %q", got)
	}
	if d := events[0].Data.(*event.RunStarted).Tools; d.Count != 3 || d.Deferred != 28 {
		t.Errorf("%+v", d)
	}

	result := func(id, content string, failed bool) lathe.Message {
		return lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: id, Content: content, IsError: failed}}}
	}
	calls := func(calls ...lathe.Part) lathe.Message { return lathe.Message{Role: lathe.RoleAssistant, Parts: calls} }
	answer := func(names ...string) string {
		return `{"tools":[{"name":"` + strings.Join(names, `"},{"name":"`) + `"}],"more":[{"name":"tool_29"}]}`
	}
	for what, tt := range map[string]struct {
		history []lathe.Message
		want    string
	}{
		"the last ones": {[]lathe.Message{
			calls(call("1", tool.SearchName, `{}`)), result("1", answer("tool_01", "tool_02", "tool_03"), false),
			calls(call("2", "tool_04", `{}`)), result("2", "1", false), calls(call("3", "tool_01", `{}`)), result("3", "1", false)}, "tool_01 tool_03 tool_04"},
		"an error":       {[]lathe.Message{calls(call("1", tool.SearchName, `{}`)), result("1", answer("tool_01"), true)}, ""},
		"no answer":      {[]lathe.Message{calls(call("1", tool.SearchName, `{}`)), result("1", `{"tools":[{"name":"tool_01"}`, false)}, ""},
		"unknown names":  {[]lathe.Message{calls(call("1", tool.SearchName, `{}`)), result("1", answer("", "tool_99", "tool_search", "tool_02"), false)}, "tool_02"},
		"another's text": {[]lathe.Message{calls(call("1", "tool_02", `{}`)), result("1", answer("tool_01"), false)}, "tool_02"},
		"one ID": {[]lathe.Message{calls(call("1", tool.SearchName, `{}`)), result("1", answer("tool_01"), false),
			calls(call("1", "tool_02", `{}`)), result("1", answer("tool_03"), false)}, "tool_01 tool_02"},
	} {
		model := &script{turns: []turn{textTurn("done")}}
		in := user("x")
		in.Messages = append(append(in.Messages, tt.history...), lathe.User("and now?"))
		collect(t, t.Context(), searchLoop(t, model, searchedSet(t, 30, tool.Search{Mode: tool.SearchOn, MaxLoaded: 3})), in)
		if len(model.requests()) != 1 {
			t.Errorf("%s: no request", what)
			continue
		}
		if got := strings.Join(model.requests()[0].tools, " "); got != strings.TrimSpace(tool.SearchName+" "+tt.want) {
			t.Errorf("%s: sent %q", what, got)
		}
	}
}

// A run without tools, a relayed one and one whose client has a search of its own defer nothing.
func TestRunsThatDeferNothing(t *testing.T) {
	t.Parallel()
	set := searchedSet(t, 30, tool.Search{Mode: tool.SearchOn})
	model := &script{turns: []turn{textTurn("done")}}
	in := user("x")
	in.Settings = &lathe.Settings{ToolUseMode: lathe.ModeDisabled}
	res, _ := collect(t, t.Context(), searchLoop(t, model, set), in)
	if len(res.Withheld) != 30 {
		t.Errorf("a run without tools withholds %d", len(res.Withheld))
	}
	in = user("x")
	in.ClientTools = []*lathe.ToolSpec{{Name: tool.SearchName}}
	collect(t, t.Context(), searchLoop(t, model, set), in)
	if got := model.requests()[1].tools; len(got) != 31 {
		t.Errorf("beside a client's search, %d definitions are sent", len(got))
	}
}

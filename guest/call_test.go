package guest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/guest"
	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
	"github.com/lathe-run/lathe/policy"
)

// definition is the JSON of a function that takes anything.
func definition(name string) string {
	return `{"type":"function","function":{"name":"` + name + `","parameters":{"type":"object"}}}`
}

// The outcome of a call: the text that the model reads, the events, the metric, how the run
// and the guest end.
func TestGuestFunctionOutcomes(t *testing.T) {
	t.Parallel()
	const answered, fault = lathe.ReasonAnswered, lathe.ReasonGuestFault
	grow := func(need, from int32) string { // asks for need bytes until it has from
		return Get(outLenPtr) + Load(0) + Const(from) + LtU + If(Get(outLenPtr), Const(need), Store(0), Const(-28), Return)
	}
	wasi := func(code string) string { return strings.ReplaceAll(code, Const(-28), Const(-51)) }
	fill := func(n int32) string { // a string of n bytes
		return Get(outPtr) + Const('0') + Const(n) + MemoryFill + Get(outPtr) + Const('"') + Store8(0) +
			Get(outPtr) + Const(n-1) + Add + Const('"') + Store8(0) + Get(outLenPtr) + Const(n) + Store(0) + Const(0)
	}
	for _, tc := range []struct {
		name   string
		tool   func(g *spear) // puts it at 3
		flow   flow
		limits lathe.Limits
		opts   guest.RunOptions
		asks   string // another name than the tool's

		code   lathe.Code
		rc     string // lathe_tool_call_failures_total
		reason lathe.Reason
		read   string // a part of the text that the model reads
	}{
		{name: "ok", tool: func(g *spear) { g.place(3, 0, textTool(g, 700, `{"x":1}`)) }, reason: answered, read: `{"x":1}`},
		{name: "text", tool: func(g *spear) { g.place(3, 0, textTool(g, 700, `hello`)) }, reason: answered, read: `hello`},
		{name: "unknown tool", tool: func(g *spear) { g.place(3, 0, textTool(g, 700, `1`)) }, asks: "nothing",
			code: lathe.CodeUnknownTool, rc: "unknown_tool=1", reason: answered, read: `"available_tools":["f"]`},
		{name: "unknown tool, strict", tool: func(g *spear) { g.place(3, 0, textTool(g, 700, `1`)) }, asks: "nothing", flow: flow{params: []any{"strict_unknown_tool", true}},
			code: lathe.CodeUnknownTool, rc: "unknown_tool=1", reason: lathe.ReasonUnknownTool, read: `unknown_tool`},
		{name: "rc -5", tool: func(g *spear) { g.place(3, 0, Const(-5)) },
			code: lathe.CodeExecutionFailed, rc: "-5=1", reason: answered, read: `"rc":-5`},
		{name: "rc 17", tool: func(g *spear) { g.place(3, 0, Const(17)) }, // numbers without a name share a series
			code: lathe.CodeExecutionFailed, rc: "other=1", reason: answered, read: `"rc":17`},
		{name: "ENOSPC, then success", tool: func(g *spear) { g.place(3, 0, grow(9000, 9000), fill(9000)) }, reason: answered, read: `0000`},
		{name: "ENOSPC of WASI, then success", tool: func(g *spear) { g.place(3, 0, wasi(grow(9000, 9000)), fill(9000)) }, reason: answered, read: `0000`},
		{name: "ENOSPC of WASI beyond the limit", tool: func(g *spear) { g.place(3, 0, wasi(grow(9000, 9000)), fill(9000)) }, flow: flow{params: []any{"max_tool_output_bytes", 8999}},
			code: lathe.CodeOutputTooLarge, rc: "-28=1", reason: answered, read: `tool_output_too_large`},
		{name: "ENOSPC of WASI with room enough", tool: func(g *spear) { g.place(3, 0, Get(outLenPtr), Const(1), Store(0), Const(-51)) },
			code: lathe.CodeExecutionFailed, rc: "-51=1", reason: answered, read: `"rc":-51`},
		{name: "ENOSPC at the limit", tool: func(g *spear) { g.place(3, 0, grow(9000, 9000), fill(9000)) }, flow: flow{params: []any{"max_tool_output_bytes", 9000}}, reason: answered, read: `0000`},
		{name: "ENOSPC beyond the limit", tool: func(g *spear) { g.place(3, 0, grow(9000, 9000), fill(9000)) }, flow: flow{params: []any{"max_tool_output_bytes", 8999}},
			code: lathe.CodeOutputTooLarge, rc: "-28=1", reason: answered, read: `tool_output_too_large`},
		{name: "ENOSPC beyond the arena", tool: func(g *spear) { g.place(3, 0, grow(arenaLen, arenaLen), fill(9000)) },
			code: lathe.CodeOutputTooLarge, rc: "-28=1", reason: answered, read: `tool_output_too_large`},
		{name: "ENOSPC with room enough", tool: func(g *spear) { g.place(3, 0, Get(outLenPtr), Const(1), Store(0), Const(-28)) },
			code: lathe.CodeExecutionFailed, rc: "-5=1", reason: answered, read: `"rc":-5`},
		{name: "says it wrote more than it could", tool: func(g *spear) { g.place(3, 0, Get(outLenPtr), Const(1<<20), Store(0), Const(0)) },
			code: lathe.CodeInvalidOutput, rc: "-5=1", reason: answered, read: `invalid_output`},
		{name: "trap", tool: func(g *spear) { g.place(3, 0, Unreachable) },
			code: lathe.CodeExecutionFailed, rc: "-5=1", reason: answered, read: `"rc":-5`},
		{name: "T30: endless recursion", tool: func(g *spear) { g.place(3, 0, Get(0), Get(1), Get(2), Get(3), Call(len(g.index))) },
			code: lathe.CodeExecutionFailed, rc: "-5=1", reason: answered, read: `"rc":-5`},
		{name: "T30: endless loop", tool: func(g *spear) { g.place(3, 0, Loop(Br(0)), Const(0)) }, limits: lathe.Limits{ToolTimeout: 50 * time.Millisecond},
			code: lathe.CodeTimeout, rc: "timeout=1", reason: fault, read: `timeout`},
		{name: "T30: calls without a loop", tool: func(g *spear) {
			f := len(g.index)
			g.Func("", T{I32}, nil, 0, Get(0), If(strings.Repeat(Get(0)+Const(1)+Sub+Call(f), 2)))
			g.place(3, 0, Const(60), Call(f), Const(0))
		}, limits: lathe.Limits{ToolTimeout: 50 * time.Millisecond}, code: lathe.CodeTimeout, rc: "timeout=1", reason: fault, read: `timeout`},
		{name: "T30: memory bomb", tool: func(g *spear) {
			g.place(3, 0, Loop(Const(1), MemoryGrow, Const(-1), Eq, If(Unreachable), Br(0)), Const(0))
		}, code: lathe.CodeExecutionFailed, rc: "execution_failed=1", reason: fault, read: `execution_failed`},
		{name: "T30: flood of host calls", tool: func(g *spear) { g.place(3, 0, Loop(g.call("cchat_close", 1), Drop, Br(0)), Const(0)) },
			code: lathe.CodeExecutionFailed, rc: "execution_failed=1", reason: fault, read: `execution_failed`},
		{name: "T32: reads out of bounds", tool: func(g *spear) { g.place(3, 0, Const(-4), Load(0)) },
			code: lathe.CodeExecutionFailed, rc: "execution_failed=1", reason: fault, read: `execution_failed`},
		{name: "ends itself", tool: func(g *spear) { g.place(3, 0, Const(3), Call(g.index["proc_exit"]), Const(0)) },
			code: lathe.CodeExecutionFailed, rc: "execution_failed=1", reason: fault, read: `execution_failed`},
		{name: "bad UTF-8", tool: func(g *spear) { g.place(3, 0, textTool(g, 700, "\"\xff\xfe\"")) },
			code: lathe.CodeInvalidOutput, rc: "-5=1", reason: answered, read: `invalid_output`},
		{name: "wrong signature", tool: func(g *spear) { g.Elem(3, g.Func("", T{I32}, T{I32}, 0, Const(0))) },
			code: lathe.CodeExecutionFailed, rc: "-5=1", reason: answered, read: `"rc":-5`},
		{name: "T32: a function of the host", tool: func(g *spear) { g.Elem(3, g.index["spear_epoll_wait"]) },
			code: lathe.CodeExecutionFailed, rc: "-5=1", reason: answered, read: `"rc":-5`},
		{name: "T30: waits for ever", tool: func(g *spear) {
			g.place(3, 0, Const(wordAt), Const(64), Store(0), g.call("spear_epoll_wait", g.call("spear_epoll_create"), recordAt, wordAt, -1))
		}, limits: lathe.Limits{ToolTimeout: 50 * time.Millisecond}, code: lathe.CodeTimeout, rc: "timeout=1", reason: fault, read: `timeout`},
		{name: "trap after memory was refused", tool: func(g *spear) { g.place(3, 0, Unreachable) }, flow: flow{before: Const(60_000) + MemoryGrow + Drop},
			code: lathe.CodeExecutionFailed, rc: "-5=1", reason: answered, read: `"rc":-5`},
		{name: "null funcref", tool: func(*spear) {},
			code: lathe.CodeExecutionFailed, rc: "-5=1", reason: answered, read: `"rc":-5`},
		{name: "no arena and no allocator", tool: func(g *spear) { g.place(3, 0, textTool(g, 700, `1`)) }, flow: flow{noArena: true},
			code: lathe.CodeExecutionFailed, rc: "-14=1", reason: answered, read: `"rc":-14`},
		{name: "T32: arena outside of memory", tool: func(g *spear) { g.place(3, 0, textTool(g, 700, `1`)) }, flow: flow{params: []any{"tool_arena_len", 1 << 20}},
			code: lathe.CodeExecutionFailed, rc: "execution_failed=1", reason: fault, read: `execution_failed`},
		{name: "T32: arena that wraps around", tool: func(g *spear) { g.place(3, 0, textTool(g, 700, `1`)) }, flow: flow{params: []any{"tool_arena_ptr", -8, "tool_arena_len", 64}},
			code: lathe.CodeExecutionFailed, rc: "execution_failed=1", reason: fault, read: `execution_failed`},
		{name: "arena too small for the arguments", tool: func(g *spear) { g.place(3, 0, textTool(g, 700, `1`)) }, flow: flow{params: []any{"tool_arena_len", 16}},
			code: lathe.CodeExecutionFailed, rc: "-28=1", reason: answered, read: `"rc":-28`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := newGuest()
			tc.tool(g)
			f := tc.flow
			f.prompt, f.flags, f.functions = "go", 3, map[int]string{3: definition("f")}
			name := "f"
			if tc.asks != "" {
				name = tc.asks
			}
			model := asks(name)
			w := newWorld(model)
			w.limits = tc.limits
			r := runGuest(t, f.build(g), w, &guest.Limits{HostCalls: 10_000, MemoryPages: 64}, &tc.opts)
			if tc.reason == fault {
				r.faulted(t)
			} else {
				r.ended(t, 0)
			}
			calls := w.calls()
			if len(calls) != 1 {
				t.Fatalf("%d results", len(calls))
			}
			if c := calls[0]; c.ErrorType != tc.code || !strings.Contains(c.Result, tc.read) {
				t.Errorf("error_type %q with %.200s; want %q with %s", c.ErrorType, c.Result, tc.code, tc.read)
			}
			want := []string(nil)
			if tc.rc != "" {
				want = []string{tc.rc}
			}
			if got := w.rc(t); !slices.Equal(got, want) {
				t.Errorf("lathe_tool_call_failures_total: %q, want %q", got, want)
			}
			if got := w.ends(); !slices.Equal(got, []lathe.Reason{tc.reason}) {
				t.Errorf("runs end %q, want %q", got, tc.reason)
			}
			if tc.reason == answered && r.at("choices", 0, "message", "content") != "done" {
				t.Errorf("the answer: %s", r.out)
			}
			if tc.reason == lathe.ReasonUnknownTool && r.at("error", "code") != "unknown_tool" {
				t.Errorf("the answer: %s", r.out)
			}
		})
	}
}

// A function that failed can be called again: a trap, too deep a recursion and a failure leave nothing
// behind that a later call would meet. A function whose place in the table changes is the new one.
func TestGuestFunctionIsCalledAgainAfterItFailed(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{
		"trap": Unreachable, "failure": Const(-3) + Return,
		"recursion": Get(0) + Get(1) + Get(2) + Get(3) + Call(34) + Return,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGuest()
			count := g.Global(true, 0)
			if endless := g.Func("", toolType, T{I32}, 0, Get(0), Get(1), Get(2), Get(3), Call(34)); endless != 34 {
				t.Fatalf("the function is number %d", endless)
			}
			g.place(3, 0, GetGlobal(count), Eqz, If(Const(1), SetGlobal(count), first), textTool(g, 700, `"second"`))
			w := newWorld(asks("f", "f", "f"))
			runGuest(t, (&flow{prompt: "go", flags: 2, functions: map[int]string{3: definition("f")}}).build(g), w, nil, nil).ended(t, 0)
			var got []string
			for _, c := range w.calls() {
				got = append(got, c.Status)
			}
			if want := []string{"error", "ok", "ok"}; !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
	t.Run("changed table", func(t *testing.T) {
		t.Parallel()
		g := newGuest()
		const tableGet, tableSet = "\x25\x00", "\x26\x00"
		g.place(4, 0, textTool(g, 720, `"second"`))
		g.place(3, 0, Const(3), Const(4), tableGet, tableSet, textTool(g, 700, `"first"`))
		w := newWorld(asks("f", "f"))
		runGuest(t, (&flow{prompt: "go", flags: 2, functions: map[int]string{3: definition("f")}}).build(g), w, nil, nil).ended(t, 0)
		if c := w.calls(); len(c) != 2 || c[0].Result != "first" || c[1].Result != "second" {
			t.Errorf("%d results, not first and second", len(c))
		}
	})
}

// A call that a stage of the runner ends does not reach the guest.
func TestGuestFunctionsGoThroughTheRunner(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		world  func(w *world)
		schema string
		code   lathe.Code
	}{
		{"schema", func(*world) {}, `{"type":"object","required":["z"]}`, lathe.CodeInvalidArguments},
		{"policy", func(w *world) { w.policy = policy.Effects{} }, `{"type":"object"}`, lathe.CodePolicyDenied},
		{"size", func(w *world) { w.limits.MaxToolArgsBytes = 5 }, `{"type":"object"}`, lathe.CodeArgumentsTooLarge},
		{"JSON", func(w *world) { w.model.(*script).turns[0][0].Arguments = `{"a":` }, `{"type":"object"}`, lathe.CodeInvalidJSON},
		{"approval", func(w *world) { w.policy = policy.Effects{Writes: lathe.Ask} }, `{"type":"object"}`, lathe.CodePolicyDenied},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := newGuest()
			g.place(3, 0, Const(3), Call(g.index["proc_exit"]), Const(0)) // who comes here ends
			f := &flow{prompt: "go", flags: 2, functions: map[int]string{3: `{"name":"f","parameters":` + tc.schema + `}`}}
			w := newWorld(asks("f"))
			tc.world(w)
			r := runGuest(t, f.build(g), w, nil, nil)
			r.ended(t, 0)
			calls := w.calls()
			if len(calls) != 1 || calls[0].ErrorType != tc.code {
				t.Errorf("%d results, want one %s", len(calls), tc.code)
			}
			if got := w.rc(t); !slices.Equal(got, []string{string(tc.code) + "=1"}) {
				t.Errorf("lathe_tool_call_failures_total: %q", got)
			}
			if r.at("choices", 0, "message", "content") != "done" {
				t.Errorf("the answer: %s", r.out)
			}
		})
	}
}

package guest_test

import (
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
)

// sumTool adds up the whole numbers in its arguments: {"a":7,"b":35} gives {"sum":42}. It uses the
// addresses from 700 to 799.
func sumTool(g *spear, at int) {
	const i, n, in, total, c, p = 4, 5, 6, 7, 8, 9
	g.Data(700, `{"sum":`)
	isDigit := Get(c) + Const('0') + Sub + Const(10) + LtU
	g.place(at, 6,
		Loop(
			Get(argsPtr), Get(i), Add, Load8(0), Set(c),
			isDigit, "\x04\x40", Get(n), Const(10), Mul, Get(c), Const('0'), Sub, Add, Set(n), Const(1), Set(in),
			"\x05", Get(in), If(Get(total), Get(n), Add, Set(total), Const(0), Set(n), Const(0), Set(in)),
			"\x0b",
			Get(i), Const(1), Add, Tee(i), Get(argsLen), GtU, Eqz, BrIf(0)),
		Const(799), Set(p), Get(p), Const('}'), Store8(0),
		Loop(Get(p), Const(1), Sub, Tee(p), Get(total), Const(10), "\x70", Const('0'), Add, Store8(0), Get(total), Const(10), DivU, Tee(total), BrIf(0)),
		Get(outPtr), Const(700), Const(7), MemoryCopy,
		Get(outPtr), Const(7), Add, Get(p), Const(800), Get(p), Sub, MemoryCopy,
		Get(outLenPtr), Const(807), Get(p), Sub, Store(0), Const(0))
}

const sumPrompt = "Please call sum for a=7 and b=35."

// The sample of the contract: a guest registers sum, the simulated model calls it with two integers out of
// the prompt, the answer arrives by cchat_recv, and the metrics are those of the run.
func TestGuestSumsWithAutoToolCall(t *testing.T) {
	t.Parallel()
	g := newGuest()
	sumTool(g, 3)
	f := &flow{prompt: sumPrompt, flags: 3, functions: map[int]string{3: sumJSON}, params: []any{"model", "gpt-4o-mini", "max_total_tool_calls", 4, "max_iterations", 4}}
	w := newWorld(nil)
	r := runGuest(t, f.build(g), w, nil, nil)
	r.ended(t, 0)
	if got, _ := r.at("choices", 0, "message", "content").(string); !strings.Contains(got, "42") {
		t.Errorf("the answer is %q, which has no 42", got)
	}
	if got := r.at("choices", 0, "finish_reason"); got != "stop" {
		t.Errorf("finish_reason: %v", got)
	}
	if got := r.at("_spear", "backend"); got != "sim" {
		t.Errorf("_spear.backend: %v", got)
	}
	calls := w.calls()
	if len(calls) != 1 || calls[0].Tool != "sum" || calls[0].Result != `{"sum":42}` {
		t.Fatalf("results: %+v", calls)
	}
	var usage lathe.Usage
	for _, e := range w.events {
		if d, ok := e.Data.(*event.ModelCallFinished); ok {
			usage.Add(d.Usage)
		}
	}
	if want := string(usageJSON(usage)); r.metrics != want || usage.InputTokens == 0 || r.Sends != 1 || r.Usage != usage {
		t.Errorf("metrics %s, want %s; %d sends, %+v", r.metrics, want, r.Sends, r.Usage)
	}
	if req := w.requests[0]; req.Model != "gpt-4o-mini" || req.Limits.MaxIterations != 4 || req.Limits.MaxToolCalls != 4 || !strings.HasPrefix(req.Run.SessionID, "guest_") {
		t.Errorf("request: %+v", req)
	}
}

// Without flag 2 the calls come back and nothing is executed; without flag 1 there are no metrics.
func TestGuestWithoutAutoToolCallExecutesNothing(t *testing.T) {
	t.Parallel()
	g := newGuest()
	sumTool(g, 3)
	f := &flow{prompt: sumPrompt, flags: 0, functions: map[int]string{3: sumJSON}}
	w := newWorld(nil)
	r := runGuest(t, f.build(g), w, nil, nil)
	r.ended(t, 0)
	if got := r.at("choices", 0, "message", "tool_calls", 0, "function", "name"); got != "sum" {
		t.Errorf("the call is of %v", got)
	}
	if got := r.at("choices", 0, "finish_reason"); got != "tool_calls" {
		t.Errorf("finish_reason: %v", got)
	}
	if len(w.calls()) != 0 || r.metrics != "{}" {
		t.Errorf("results %+v, metrics %s", w.calls(), r.metrics)
	}
	for _, e := range w.events {
		if _, ok := e.Data.(*event.ToolCallExecuted); ok {
			t.Error("a function was executed")
		}
	}
}

package wasmrt_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/wasmrt"
	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
)

// A guest that recurses without end is stopped while the engine has copied little, whatever its frames hold. Its functions can be called
// again.
func TestRecursionIsBounded(t *testing.T) {
	t.Parallel()
	rt := runtime(t, nil)
	for _, h := range Hostile() {
		if h.Limit != "stack" {
			continue
		}
		t.Run(h.Name, func(t *testing.T) {
			t.Parallel()
			mod, err := rt.Compile(t.Context(), h.Bytes, nil)
			if err != nil {
				t.Fatal(err)
			}
			i, err := mod.Instantiate(t.Context(), nil)
			if h.AtStart {
				want(t, err, wasmrt.KindLimit, "stack")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer i.Close()
			f, err := i.Func("run")
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				size := f.Stack()
				if size() == 0 || size() > 1<<20 {
					t.Fatalf("a stack of %d bytes before the call", size())
				}
				err := f.Invoke(t.Context(), nil)
				want(t, err, wasmrt.KindLimit, "stack")
				if err != nil && !strings.Contains(err.Error(), "8 MiB") {
					t.Errorf("the error does not name the bound: %v", err)
				}
				if n := size(); n <= wasmrt.MaxStack || n > 3*wasmrt.MaxStack {
					t.Errorf("a stack of %d bytes", n)
				}
			}
		})
	}
}

// recursive is sum(n) = n + sum(n-1), and the same in a table.
func recursive() *Module {
	m := New()
	m.Func("sum", T{I32}, T{I32}, 0, Get(0), "\x04\x7f", Get(0)+Get(0)+Const(1)+Sub+Call(0)+Add, "\x05", Const(0), "\x0b")
	m.Func("", nil, nil, 0)
	m.Table("table", 1, 1)
	m.Elem(0, 0)
	return m
}

// Deep recursion that stays within half of the bound is not stopped, however often it is repeated.
func TestDeepRecursionIsAllowed(t *testing.T) {
	t.Parallel()
	const depth = 50_000
	sum := uint32(depth * (depth + 1) / 2 & (1<<32 - 1))
	i := start(t, compile(t, runtime(t, nil), recursive(), nil), nil)
	byName, err := i.Func("sum")
	if err != nil {
		t.Fatal(err)
	}
	byPlace, err := i.TableFunc(0, []wasmrt.ValueType{wasmrt.I32}, []wasmrt.ValueType{wasmrt.I32})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range slices.Repeat([]*wasmrt.Func{byName, byPlace}, 3) {
		stack, size := []uint64{depth}, f.Stack()
		if err := f.Invoke(t.Context(), stack); err != nil || wasmrt.Uint32(stack[0]) != sum {
			t.Fatalf("%d, want %d (%v)", stack[0], sum, err)
		}
		if n := size(); n < depth*16 || n > wasmrt.MaxStack {
			t.Errorf("a stack of %d bytes", n)
		}
	}
	// What went too deep does not count afterwards.
	want(t, byName.Invoke(t.Context(), []uint64{1 << 30}), wasmrt.KindLimit, "stack")
	stack := []uint64{depth}
	if err := byName.Invoke(t.Context(), stack); err != nil || wasmrt.Uint32(stack[0]) != sum {
		t.Errorf("%d, want %d (%v)", stack[0], sum, err)
	}
}

// Calls within calls count together: what recurses through the host is stopped as well.
func TestCallsWithinCallsShareTheStack(t *testing.T) {
	t.Parallel()
	levels := 0
	var deepest error
	rt := runtime(t, &wasmrt.Options{Hosts: []wasmrt.HostModule{{Name: "host", Funcs: []wasmrt.HostFunc{
		{Name: "again", Fn: func(ctx context.Context, i *wasmrt.Instance, _ []uint64) error {
			levels++
			if _, err := i.Invoke(ctx, "run"); deepest == nil {
				deepest = err
			}
			return nil
		}},
	}}}})
	m := New()
	m.Func("run", nil, nil, 0, Call(m.Import("host", "again", nil, nil)))
	i := start(t, compile(t, rt, m, nil), nil)
	if _, err := i.Invoke(t.Context(), "run"); err != nil {
		t.Error(err)
	}
	want(t, deepest, wasmrt.KindLimit, "stack")
	if levels < 100 || levels > wasmrt.MaxStack/10_000 {
		t.Errorf("%d calls within each other", levels)
	}
}

// A start function is called once, after what it refers to is in place, also if it is one of the host, and not before its module is valid.
func TestStartFunctions(t *testing.T) {
	t.Parallel()
	calls := 0
	rt := runtime(t, &wasmrt.Options{Hosts: []wasmrt.HostModule{{Name: "host", Funcs: []wasmrt.HostFunc{
		{Name: "start", Fn: func(context.Context, *wasmrt.Instance, []uint64) error { calls++; return nil }},
	}}}})
	m := New()
	imported := m.Import("host", "start", nil, nil)
	m.Memory(1, 1)
	m.Data(0, "\x07")
	m.Global(true, 0)
	m.Export("g", 3, 0)
	m.Start(m.Func("", nil, nil, 0, Call(imported), GetGlobal(0), Const(0), Load8(0), Add, SetGlobal(0)))
	i := start(t, compile(t, rt, m, nil), nil)
	if v, _ := i.Global("g"); v != 7 || calls != 1 {
		t.Errorf("the global is %d, the host was called %d times", v, calls)
	}
	m = New()
	m.Start(m.Import("host", "start", nil, nil))
	m.Func("f", nil, nil, 0)
	if start(t, compile(t, rt, m, nil), nil); calls != 2 {
		t.Errorf("the host was called %d times", calls)
	}
	for name, params := range map[string]T{"parameters": {I32}, "results": nil} {
		m := New()
		m.Start(m.Func("", params, T{I32}, 0, Const(0)))
		if _, err := rt.Compile(t.Context(), m.Bytes(), nil); wasmrt.KindOf(err) != wasmrt.KindInvalid {
			t.Errorf("a start function with %s: %v", name, err)
		}
	}
}

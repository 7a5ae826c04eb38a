package wasmrt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/leaktest"
	"github.com/lathe-run/lathe/internal/wasmrt"
	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func runtime(t testing.TB, opts *wasmrt.Options) *wasmrt.Runtime {
	t.Helper()
	rt, err := wasmrt.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	})
	return rt
}

func compile(t testing.TB, rt *wasmrt.Runtime, m *Module, limits *wasmrt.Limits) *wasmrt.Module {
	t.Helper()
	mod, err := rt.Compile(t.Context(), m.Bytes(), limits)
	if err != nil {
		t.Fatal(err)
	}
	return mod
}

func start(t testing.TB, mod *wasmrt.Module, opts *wasmrt.InstanceOptions) *wasmrt.Instance {
	t.Helper()
	i, err := mod.Instantiate(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	return i
}

// want checks the kind of an error and the limit that it names.
func want(t testing.TB, err error, kind wasmrt.Kind, limit string) {
	t.Helper()
	var e *wasmrt.Error
	if !errors.As(err, &e) || e.Kind != kind || e.Limit != limit {
		t.Errorf("got %v, want %v %s", err, kind, limit)
	}
}

func sum() *Module {
	m := New()
	m.Func("sum", T{I32, I32}, T{I32}, 0, Get(0), Get(1), Add)
	return m
}

func Example() {
	ctx := context.Background()
	rt, err := wasmrt.New(nil)
	if err != nil {
		panic(err)
	}
	defer rt.Close()
	module, err := rt.Compile(ctx, sum().Bytes(), nil)
	if err != nil {
		panic(err)
	}
	inst, err := module.Instantiate(ctx, nil)
	if err != nil {
		panic(err)
	}
	defer inst.Close()
	res, err := inst.Invoke(ctx, "sum", 7, 35)
	fmt.Println(res, err)
	// Output: [42] <nil>
}

const wasi = "wasi_snapshot_preview1"

// A guest that exceeds each limit, and the error that it gets.
func TestT30Limits(t *testing.T) {
	t.Parallel()
	hosts := []wasmrt.HostModule{{Name: "host", Funcs: []wasmrt.HostFunc{
		{Name: "nop", Fn: func(context.Context, *wasmrt.Instance, []uint64) error { return nil }},
	}}}
	engines := map[string]*wasmrt.Runtime{"": runtime(t, &wasmrt.Options{Hosts: hosts}), " interpreted": runtime(t, &wasmrt.Options{Hosts: hosts, Interpreter: true})}
	for _, tt := range []struct {
		name  string
		build func(m *Module)
		lim   wasmrt.Limits
		kind  wasmrt.Kind
		limit string
	}{
		{"recursion", func(m *Module) { m.Func("run", nil, nil, 0, Call(0)) }, wasmrt.Limits{}, wasmrt.KindLimit, "stack"},
		{"host call flood", func(m *Module) {
			f := m.Import("host", "nop", nil, nil)
			m.Func("run", nil, nil, 0, Loop(Call(f), Br(0)))
		}, wasmrt.Limits{HostCalls: 1000}, wasmrt.KindLimit, "host_calls"},
		{"wasi call flood", func(m *Module) {
			f := m.Import(wasi, "sched_yield", nil, T{I32})
			m.Func("run", nil, nil, 0, Loop(Call(f), Drop, Br(0)))
		}, wasmrt.Limits{HostCalls: 1000}, wasmrt.KindLimit, "host_calls"},
		{"a sleeper", func(m *Module) { // one subscription: the clock, in an hour
			f := m.Import(wasi, "poll_oneoff", T{I32, I32, I32, I32}, T{I32})
			m.Memory(1, 1)
			m.Data(24, "\x00\xa0\xb8\x30\x46\x03\x00\x00")
			m.Func("run", nil, nil, 0, Loop(Const(0), Const(64), Const(1), Const(128), Call(f), Drop, Br(0)))
		}, wasmrt.Limits{HostCalls: 1000}, wasmrt.KindLimit, "host_calls"},
		{"output flood", func(m *Module) {
			f := m.Import(wasi, "fd_write", T{I32, I32, I32, I32}, T{I32})
			m.Memory(1, 1)
			m.Data(0, "\x00\x00\x00\x00\x00\x80\x00\x00") // 32 KiB at 0
			m.Func("run", nil, nil, 0, Loop(Const(1), Const(0), Const(1), Const(8), Call(f), Drop, Br(0)))
		}, wasmrt.Limits{}, wasmrt.KindLimit, "stdout_bytes"},
		{"memory bomb that goes on", func(m *Module) {
			m.Memory(1, -1)
			m.Func("run", nil, nil, 0, Loop(Const(1), MemoryGrow, Const(-1), Eq, If(Unreachable), Br(0)))
		}, wasmrt.Limits{MemoryPages: 8}, wasmrt.KindLimit, "memory_pages"},
		{"memory out of bounds", func(m *Module) {
			m.Memory(1, 1)
			m.Func("run", nil, nil, 0, Const(65536), Load(0), Drop)
		}, wasmrt.Limits{}, wasmrt.KindMemory, ""},
		{"trap", func(m *Module) { m.Func("run", nil, nil, 0, Unreachable) }, wasmrt.Limits{}, wasmrt.KindTrap, ""},
		{"division by zero", func(m *Module) { m.Func("run", nil, nil, 0, Const(1), Const(0), DivU, Drop) }, wasmrt.Limits{}, wasmrt.KindTrap, ""},
		{"exit", func(m *Module) {
			f := m.Import(wasi, "proc_exit", T{I32}, nil)
			m.Func("run", nil, nil, 0, Const(3), Call(f))
		}, wasmrt.Limits{}, wasmrt.KindExit, ""},
		{"an exit that looks like a deadline", func(m *Module) {
			f := m.Import(wasi, "proc_exit", T{I32}, nil)
			m.Func("run", nil, nil, 0, Const(-0x10000001), Call(f))
		}, wasmrt.Limits{}, wasmrt.KindExit, ""},
		{"descriptor bomb", func(m *Module) {
			f := m.Import(wasi, "fd_renumber", T{I32, I32}, T{I32})
			m.Func("run", nil, nil, 0, Const(1), Const(0x7fffffff), Call(f), Drop)
		}, wasmrt.Limits{}, wasmrt.KindLimit, "open_files"},
	} {
		for engine, rt := range engines {
			t.Run(tt.name+engine, func(t *testing.T) {
				t.Parallel()
				m := New()
				tt.build(m)
				i := start(t, compile(t, rt, m, &tt.lim), nil)
				_, err := i.Invoke(t.Context(), "run")
				want(t, err, tt.kind, tt.limit)
				if !i.Spent() {
					t.Error("the instance counts as whole")
				}
			})
		}
	}
}

func TestT30OutputIsBounded(t *testing.T) {
	t.Parallel()
	m := New()
	f := m.Import(wasi, "fd_write", T{I32, I32, I32, I32}, T{I32})
	m.Memory(1, 1)
	m.Data(0, "\x10\x00\x00\x00\x0a\x00\x00\x00")
	m.Data(16, "0123456789")
	m.Func("run", nil, nil, 0, Loop(Const(2), Const(0), Const(1), Const(8), Call(f), Drop, Br(0)))
	var out bytes.Buffer
	i := start(t, compile(t, runtime(t, nil), m, &wasmrt.Limits{StdoutBytes: 25}), &wasmrt.InstanceOptions{Stderr: &out})
	_, err := i.Invoke(t.Context(), "run")
	want(t, err, wasmrt.KindLimit, "stdout_bytes")
	if got := out.String(); got != "0123456789012345678901234" {
		t.Errorf("wrote %q", got)
	}
}

func TestT30EndlessLoopStops(t *testing.T) {
	t.Parallel()
	m := New()
	loop := m.Func("run", nil, nil, 0, Loop(Br(0)))
	for _, interpreter := range []bool{false, true} {
		rt := runtime(t, &wasmrt.Options{Interpreter: interpreter})
		i := start(t, compile(t, rt, m, nil), nil)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := i.Invoke(ctx, "run") // it returns only if the context ends it
		cancel()
		want(t, err, wasmrt.KindTimeout, "")
		if _, err := i.Invoke(t.Context(), "run"); err == nil {
			t.Error("a stopped instance runs again")
		}
		i = start(t, compile(t, rt, m, nil), nil)
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		_, err = i.Invoke(ctx, "run")
		want(t, err, wasmrt.KindCancelled, "")
	}
	m.Start(loop)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := compile(t, runtime(t, nil), m, nil).Instantiate(ctx, nil)
	want(t, err, wasmrt.KindTimeout, "")
}

// Compiling ends at its deadline, and with its context.
func TestT31CompileEnds(t *testing.T) {
	t.Parallel()
	m := New()
	for range 300 {
		m.Func("", nil, nil, 0, strings.Repeat(Const(1)+Drop, 500))
	}
	_, err := runtime(t, &wasmrt.Options{CompileTimeout: time.Nanosecond}).Compile(t.Context(), m.Bytes(), nil)
	want(t, err, wasmrt.KindLimit, "compile_timeout")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = runtime(t, nil).Compile(ctx, m.Bytes(), nil)
	want(t, err, wasmrt.KindCancelled, "")
}

// What a module declares is looked at before it is compiled.
func TestT31CompileBombs(t *testing.T) {
	t.Parallel()
	rt := runtime(t, nil)
	for _, tt := range []struct {
		name  string
		wasm  func() []byte
		lim   wasmrt.Limits
		kind  wasmrt.Kind
		limit string
	}{
		{"large", func() []byte { return make([]byte, 50<<20) }, wasmrt.Limits{}, wasmrt.KindLimit, "module_bytes"},
		{"many functions", func() []byte {
			m := New()
			for range 101 {
				m.Func("", nil, nil, 0)
			}
			return m.Bytes()
		}, wasmrt.Limits{Functions: 100}, wasmrt.KindLimit, "functions"},
		{"a million functions by number only", func() []byte { return []byte("\x00asm\x01\x00\x00\x00\x03\x03\xc0\x84\x3d") }, wasmrt.Limits{}, wasmrt.KindLimit, "functions"},
		{"a long function", func() []byte {
			m := New()
			m.Func("", nil, nil, 0, strings.Repeat("\x01", 2000))
			return m.Bytes()
		}, wasmrt.Limits{FunctionBytes: 1000}, wasmrt.KindLimit, "function_bytes"},
		{"many locals", func() []byte {
			m := New()
			m.RawFunc("", nil, nil, "\x01\xff\xff\xff\xff\x0f\x7f\x0b")
			return m.Bytes()
		}, wasmrt.Limits{}, wasmrt.KindLimit, "function_bytes"},
		{"memory at once", func() []byte { m := New(); m.Memory(2000, -1); return m.Bytes() }, wasmrt.Limits{}, wasmrt.KindLimit, "memory_pages"},
		{"a table at once", func() []byte { m := New(); m.Table("", 1<<26, -1); return m.Bytes() }, wasmrt.Limits{}, wasmrt.KindLimit, "table_elements"},
		{"tables together", func() []byte {
			m := New()
			m.Table("", 60_000, -1)
			m.Table("", 60_000, -1)
			return m.Bytes()
		}, wasmrt.Limits{}, wasmrt.KindLimit, "table_elements"},
		{"many parameters", func() []byte {
			m := New()
			m.Func("", bytes.Repeat([]byte{I32}, 1001), nil, 0)
			return m.Bytes()
		}, wasmrt.Limits{}, wasmrt.KindInvalid, ""},
		{"nothing", func() []byte { return nil }, wasmrt.Limits{}, wasmrt.KindInvalid, ""},
		{"text", func() []byte { return []byte("(module)") }, wasmrt.Limits{}, wasmrt.KindInvalid, ""},
		{"cut short", func() []byte { b := sum().Bytes(); return b[:len(b)-3] }, wasmrt.Limits{}, wasmrt.KindInvalid, ""},
		{"not valid", func() []byte { m := New(); m.Func("", nil, nil, 0, Add); return m.Bytes() }, wasmrt.Limits{}, wasmrt.KindInvalid, ""},
		{"an import that is not there", func() []byte { m := New(); m.Import("env", "system", nil, nil); return m.Bytes() }, wasmrt.Limits{}, wasmrt.KindInvalid, ""},
		{"a WASI function that is not there", func() []byte { m := New(); m.Import(wasi, "sock_connect", nil, nil); return m.Bytes() }, wasmrt.Limits{}, wasmrt.KindInvalid, ""},
		{"an imported memory", func() []byte { m := New(); m.ImportMemory(wasi, "memory"); return m.Bytes() }, wasmrt.Limits{}, wasmrt.KindInvalid, ""},
		{"a reserved export", func() []byte { m := New(); m.Global(true, 1); m.Export("\x00lathe.global.0", 3, 0); return m.Bytes() }, wasmrt.Limits{}, wasmrt.KindInvalid, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := rt.Compile(t.Context(), tt.wasm(), &tt.lim)
			want(t, err, tt.kind, tt.limit)
		})
	}
}

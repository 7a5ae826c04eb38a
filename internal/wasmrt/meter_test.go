package wasmrt_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/lathe-run/lathe/internal/wasmrt"
	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
)

var update = flag.Bool("update", false, "write testdata/hostile anew")

// The files of testdata/hostile are what their generator makes.
func TestHostileModulesAreGenerated(t *testing.T) {
	t.Parallel()
	const dir = "testdata/hostile"
	var names []string
	for _, h := range Hostile() {
		file := filepath.Join(dir, h.Name+".wasm")
		names = append(names, file)
		if *update {
			if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(file, h.Bytes, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		if kept, err := os.ReadFile(file); err != nil || !bytes.Equal(kept, h.Bytes) {
			t.Errorf("%s is not what its source builds (%v): run the tests with -update", file, err)
		}
	}
	kept, err := filepath.Glob(dir + "/*")
	if slices.Sort(names); err != nil || !slices.Equal(kept, names) {
		t.Errorf("the folder has %q, want %q (%v)", kept, names, err)
	}
}

// While a guest runs, whatever it does, Go collects garbage, and then the guest is stopped.
func TestHostileModulesDoNotStopTheProcess(t *testing.T) {
	t.Parallel()
	interpreted := []string{"calls", "fill_calls", "loop", "recursion_tree", "start"} // it is Go itself that runs
	for engine, rt := range map[string]*wasmrt.Runtime{"compiled": runtime(t, nil), "interpreted": runtime(t, &wasmrt.Options{Interpreter: true})} {
		for _, h := range Hostile() {
			if engine == "interpreted" && !slices.Contains(interpreted, h.Name) {
				continue
			}
			t.Run(h.Name+" "+engine, func(t *testing.T) {
				mod, err := rt.Compile(t.Context(), h.Bytes, nil)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				collected := make(chan struct{})
				go func() {
					defer close(collected)
					for range 3 {
						goruntime.GC()
					}
					cancel()
				}()
				i, err := mod.Instantiate(ctx, nil)
				if err == nil && !h.AtStart {
					defer i.Close()
					_, err = i.Invoke(ctx, "run")
				}
				<-collected
				if h.Limit == "" || wasmrt.KindOf(err) != wasmrt.KindLimit {
					want(t, err, wasmrt.KindCancelled, "")
				} else {
					want(t, err, wasmrt.KindLimit, h.Limit)
				}
			})
		}
	}
}

// A call within a call that is stopped stops what is around it, too, whatever the host function makes of it.
func TestStoppedWithinACall(t *testing.T) {
	t.Parallel()
	var stop context.CancelFunc
	rt := runtime(t, &wasmrt.Options{Hosts: []wasmrt.HostModule{{Name: "host", Funcs: []wasmrt.HostFunc{
		{Name: "within", Fn: func(ctx context.Context, i *wasmrt.Instance, _ []uint64) error {
			var inner context.Context
			inner, stop = context.WithCancel(ctx)
			_, err := i.Invoke(inner, "loop")
			want(t, err, wasmrt.KindCancelled, "")
			return nil
		}},
		{Name: "stop", Fn: func(context.Context, *wasmrt.Instance, []uint64) error { stop(); return nil }},
	}}}})
	m := New()
	f := m.Import("host", "within", nil, nil)
	g := m.Import("host", "stop", nil, nil)
	m.Func("loop", nil, nil, 0, Call(g), Loop(Br(0)))
	m.Func("run", nil, nil, 0, Call(f), Loop(Br(0)))
	i := start(t, compile(t, rt, m, nil), nil)
	_, err := i.Invoke(t.Context(), "run")
	want(t, err, wasmrt.KindCancelled, "")
	_, err = i.Invoke(t.Context(), "run")
	want(t, err, wasmrt.KindCancelled, "")
}

// A call within a call that is refused because its context is done stops what is around it, too.
func TestRefusedWithinACall(t *testing.T) {
	t.Parallel()
	rt := runtime(t, &wasmrt.Options{Hosts: []wasmrt.HostModule{{Name: "host", Funcs: []wasmrt.HostFunc{
		{Name: "within", Fn: func(ctx context.Context, i *wasmrt.Instance, _ []uint64) error {
			inner, cancel := context.WithCancel(ctx)
			cancel()
			_, err := i.Invoke(inner, "inner")
			want(t, err, wasmrt.KindCancelled, "")
			return nil
		}},
	}}}})
	m := New()
	f := m.Import("host", "within", nil, nil)
	m.Func("inner", nil, nil, 0)
	m.Func("run", nil, nil, 0, Call(f))
	i := start(t, compile(t, rt, m, nil), nil)
	_, err := i.Invoke(t.Context(), "run")
	want(t, err, wasmrt.KindCancelled, "")
	_, err = i.Invoke(t.Context(), "inner")
	want(t, err, wasmrt.KindCancelled, "")
}

// Memory that has to be moved to grow is not moved to its end after the deadline.
func TestGrowingIsStopped(t *testing.T) {
	t.Parallel()
	var cancel context.CancelFunc
	rt := runtime(t, &wasmrt.Options{Hosts: []wasmrt.HostModule{{Name: "host", Funcs: []wasmrt.HostFunc{
		{Name: "cancel", Fn: func(context.Context, *wasmrt.Instance, []uint64) error { cancel(); return nil }},
	}}}})
	m := New()
	stop := m.Import("host", "cancel", nil, nil)
	m.Memory(8, 800)
	m.Func("run", nil, T{I32}, 0, Call(stop), Const(700), MemoryGrow)
	i := start(t, compile(t, rt, m, nil), nil)
	ctx, c := context.WithCancel(t.Context())
	cancel = c
	_, err := i.Invoke(ctx, "run")
	want(t, err, wasmrt.KindCancelled, "")
	if got := i.Memory().Size(); got != 8<<16 {
		t.Errorf("the memory has %d bytes, want those that it began with", got)
	}
}

// Indexes of what a module does not have are not those of what is added to it, and code that the engine could read otherwise is
// not taken.
func TestGuestCannotReachItsMeter(t *testing.T) {
	t.Parallel()
	rt := runtime(t, nil)
	for name, build := range map[string]func(m *Module){
		"the fuel is written":        func(m *Module) { m.Func("run", nil, nil, 0, Const(1<<30), SetGlobal(1)) },
		"the fuel is read":           func(m *Module) { m.Func("run", nil, nil, 0, GetGlobal(1), Drop) },
		"the fuel is exported":       func(m *Module) { m.Export("fuel", 3, 1) },
		"a helper is called":         func(m *Module) { m.Func("run", nil, nil, 0, Call(2)) },
		"a helper is exported":       func(m *Module) { m.Export("refuel", 0, 1) },
		"a helper starts":            func(m *Module) { m.Start(1) },
		"a helper is in a table":     func(m *Module) { m.Table("", 1, 1); m.Elem(0, 1) },
		"a reference to a helper":    func(m *Module) { m.Func("run", nil, nil, 0, "\xd2\x02"+Drop) },
		"a type of a helper":         func(m *Module) { m.Func("run", nil, nil, 0, "\x02\x01\x0b") },
		"a type of a helper, called": func(m *Module) { m.Table("", 1, 1); m.Func("run", nil, nil, 0, Const(0), "\x11\x01\x00") },
		"a block of a long type":     func(m *Module) { m.Func("run", nil, nil, 0, "\x02\x63\x70\xd0\x70\x0b"+Drop) },
		"a local of a long type":     func(m *Module) { m.RawFunc("run", nil, nil, "\x01\x01\x63\x70\x0b") },
		"a choice of a long type":    func(m *Module) { m.Func("run", nil, nil, 0, "\xd0\x70\xd0\x70"+Const(0)+"\x1c\x01\x63\x70"+Drop) },
		"a vector's second byte":     func(m *Module) { m.Func("run", nil, nil, 0, "\xfd\x8e\x02\x40\x0b") },
		"code behind the end":        func(m *Module) { m.RawFunc("run", nil, nil, "\x00\x0b\x03\x40\x0c\x00\x0b") },
		"a second memory":            func(m *Module) { m.Func("run", nil, nil, 0, Const(0), Const(0), Const(0), "\xfc\x0b\x01") },
		"an else without an if":      func(m *Module) { m.Func("run", nil, nil, 0, "\x02\x40\x05\x0b") },
	} {
		m := New()
		m.Memory(1, 1)
		m.Global(true, 0)
		m.Func("", nil, nil, 0)
		build(m)
		if _, err := rt.Compile(t.Context(), m.Bytes(), nil); wasmrt.KindOf(err) != wasmrt.KindInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Instructions that are not supported are named.
func TestUnknownInstructionsAreNamed(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"\x12\x00":            "0x12 of tail calls",
		"\x08\x00":            "0x08 of exceptions",
		"\xfe\x03\x00":        "0xfe of threads",
		"\xfb\x00\x00":        "0xfb of garbage collection",
		"\x14\x00":            "0x14 of typed function references",
		"\xfc\x12\x00":        "0xfc 18",
		"\xfd\x80\x02":        "vector instruction",
		Const(0) + "\x40\x01": "second memory",
	} {
		m := New()
		m.Memory(1, 1)
		m.Func("run", nil, nil, 0, code)
		if _, err := runtime(t, nil).Compile(t.Context(), m.Bytes(), nil); wasmrt.KindOf(err) != wasmrt.KindInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", code, err, want)
		}
	}
}

// A pair runs modules as they are, and metered.
type pair struct {
	raw     wazero.Runtime
	metered *wasmrt.Runtime
}

func newPair(t testing.TB, interpreted bool) *pair {
	t.Helper()
	ctx := t.Context()
	cfg := wazero.NewRuntimeConfig()
	if interpreted {
		cfg = wazero.NewRuntimeConfigInterpreter()
	}
	raw := wazero.NewRuntimeWithConfig(ctx, cfg.WithCoreFeatures(api.CoreFeaturesV2))
	t.Cleanup(func() { _ = raw.Close(context.WithoutCancel(ctx)) })
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, raw); err != nil {
		t.Fatal(err)
	}
	return &pair{raw, runtime(t, &wasmrt.Options{Interpreter: interpreted})}
}

// outcomes are what the functions of a module return, what it leaves in memory and globals, or why it fails.
type outcomes struct {
	results []any
	memory  []byte
}

func (p *pair) outcomes(t testing.TB, wasm []byte) (raw, metered outcomes) {
	t.Helper()
	ctx := t.Context()
	code, rawErr := p.raw.CompileModule(ctx, wasm)
	mod, err := p.metered.Compile(ctx, wasm, nil)
	if rawErr != nil || err != nil {
		t.Fatalf("compiled as it is: %v; metered: %v", rawErr, err)
	}
	defer mod.Close()
	defer code.Close(ctx)
	a, rawErr := p.raw.InstantiateModule(ctx, code, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	b, err := mod.Instantiate(ctx, nil)
	if rawErr != nil || err != nil {
		t.Fatalf("started as it is: %v; metered: %v", rawErr, err)
	}
	defer a.Close(ctx)
	defer b.Close()
	for n := range 9 {
		name := "f" + string(rune('0'+n))
		fn := a.ExportedFunction(name)
		if fn == nil {
			break
		}
		if res, err := fn.Call(ctx); err != nil {
			line, _, _ := strings.Cut(err.Error(), "\n")
			raw.results = append(raw.results, strings.TrimPrefix(line, "wasm error: "))
		} else {
			raw.results = append(raw.results, append([]uint64{}, res...))
		}
		if res, err := b.Invoke(ctx, name); err != nil {
			metered.results = append(metered.results, errors.Unwrap(err).Error())
		} else {
			metered.results = append(metered.results, append([]uint64{}, res...))
		}
		for _, g := range []string{"g0", "g1"} {
			v, _ := b.Global(g)
			raw.results, metered.results = append(raw.results, a.ExportedGlobal(g).Get()), append(metered.results, v)
		}
	}
	raw.memory, _ = a.Memory().Read(0, a.Memory().Size())
	metered.memory, err = b.Memory().Read(0, b.Memory().Size())
	if err != nil {
		t.Fatal(err)
	}
	return raw, metered
}

func (p *pair) compare(t testing.TB, seed uint64) {
	t.Helper()
	wasm := Random(seed).Bytes()
	raw, metered := p.outcomes(t, wasm)
	if !slices.EqualFunc(raw.results, metered.results, equalResults) || !bytes.Equal(raw.memory, metered.memory) {
		t.Errorf("seed %d: as it is %v, metered %v; the memory is the same: %t", seed, raw.results, metered.results, bytes.Equal(raw.memory, metered.memory))
	}
}

func equalResults(a, b any) bool {
	x, isList := a.([]uint64)
	y, _ := b.([]uint64)
	return isList && slices.Equal(x, y) || !isList && a == b
}

// A metered module does what the module does.
func TestMeteredModulesDoTheSame(t *testing.T) {
	t.Parallel()
	compiled, interpreted := newPair(t, false), newPair(t, true)
	for seed := range uint64(200) {
		compiled.compare(t, seed)
		interpreted.compare(t, seed+200)
	}
}

// What metering adds means the same to both engines, of which the interpreter has a module ready much earlier.
func FuzzMetered(f *testing.F) {
	f.Add(uint64(1))
	compiled, interpreted := newPair(f, false), newPair(f, true)
	f.Fuzz(func(t *testing.T, seed uint64) {
		if interpreted.compare(t, seed); seed%64 == 0 {
			compiled.compare(t, seed)
		}
	})
}

// A long memory operation, which is done in chunks, does what one does: whatever way the ranges overlap, at each border of a
// chunk, and out of bounds, where it does nothing.
func TestLongMemoryOperations(t *testing.T) {
	t.Parallel()
	const chunk, size = 1 << 20, 36 << 16
	m := New()
	m.Memory(size>>16, size>>16)
	m.Func("fill", T{I32, I32, I32}, nil, 0, Get(0), Get(1), Get(2), MemoryFill)
	m.Func("copy", T{I32, I32, I32}, nil, 0, Get(0), Get(1), Get(2), MemoryCopy)
	i := start(t, compile(t, runtime(t, nil), m, nil), nil)
	memory, err := i.Memory().Read(0, size)
	if err != nil {
		t.Fatal(err)
	}
	before := make([]byte, size)
	for n := range before {
		before[n] = byte(n * 2654435761 >> 13)
	}
	expect := make([]byte, size)
	for _, n := range []int{0, 1, chunk - 1, chunk, chunk + 1, 2*chunk + 3, size} {
		for _, at := range []int{0, 5, size - n, size - n + 1, 1<<32 - 1} {
			for _, from := range []int{0, 1, 9, chunk + 4, size - n, 1<<32 - 1} {
				copy(memory, before)
				copy(expect, before)
				inside, name := at+n <= size, "copy"
				if from == 9 {
					if name = "fill"; inside {
						copy(expect[at:at+n], bytes.Repeat([]byte{9}, n))
					}
				} else if inside = inside && from+n <= size; inside {
					copy(expect[at:at+n], before[from:from+n])
				}
				_, err := i.Invoke(t.Context(), name, uint64(at), uint64(from), uint64(n))
				if (err == nil) != inside || err != nil && wasmrt.KindOf(err) != wasmrt.KindMemory {
					t.Errorf("%s(%d, %d, %d): %v", name, at, from, n, err)
				}
				if !bytes.Equal(memory, expect) {
					t.Errorf("%s(%d, %d, %d): the memory is not what it should be", name, at, from, n)
				}
			}
		}
	}
}

// What is added to a module is in proportion to it, and bounded for each function.
func TestMeteringGrowsFunctionsLittle(t *testing.T) {
	t.Parallel()
	m := New()
	m.Func("run", nil, nil, 0, strings.Repeat(Loop(), 30_000))
	_, err := runtime(t, nil).Compile(t.Context(), m.Bytes(), &wasmrt.Limits{FunctionBytes: 100_000})
	want(t, err, wasmrt.KindLimit, "function_bytes")
	m = New()
	m.Func("run", nil, nil, 0, strings.Repeat(Const(0)+Drop, 30_000))
	compile(t, runtime(t, nil), m, &wasmrt.Limits{FunctionBytes: 100_000})
}

// BenchmarkMeter is what counting costs: a loop, calls, calls through a table, and copying a little, for each round.
func BenchmarkMeter(b *testing.B) {
	m := New()
	m.Memory(1, 1)
	round := func(code string) string {
		return Loop(code, Get(0), Const(1), Sub, Tee(0), BrIf(0))
	}
	m.Table("", 1, 1)
	leaf := m.Func("", T{I32}, T{I32}, 0, Get(0), Const(0xfff), "\x71", Load(0), Get(0), Add)
	m.Elem(0, leaf)
	m.Func("loop", T{I32}, nil, 0, round(""))
	m.Func("call", T{I32}, nil, 0, round(Get(0)+Call(leaf)+Drop))
	m.Func("call_table", T{I32}, nil, 0, round(Get(0)+Const(0)+m.CallTable(T{I32}, T{I32})+Drop))
	m.Func("copy", T{I32}, nil, 0, round(Const(0)+Const(100)+Const(64)+MemoryCopy))
	for name, o := range map[string]*wasmrt.Options{"metered": nil, "not_metered": {NoDeadline: true}} {
		i := start(b, compile(b, runtime(b, o), m, nil), nil)
		for _, fn := range []string{"loop", "call", "call_table", "copy"} {
			b.Run(name+"/"+fn, func(b *testing.B) {
				if _, err := i.Invoke(b.Context(), fn, uint64(uint32(b.N))); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

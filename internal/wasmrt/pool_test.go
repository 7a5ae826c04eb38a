package wasmrt_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/wasmrt"
	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
)

// use takes an instance, calls run, and puts it back. It returns the result and whether the pool kept the instance.
func use(t testing.TB, p *wasmrt.Pool) (res uint64, kept bool) {
	t.Helper()
	i, err := p.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out, err := i.Invoke(t.Context(), "run")
	if err == nil {
		res = out[0]
	}
	if err := p.Put(i); err != nil {
		t.Fatal(err)
	}
	return res, p.Idle() == 1
}

// Whatever a call leaves behind, the next one finds what the first found.
func TestT30PoolForgets(t *testing.T) {
	t.Parallel()
	rt := runtime(t, nil)
	for _, tt := range []struct {
		name  string
		kept  bool
		build func(m *Module)
	}{
		{"memory", true, func(m *Module) {
			m.Memory(1, 1)
			m.Data(8, "\x07")
			m.Func("run", nil, T{I32}, 0, Const(8), Load(0), Const(65000), Load(0), Add, Const(8), Const(99), Store(0), Const(65000), Const(99), Store(0))
		}},
		{"a hidden global", true, func(m *Module) {
			g := m.Global(true, 7)
			m.Global(false, 1)
			m.Func("run", nil, T{I32}, 0, GetGlobal(g), GetGlobal(g), Const(1), Add, SetGlobal(g))
		}},
		{"a global that is set at the start", true, func(m *Module) {
			g := m.Global(true, 1)
			m.Start(m.Func("", nil, nil, 0, Const(7), SetGlobal(g)))
			m.Func("run", nil, T{I32}, 0, GetGlobal(g), Const(3), SetGlobal(g))
		}},
		{"what _initialize made", true, func(m *Module) {
			m.Memory(1, 1)
			m.Func("_initialize", nil, nil, 0, Const(0), Const(0), Load(0), Const(7), Add, Store(0))
			m.Func("run", nil, T{I32}, 0, Const(0), Load(0), Const(0), Const(1), Store(0))
		}},
		{"grown memory", false, func(m *Module) {
			m.Memory(1, 3)
			m.Func("run", nil, T{I32}, 0, MemorySize, Const(6), Add, Const(1), MemoryGrow, Drop)
		}},
		{"a table", false, func(m *Module) {
			m.Table("", 4, 8)
			f := m.Func("", nil, T{I32}, 0, Const(7))
			m.Elem(0, f, f)
			m.Func("run", nil, T{I32}, 0, Const(0), "\x11\x00\x00", Const(0), "\xd0\x70", "\x26\x00") // table.set
		}},
		{"the descriptors", false, func(m *Module) {
			closes := m.Import(wasi, "fd_close", T{I32}, T{I32})
			m.Func("run", nil, T{I32}, 0, Const(1), Call(closes), Const(7), Add)
		}},
		{"the clock", true, func(m *Module) {
			now := m.Import(wasi, "clock_time_get", T{I32, I64, I32}, T{I32})
			m.Memory(1, 1)
			m.Func("run", nil, T{I32}, 0, Const(1), Const64(0), Const(0), Call(now), Drop, Const(0), Load(0), Const(1_000_000-7), Sub)
		}},
		{"a trap", false, func(m *Module) { m.Func("run", nil, T{I32}, 0, Unreachable) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := New()
			tt.build(m)
			mod := compile(t, rt, m, nil)
			p := mod.NewPool(nil)
			for n := range 3 {
				res, kept := use(t, p)
				if res != 7 && tt.name != "a trap" {
					t.Errorf("call %d finds %d, want 7", n, res)
				}
				if kept != tt.kept {
					t.Errorf("kept %v, want %v", kept, tt.kept)
				}
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			if _, err := p.Get(t.Context()); wasmrt.KindOf(err) != wasmrt.KindClosed {
				t.Errorf("a closed pool gives: %v", err)
			}
		})
	}
}

// Without grants two runs see the same world; with them, each another.
func TestT30ClockAndRandom(t *testing.T) {
	t.Parallel()
	m := New()
	random := m.Import(wasi, "random_get", T{I32, I32}, T{I32})
	now := m.Import(wasi, "clock_time_get", T{I32, I64, I32}, T{I32})
	m.Memory(1, 1)
	m.Func("run", nil, T{I32}, 0, Const(0), Const(16), Call(random), Const(0), Const64(0), Const(16), Call(now), Add)
	early := New()
	random = early.Import(wasi, "random_get", T{I32, I32}, T{I32})
	early.Memory(1, 1)
	early.Func("_initialize", nil, nil, 0, Const(0), Const(16), Call(random), Drop)
	early.Func("run", nil, T{I32}, 0, Const(0))
	rt := runtime(t, nil)
	read := func(mod *wasmrt.Module, g wasmrt.Grants) []byte {
		i := start(t, mod, &wasmrt.InstanceOptions{Grants: g})
		if res, err := i.Invoke(t.Context(), "run"); err != nil || res[0] != 0 {
			t.Fatal(res, err)
		}
		b, err := i.Memory().Read(0, 24)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Clone(b)
	}
	mod := compile(t, rt, m, nil)
	if a, b := read(mod, wasmrt.Grants{}), read(mod, wasmrt.Grants{}); !bytes.Equal(a, b) {
		t.Errorf("two runs differ: %x, %x", a, b)
	}
	granted := wasmrt.Grants{Now: time.Now, Random: rand.Reader}
	if a, b := read(mod, granted), read(mod, granted); bytes.Equal(a[:16], b[:16]) || bytes.Equal(a[16:], make([]byte, 8)) {
		t.Errorf("two runs with grants: %x, %x", a, b)
	}
	// What read random bytes before the first call would repeat them.
	p := compile(t, rt, early, nil).NewPool(&wasmrt.PoolOptions{Instance: wasmrt.InstanceOptions{Grants: granted}})
	if _, kept := use(t, p); kept {
		t.Error("an instance that holds random bytes is used again")
	}
}

// A sleep in real time ends with the context.
func TestT30SleepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	m := New()
	f := m.Import(wasi, "poll_oneoff", T{I32, I32, I32, I32}, T{I32})
	m.Memory(1, 1)
	m.Data(24, "\x00\xa0\xb8\x30\x46\x03\x00\x00") // an hour
	m.Func("run", nil, nil, 0, Const(0), Const(64), Const(1), Const(128), Call(f), Drop)
	i := start(t, compile(t, runtime(t, nil), m, nil), &wasmrt.InstanceOptions{Grants: wasmrt.Grants{Now: time.Now}})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := i.Invoke(ctx, "run")
	want(t, err, wasmrt.KindTimeout, "")
}

// Instances of one module side by side share nothing.
func TestPoolSideBySide(t *testing.T) {
	t.Parallel()
	m := New()
	m.Memory(1, 1)
	m.Func("run", nil, T{I32}, 0, Const(0), Load(0), Const(0), Const(1), Store(0))
	p := compile(t, runtime(t, nil), m, nil).NewPool(&wasmrt.PoolOptions{Idle: 2})
	done := make(chan error)
	for range 8 {
		go func() {
			var bad error
			for range 50 {
				i, err := p.Get(t.Context())
				if err == nil {
					var res []uint64
					if res, err = i.Invoke(t.Context(), "run"); err == nil && res[0] != 0 {
						t.Error("a call sees another's memory")
					}
					if perr := p.Put(i); err == nil {
						err = perr
					}
				}
				if err != nil {
					bad = err
				}
			}
			done <- bad
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

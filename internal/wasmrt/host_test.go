package wasmrt_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/lathe-run/lathe/internal/wasmrt"
	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
)

func FuzzMemory(f *testing.F) {
	m := New()
	m.Memory(1, 1)
	i := start(f, compile(f, runtime(f, nil), m, nil), nil)
	f.Add(uint32(0), uint32(10))
	f.Add(uint32(65535), uint32(2))
	f.Fuzz(func(t *testing.T, ptr, n uint32) {
		b, err := i.Memory().Read(ptr, n)
		if inside := uint64(ptr)+uint64(n) <= 65536; inside != (err == nil) || err == nil && len(b) != int(n) {
			t.Errorf("Read(%d, %d): %d bytes, %v", ptr, n, len(b), err)
		}
	})
}

// Whatever is given as a module, it is refused or compiled.
func FuzzCompile(f *testing.F) {
	rt := runtime(f, nil)
	m := New()
	m.Memory(1, 4)
	m.Table("t", 1, -1)
	m.Global(true, 3)
	m.Elem(0, m.Func("sum", T{I32, I32}, T{I32}, 1, Get(0), Get(1), Add))
	m.Data(0, "abc")
	f.Add(m.Bytes())
	f.Add(sum().Bytes())
	f.Fuzz(func(t *testing.T, wasm []byte) {
		mod, err := rt.Compile(t.Context(), wasm, &wasmrt.Limits{Functions: 100, FunctionBytes: 10_000, MemoryPages: 4})
		if err != nil {
			if wasmrt.KindOf(err) == 0 {
				t.Error(err)
			}
			return
		}
		if err := mod.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestTableFunc(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		tables []string // names of tables 0, 1, …; the functions are in table 0
		found  bool
	}{
		{"by its name", []string{"__indirect_function_table", "table"}, true},
		{"by its short name", []string{"table", "other"}, true},
		{"the first exported", []string{"first", "second"}, true},
		{"another one has the name", []string{"first", "table"}, false},
		{"none is exported", []string{""}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := New()
			add := m.Func("", T{I32, I32}, T{I32}, 0, Get(0), Get(1), Add)
			for _, name := range tt.tables {
				m.Table(name, 4, 4)
			}
			m.Elem(1, add)
			i := start(t, compile(t, runtime(t, nil), m, nil), nil)
			two, one := []wasmrt.ValueType{wasmrt.I32, wasmrt.I32}, []wasmrt.ValueType{wasmrt.I32}
			fn, err := i.TableFunc(1, two, one)
			if !tt.found {
				want(t, err, wasmrt.KindMissing, "")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			stack := []uint64{7, 35}
			if err := fn.Invoke(t.Context(), stack); err != nil || stack[0] != 42 {
				t.Error(stack, err)
			}
			for _, bad := range []struct {
				offset          uint32
				params, results []wasmrt.ValueType
			}{{0, two, one}, {4, two, one}, {0xffffffff, two, one}, {1, one, one}, {1, two, nil}, {1, two, []wasmrt.ValueType{wasmrt.I64}}} {
				if _, err := i.TableFunc(bad.offset, bad.params, bad.results); wasmrt.KindOf(err) != wasmrt.KindMissing {
					t.Errorf("%v: %v", bad, err)
				}
			}
			if err := fn.Invoke(t.Context(), nil); err == nil {
				t.Error("a stack without room was taken")
			}
		})
	}
}

// A table grows to its limit and no further.
func TestT30TableGrow(t *testing.T) {
	t.Parallel()
	m := New()
	m.Table("", 1, -1)
	m.Func("run", T{I32}, T{I32}, 0, "\xd0\x70", Get(0), "\xfc\x0f\x00")
	i := start(t, compile(t, runtime(t, nil), m, &wasmrt.Limits{TableElements: 10}), nil)
	for _, tt := range []struct {
		by   uint64
		want int32
	}{{5, 1}, {5, -1}, {4, 6}, {1, -1}} {
		res, err := i.Invoke(t.Context(), "run", tt.by)
		if err != nil || wasmrt.Int32(res[0]) != tt.want {
			t.Errorf("grow by %d: %v %v, want %d", tt.by, res, err, tt.want)
		}
	}
}

// A host function may fail, and may call back into the guest that called it.
func TestHostFunctions(t *testing.T) {
	t.Parallel()
	errStop := errors.New("stop")
	one := []wasmrt.ValueType{wasmrt.I32}
	rt := runtime(t, &wasmrt.Options{Hosts: []wasmrt.HostModule{{Name: "host", Funcs: []wasmrt.HostFunc{
		{Name: "fail", Fn: func(context.Context, *wasmrt.Instance, []uint64) error { return errStop }},
		{Name: "again", Params: one, Results: one, Fn: func(ctx context.Context, i *wasmrt.Instance, stack []uint64) error {
			if n := wasmrt.Int32(stack[0]); n > 0 {
				res, err := i.Invoke(ctx, "run", wasmrt.FromInt32(n-1))
				if err != nil {
					return err
				}
				stack[0] = res[0] + 2
			}
			return nil
		}},
		{Name: "data", Results: one, Fn: func(_ context.Context, i *wasmrt.Instance, stack []uint64) error {
			stack[0] = uint64(i.Data().(int))
			return i.Memory().WriteUint32(0, 77)
		}},
	}}}})
	m := New()
	fail := m.Import("host", "fail", nil, nil)
	again := m.Import("host", "again", T{I32}, T{I32})
	data := m.Import("host", "data", nil, T{I32})
	m.Memory(1, 1)
	begun := m.Func("", nil, nil, 0, Const(8), Call(data), Store(0)) // the start section calls the host, too
	m.Start(begun)
	m.Func("run", T{I32}, T{I32}, 0, Get(0), Call(again))
	m.Func("fail", nil, nil, 0, Call(fail))
	mod := compile(t, rt, m, nil)
	i := start(t, mod, &wasmrt.InstanceOptions{Data: 5})
	if v, err := i.Memory().ReadUint32(8); v != 5 || err != nil {
		t.Error(v, err)
	}
	if res, err := i.Invoke(t.Context(), "run", 4); err != nil || res[0] != 8 {
		t.Error(res, err)
	}
	if i.Spent() {
		t.Error("the instance is spent")
	}
	_, err := i.Invoke(t.Context(), "fail")
	want(t, err, wasmrt.KindHost, "")
	if !errors.Is(err, errStop) {
		t.Errorf("the error is lost: %v", err)
	}
	for _, name := range []string{"nothing", "memory"} {
		_, err = i.Invoke(t.Context(), name)
		want(t, err, wasmrt.KindMissing, "")
	}
	if _, err = i.Invoke(t.Context(), "run"); wasmrt.KindOf(err) != wasmrt.KindMissing {
		t.Errorf("a wrong number of arguments: %v", err)
	}
}

// The folder of compiled code is its owner's alone, and is used.
func TestT31Cache(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/cache"
	for range 2 {
		rt := runtime(t, &wasmrt.Options{CacheDir: dir})
		i := start(t, compile(t, rt, sum(), nil), nil)
		if res, err := i.Invoke(t.Context(), "sum", 1, 2); err != nil || res[0] != 3 {
			t.Error(res, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) == 0 {
		t.Errorf("the cache holds %v, %v", entries, err)
	}
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	if _, err := wasmrt.New(&wasmrt.Options{CacheDir: dir}); err == nil {
		t.Error("a folder that everyone writes to was taken")
	}
}

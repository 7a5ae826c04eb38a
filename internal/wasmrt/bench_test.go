package wasmrt_test

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/lathe-run/lathe/internal/wasmrt"
	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
)

// echo takes (args, len, out, outLen) and copies its arguments.
func echo() *Module {
	m := New()
	m.Memory(1, 1)
	m.Func("tool", T{I32, I32, I32, I32}, T{I32}, 0, Get(2), Get(0), Get(1), MemoryCopy, Get(3), Get(1), Store(0), Const(0))
	return m
}

var kilobyte = bytes.Repeat([]byte("x"), 1024)

// exchange is a call with 1 KiB in and 1 KiB out.
func exchange(ctx context.Context, b *testing.B, i *wasmrt.Instance, fn *wasmrt.Func, out []byte, words []uint64) {
	mem := i.Memory()
	if err := mem.Write(1024, kilobyte); err != nil {
		b.Fatal(err)
	}
	words[0], words[1], words[2], words[3] = 1024, 1024, 8192, 16
	if err := fn.Invoke(ctx, words); err != nil {
		b.Fatal(err)
	}
	n, err := mem.ReadUint32(16)
	if err != nil {
		b.Fatal(err)
	}
	view, err := mem.Read(8192, n)
	if err != nil {
		b.Fatal(err)
	}
	copy(out, view)
}

func BenchmarkCall(b *testing.B) {
	for _, tt := range []struct {
		name       string
		noDeadline bool
		restore    bool
	}{{"bare", true, false}, {"deadline", false, false}, {"restore", true, true}, {"deadline_restore", false, true}} {
		b.Run(tt.name, func(b *testing.B) {
			rt := runtime(b, &wasmrt.Options{NoDeadline: tt.noDeadline})
			p := compile(b, rt, echo(), nil).NewPool(nil)
			ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
			defer cancel()
			out, words := make([]byte, 1024), make([]uint64, 4)
			i, err := p.Get(ctx)
			if err != nil {
				b.Fatal(err)
			}
			fn, err := i.Func("tool")
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				exchange(ctx, b, i, fn, out, words)
				if tt.restore {
					if err := p.Put(i); err != nil {
						b.Fatal(err)
					}
					if i, err = p.Get(ctx); err != nil {
						b.Fatal(err)
					}
				}
			}
			if err := i.Close(); err != nil {
				b.Fatal(err)
			}
			if err := p.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
	b.Run("raw", func(b *testing.B) {
		ctx := b.Context()
		engine := wazero.NewRuntime(ctx)
		defer engine.Close(ctx) //nolint:errcheck // a figure
		mod, err := engine.Instantiate(ctx, echo().Bytes())
		if err != nil {
			b.Fatal(err)
		}
		fn, out, words := mod.ExportedFunction("tool"), make([]byte, 1024), make([]uint64, 4)
		b.ReportAllocs()
		for b.Loop() {
			mod.Memory().Write(1024, kilobyte)
			words[0], words[1], words[2], words[3] = 1024, 1024, 8192, 16
			if err := fn.CallWithStack(ctx, words); err != nil {
				b.Fatal(err)
			}
			view, _ := mod.Memory().Read(8192, 1024)
			copy(out, view)
		}
	})
	b.Run("raw_deadline", func(b *testing.B) {
		ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
		defer cancel()
		engine := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCloseOnContextDone(true))
		defer engine.Close(ctx) //nolint:errcheck // a figure
		mod, err := engine.Instantiate(ctx, echo().Bytes())
		if err != nil {
			b.Fatal(err)
		}
		fn, words := mod.ExportedFunction("tool"), make([]uint64, 4)
		b.ReportAllocs()
		for b.Loop() {
			mod.Memory().Write(1024, kilobyte)
			words[0], words[1], words[2], words[3] = 1024, 1024, 8192, 16
			if err := fn.CallWithStack(ctx, words); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkInstantiate(b *testing.B) {
	b.Run("ours", func(b *testing.B) {
		mod := compile(b, runtime(b, nil), echo(), nil)
		b.ReportAllocs()
		for b.Loop() {
			i, err := mod.Instantiate(b.Context(), nil)
			if err != nil {
				b.Fatal(err)
			}
			if err := i.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("raw", func(b *testing.B) {
		ctx := b.Context()
		engine := wazero.NewRuntime(ctx)
		defer engine.Close(ctx) //nolint:errcheck // a figure
		code, err := engine.CompileModule(ctx, echo().Bytes())
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			mod, err := engine.InstantiateModule(ctx, code, wazero.NewModuleConfig().WithName(""))
			if err != nil {
				b.Fatal(err)
			}
			if err := mod.Close(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkColdStart starts a module from the folder of compiled code. LATHE_BENCH_WASM names a module.
func BenchmarkColdStart(b *testing.B) {
	wasm := echo().Bytes()
	if file := os.Getenv("LATHE_BENCH_WASM"); file != "" {
		var err error
		if wasm, err = os.ReadFile(file); err != nil {
			b.Fatal(err)
		}
	}
	dir := b.TempDir() + "/cache"
	warm, err := wasmrt.New(&wasmrt.Options{CacheDir: dir})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := warm.Compile(b.Context(), wasm, nil); err != nil {
		b.Fatal(err)
	}
	if err := warm.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		rt, err := wasmrt.New(&wasmrt.Options{CacheDir: dir})
		if err != nil {
			b.Fatal(err)
		}
		mod, err := rt.Compile(b.Context(), wasm, nil)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := mod.Instantiate(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
		if err := rt.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(wasm)), "B/module")
}

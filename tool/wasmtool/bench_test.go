package wasmtool_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/wasmtool"
)

// BenchmarkSample compiles a tool and calls it. LATHE_BENCH_WASM names a module, such as one of the samples of docs/internals/tools-wasm.md, that takes the
// arguments of testdata/sum.wasm. B/module is the size of the file, and B/code that of the machine code in the cache.
func BenchmarkSample(b *testing.B) {
	file := "testdata/sum.wasm"
	if other := os.Getenv("LATHE_BENCH_WASM"); other != "" {
		file = other
	}
	wasm, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	dir := folder(b, wasm, manifest)
	b.Run("compile", func(b *testing.B) {
		for b.Loop() {
			cache := filepath.Join(b.TempDir(), "cache")
			f, err := wasmtool.OpenFolder(dir, &wasmtool.Options{CacheDir: cache})
			if err != nil {
				b.Fatal(err)
			}
			if err := f.Ready(b.Context()); err != nil {
				b.Fatal(err)
			}
			if err := f.Close(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(sizeOf(b, cache)), "B/code")
		}
		b.ReportMetric(float64(len(wasm)), "B/module")
	})
	b.Run("call", func(b *testing.B) {
		set, err := tool.NewSet(open(b, dir).List()...)
		if err != nil {
			b.Fatal(err)
		}
		r, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll(), Limits: lathe.Limits{MaxToolCalls: 1 << 30, MaxRepeatedCalls: 1 << 30}})
		if err != nil {
			b.Fatal(err)
		}
		calls := []tool.Call{{ToolCall: lathe.ToolCall{ID: "c", Name: "it", Arguments: `{"a":7,"b":35}`}}}
		for b.Loop() {
			w := r.Begin(&lathe.RunInfo{}, nil)
			out := w.Execute(b.Context(), 1, calls, func(event.Data) {})
			if res := out.Messages[0].Parts[0].(lathe.ToolResult); res.Content != `{"sum":42}` {
				b.Fatal(res.Content)
			}
		}
	})
}

func sizeOf(b *testing.B, dir string) (n int64) {
	b.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		n += info.Size()
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return n
}

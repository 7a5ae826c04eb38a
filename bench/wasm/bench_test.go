package wasm

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/wasmrt"
	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
	"github.com/lathe-run/lathe/tool/wasmtool"
)

var args = `{"text":"` + strings.Repeat("x", 1013) + `"}` // 1 KiB

// echo copies its arguments to its output. It has one page and lends an arena of 16 KiB.
func echo() []byte {
	m := New()
	m.Memory(1, 1)
	m.Func("tool", T{I32, I32, I32, I32}, T{I32}, 0, Get(2), Get(0), Get(1), MemoryCopy, Get(3), Get(1), Store(0), Const(0))
	m.Func("tool_arena_ptr", nil, T{I32}, 0, Const(1024))
	m.Func("tool_arena_len", nil, T{I32}, 0, Const(16384))
	return m.Bytes()
}

// plugin is echo by Extism's rules: eight bytes at a time through the host.
func plugin() []byte {
	const host = "extism:host/env"
	m := New()
	length := m.Import(host, "input_length", nil, T{I64})
	load := m.Import(host, "input_load_u64", T{I64}, T{I64})
	alloc := m.Import(host, "alloc", T{I64}, T{I64})
	store := m.Import(host, "store_u64", T{I64, I64}, nil)
	set := m.Import(host, "output_set", T{I64, I64}, nil)
	m.Memory(1, -1)
	const n, out, i = 0, 1, 2
	m.RawFunc("echo", nil, T{I32}, "\x01\x03\x7e"+
		Call(length)+Tee(n)+Call(alloc)+Set(out)+
		Loop(Get(out), Get(i), "\x7c", Get(i), Call(load), Call(store), Get(i), Const64(8), "\x7c", Tee(i), Get(n), "\x54", BrIf(0))+
		Get(out)+Get(n)+Call(set)+Const(0)+"\x0b")
	return m.Bytes()
}

func BenchmarkRaw(b *testing.B) {
	ctx := b.Context()
	engine := wazero.NewRuntime(ctx)
	defer engine.Close(ctx)
	mod, err := engine.Instantiate(ctx, echo())
	if err != nil {
		b.Fatal(err)
	}
	fn, in, out, words := mod.ExportedFunction("tool"), []byte(args), make([]byte, len(args)), make([]uint64, 4)
	b.ReportAllocs()
	for b.Loop() {
		mod.Memory().Write(1024, in)
		words[0], words[1], words[2], words[3] = 1024, uint64(len(in)), 8192, 16
		if err := fn.CallWithStack(ctx, words); err != nil {
			b.Fatal(err)
		}
		view, _ := mod.Memory().Read(8192, uint32(len(in)))
		copy(out, view)
	}
}

// BenchmarkSafe is one call of our runtime with a deadline, in an instance that is as new.
func BenchmarkSafe(b *testing.B) {
	for _, fresh := range []bool{false, true} {
		name, idle := "pooled", 1
		if fresh {
			name, idle = "fresh", -1
		}
		b.Run(name, func(b *testing.B) {
			rt, err := wasmrt.New(nil)
			if err != nil {
				b.Fatal(err)
			}
			defer rt.Close()
			mod, err := rt.Compile(b.Context(), echo(), nil)
			if err != nil {
				b.Fatal(err)
			}
			pool := mod.NewPool(&wasmrt.PoolOptions{Idle: idle})
			defer pool.Close()
			ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
			defer cancel()
			in, out, words := []byte(args), make([]byte, len(args)), make([]uint64, 4)
			b.ReportAllocs()
			for b.Loop() {
				inst, err := pool.Get(ctx)
				if err != nil {
					b.Fatal(err)
				}
				fn, ok := inst.Data().(*wasmrt.Func)
				if !ok {
					if fn, err = inst.Func("tool"); err != nil {
						b.Fatal(err)
					}
					inst.SetData(fn)
				}
				if err := inst.Memory().Write(1024, in); err != nil {
					b.Fatal(err)
				}
				words[0], words[1], words[2], words[3] = 1024, uint64(len(in)), 8192, 16
				if err := fn.Invoke(ctx, words); err != nil {
					b.Fatal(err)
				}
				view, err := inst.Memory().Read(8192, uint32(len(in)))
				if err != nil {
					b.Fatal(err)
				}
				copy(out, view)
				if err := pool.Put(inst); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTool is the whole life of a call: parsed, validated, allowed, run, checked, redacted. With
// LATHE_BENCH_WASM it calls that module, which takes any object.
func BenchmarkTool(b *testing.B) {
	wasm := echo()
	if file := os.Getenv("LATHE_BENCH_WASM"); file != "" {
		var err error
		if wasm, err = os.ReadFile(file); err != nil {
			b.Fatal(err)
		}
	}
	dir := b.TempDir()
	manifest := `{"name":"it","description":"d","allowlist":["*"],"effect":"read_only","schema":{"type":"object"}}`
	for name, text := range map[string][]byte{"it.wasm": wasm, "it.json": []byte(manifest)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	modules, err := wasmtool.OpenFolder(dir, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer modules.Close()
	if err := modules.Ready(b.Context()); err != nil {
		b.Fatal(err)
	}
	set, err := tool.NewSet(modules.List()...)
	if err != nil {
		b.Fatal(err)
	}
	many := lathe.Limits{MaxToolCalls: 1 << 30, MaxRepeatedCalls: 1 << 30}
	r, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll(), Limits: many})
	if err != nil {
		b.Fatal(err)
	}
	call := []tool.Call{{ToolCall: lathe.ToolCall{ID: "c", Name: "it", Arguments: args}}}
	b.ReportAllocs()
	for b.Loop() {
		w := r.Begin(&lathe.RunInfo{}, nil)
		out := w.Execute(b.Context(), 1, call, func(event.Data) {})
		if res := out.Messages[0].Parts[0].(lathe.ToolResult); res.IsError {
			b.Fatal(res.Content)
		}
	}
}

func BenchmarkExtism(b *testing.B) {
	for _, timeout := range []uint64{0, 60_000} {
		name := "call"
		if timeout > 0 {
			name = "call_with_timeout"
		}
		b.Run(name, func(b *testing.B) {
			p, err := extism.NewPlugin(b.Context(), extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: plugin()}}, Timeout: timeout},
				extism.PluginConfig{}, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close(b.Context())
			in := []byte(args)
			b.ReportAllocs()
			for b.Loop() {
				if _, out, err := p.Call("echo", in); err != nil || !bytes.Equal(out, in) {
					b.Fatal(len(out), err)
				}
			}
		})
	}
}

// BenchmarkPipe is a line to a process that lives, and one back.
func BenchmarkPipe(b *testing.B) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	r, line := bufio.NewReader(out), []byte(args+"\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := in.Write(line); err != nil {
			b.Fatal(err)
		}
		if _, err := r.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
}

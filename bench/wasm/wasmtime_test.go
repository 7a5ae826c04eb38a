//go:build cgo

package wasm

import (
	"testing"

	"github.com/bytecodealliance/wasmtime-go/v39"
)

// BenchmarkWasmtime is a call of Wasmtime, through cgo, in one instance that lives on ("raw"), with
// interruption at a deadline compiled in ("deadline"), and in an instance made for the call ("fresh").
func BenchmarkWasmtime(b *testing.B) {
	for _, kind := range []string{"raw", "deadline", "fresh"} {
		b.Run(kind, func(b *testing.B) {
			conf := wasmtime.NewConfig()
			conf.SetEpochInterruption(kind != "raw")
			engine := wasmtime.NewEngineWithConfig(conf)
			defer engine.Close()
			module, err := wasmtime.NewModule(engine, echo())
			if err != nil {
				b.Fatal(err)
			}
			in, out := []byte(args), make([]byte, len(args))
			var x *wasmtimeGuest
			b.ReportAllocs()
			for b.Loop() {
				if x == nil || kind == "fresh" {
					if x, err = newWasmtimeGuest(engine, module); err != nil {
						b.Fatal(err)
					}
				}
				if kind != "raw" {
					x.store.SetEpochDeadline(1)
				}
				copy(x.memory.UnsafeData(x.store)[1024:], in)
				if _, err := x.tool.Call(x.store, 1024, int32(len(in)), 8192, 16); err != nil {
					b.Fatal(err)
				}
				copy(out, x.memory.UnsafeData(x.store)[8192:])
				if kind == "fresh" {
					x.store.Close()
				}
			}
			if string(out) != args {
				b.Fatalf("it answers %.40q", out)
			}
		})
	}
}

type wasmtimeGuest struct {
	store  *wasmtime.Store
	memory *wasmtime.Memory
	tool   *wasmtime.Func
}

func newWasmtimeGuest(engine *wasmtime.Engine, module *wasmtime.Module) (*wasmtimeGuest, error) {
	store := wasmtime.NewStore(engine)
	instance, err := wasmtime.NewInstance(store, module, nil)
	if err != nil {
		return nil, err
	}
	return &wasmtimeGuest{store: store, memory: instance.GetExport(store, "memory").Memory(), tool: instance.GetFunc(store, "tool")}, nil
}

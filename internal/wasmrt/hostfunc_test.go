package wasmrt_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/wasmrt"
	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
)

// A function of the host that a module exports again, or puts into its table, is no function of the module:
// called without the module around it, what ends a guest would end the host, or what all modules share.
func TestT32HostFunctionsAreNotTheModules(t *testing.T) {
	t.Parallel()
	for _, interpreter := range []bool{false, true} {
		t.Run(fmt.Sprintf("interpreter=%v", interpreter), func(t *testing.T) {
			t.Parallel()
			hostFunctionsAreNotTheModules(t, interpreter)
		})
	}
}

func hostFunctionsAreNotTheModules(t *testing.T, interpreter bool) {
	four, one := []wasmrt.ValueType{wasmrt.I32, wasmrt.I32, wasmrt.I32, wasmrt.I32}, []wasmrt.ValueType{wasmrt.I32}
	host := wasmrt.HostModule{Name: "host", Funcs: []wasmrt.HostFunc{{Name: "fail", Params: four, Results: one,
		Fn: func(context.Context, *wasmrt.Instance, []uint64) error { return errors.New("no") }}}}
	rt := runtime(t, &wasmrt.Options{Interpreter: interpreter, Hosts: []wasmrt.HostModule{host}})
	m := New()
	fail := m.Import("host", "fail", T{I32, I32, I32, I32}, T{I32})
	poll := m.Import(wasi, "poll_oneoff", T{I32, I32, I32, I32}, T{I32})
	m.Memory(1, 1)
	m.Data(24, "\x00\xa0\xb8\x30\x46\x03\x00\x00") // an hour
	m.Table("table", 2, 2)
	m.Elem(0, fail, poll)
	m.Export("fail", 0, fail)
	m.Export("poll", 0, poll)
	mod := compile(t, rt, m, nil)
	i := start(t, mod, &wasmrt.InstanceOptions{Grants: wasmrt.Grants{Now: time.Now}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for at, name := range []string{"fail", "poll"} {
		if found, fits := mod.Exports(name, four, one); !found || fits {
			t.Errorf("%s: found %v, fits %v", name, found, fits)
		}
		fn, err := i.TableFunc(uint32(at), four, one)
		want(t, err, wasmrt.KindMissing, "")
		if err == nil {
			t.Log(fn.Invoke(ctx, []uint64{0, 64, 1, 128}))
		}
		_, err = i.Invoke(ctx, name, 0, 64, 1, 128)
		want(t, err, wasmrt.KindMissing, "")
	}
	start(t, mod, nil) // what all share is still there
}

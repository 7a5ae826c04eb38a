package wasmrt

import (
	"context"
	"errors"
	"io"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// A Module is compiled code. It may be instantiated by several goroutines at once.
type Module struct {
	rt     *Runtime
	limits Limits
	shape  shape
	code   wazero.CompiledModule
}

// Close frees the compiled code. The module's instances must be closed before.
func (m *Module) Close() error { return m.code.Close(context.Background()) }

// Limits returns the limits that the module was compiled with, defaults filled in.
func (m *Module) Limits() Limits { return m.limits }

// Exports reports whether the module has a function of that name (found), and with that signature (fits). For an imported function that
// the module exports again, fits is false.
func (m *Module) Exports(name string, params, results []ValueType) (found, fits bool) {
	def := m.code.ExportedFunctions()[name]
	if def == nil {
		return false, false
	}
	return true, isOwn(def) && equal(def.ParamTypes(), params) && equal(def.ResultTypes(), results)
}

func equal(a, b []ValueType) bool { return string(a) == string(b) }

// InstanceOptions of an [Instance].
type InstanceOptions struct {
	Grants Grants
	// Stdout and Stderr receive the output of the guest, up to its budget; nil: output is discarded.
	Stdout, Stderr io.Writer
	// Data is a value for host functions; see [Instance.Data].
	Data any
}

// Instantiate returns a new instance after it has run the start section and then the export `_initialize`, if there is one. It does not
// call `_start`, which is an export like others. The caller must close the instance.
func (m *Module) Instantiate(ctx context.Context, opts *InstanceOptions) (*Instance, error) {
	i := &Instance{module: m}
	grants := &Grants{}
	var stdout, stderr io.Writer
	if opts != nil {
		i.data = opts.Data
		stdout, stderr = opts.Stdout, opts.Stderr
		grants = &opts.Grants
	}
	i.env = newEnv(&m.limits, grants)
	i.env.ctx = ctx
	if ctx.Err() != nil {
		return nil, stopped(ctx)
	}
	h := &heap{env: i.env, account: &m.rt.account}
	if n := int64(m.shape.firstPages) << 16; n > 0 {
		if !h.account.take(n) {
			return nil, overLimit(totalMemory, "the modules together have %d bytes of memory, which is their limit", h.account.most)
		}
		h.counted = n
	}
	call := experimental.WithMemoryAllocator(&callContext{ctx, i}, h)
	mod, err := m.rt.engine.InstantiateModule(call, m.code, i.env.config(stdout, stderr))
	if err != nil {
		h.Free()
		return nil, failure(ctx, i.env, err, i.env.refused)
	}
	i.mod = mod
	for _, name := range []string{startExport, "_initialize"} {
		if found, fits := m.Exports(name, nil, nil); found && fits {
			if _, err := i.Invoke(ctx, name); err != nil {
				return nil, errors.Join(err, i.Close())
			}
		}
	}
	return i, nil
}

// An Instance is a module with its own memory, globals and tables. It is used by one goroutine at a time, and by the host functions that
// it calls.
type Instance struct {
	module  *Module
	mod     api.Module
	env     *env
	data    any
	globals []api.MutableGlobal
	began   *state // the state to which a pool restores it; nil: it is not restored
	spent   bool   // it must not be used again
	closed  bool
}

// Data returns the value of [InstanceOptions].Data, or of the last SetData.
func (i *Instance) Data() any { return i.data }

// SetData stores a value in the instance. A pool does not clear it.
func (i *Instance) SetData(v any) { i.data = v }

// Global returns the value of the exported global of that name; ok is false if none exists.
func (i *Instance) Global(name string) (v uint64, ok bool) {
	g := i.mod.ExportedGlobal(name)
	if g == nil {
		return 0, false
	}
	return g.Get(), true
}

// Module returns the module of the instance.
func (i *Instance) Module() *Module { return i.module }

// Memory returns the memory of the instance.
func (i *Instance) Memory() Memory {
	if i.module.shape.memories == 0 {
		return Memory{}
	}
	return Memory{i.mod.Memory()}
}

// Spent reports whether the instance trapped, exited or was stopped. Then its memory can still be read, and it must still be closed.
func (i *Instance) Spent() bool { return i.spent }

// Close frees the instance and closes its files. Further calls do nothing.
func (i *Instance) Close() error {
	if i.closed {
		return nil
	}
	i.closed, i.spent = true, true
	return i.mod.Close(context.Background())
}

package wasmrt

import (
	"context"
	"errors"

	"github.com/tetratelabs/wazero/api"
)

// ValueType is the type of a parameter or result. Values of all types are passed as uint64; [Int32] and [Uint32] return the low half.
type ValueType = api.ValueType

// The value types of parameters and results.
const (
	I32 ValueType = api.ValueTypeI32
	I64 ValueType = api.ValueTypeI64
)

// Int32 returns the low 32 bits of v as a signed number.
func Int32(v uint64) int32 { return int32(uint32(v)) }

// Uint32 returns the low 32 bits of v.
func Uint32(v uint64) uint32 { return uint32(v) }

// FromInt32 returns v in the form in which it is passed on the stack.
func FromInt32(v int32) uint64 { return uint64(uint32(v)) }

// A HostModule is a set of functions that guests import under one name.
type HostModule struct {
	Name  string
	Funcs []HostFunc
}

// A HostFunc is a function of the host that guests call.
type HostFunc struct {
	Name            string
	Params, Results []ValueType
	// Fn reads its parameters from the stack and writes its results to it, from index 0. An error ends the guest: the call into it
	// returns an *[Error] of KindHost with that error, or of KindTimeout or KindCancelled if it is the error of ctx. Fn may call
	// functions of the same instance. It must return soon after ctx ends. It runs while the guest waits, so on one goroutine at a time
	// for each instance.
	Fn func(ctx context.Context, inst *Instance, stack []uint64) error
}

func (r *Runtime) addHosts(ctx context.Context, hosts []HostModule) error {
	if err := r.addWASI(ctx); err != nil {
		return err
	}
	for _, h := range hosts {
		b := r.engine.NewHostModuleBuilder(h.Name)
		names := map[string]bool{}
		for _, f := range h.Funcs {
			if f.Fn == nil || names[f.Name] {
				panic("wasmrt: host function " + h.Name + "." + f.Name + " is declared twice or is nil")
			}
			names[f.Name] = true
			b.NewFunctionBuilder().WithGoModuleFunction(f.wrap(), f.Params, f.Results).Export(f.Name)
		}
		if r.imports[h.Name] != nil {
			panic("wasmrt: host module " + h.Name + " is declared twice")
		}
		if _, err := b.Instantiate(ctx); err != nil {
			return err
		}
		r.imports[h.Name] = names
	}
	return nil
}

// wrap returns the function for the engine: it counts the call, calls f.Fn, and ends the guest if Fn fails.
func (f *HostFunc) wrap() api.GoModuleFunc {
	fn := f.Fn
	return func(ctx context.Context, mod api.Module, stack []uint64) {
		inst := instanceOf(ctx)
		if inst.mod == nil { // the start section of a module that is not metered runs during instantiation
			inst.mod = mod
		}
		inst.env.hostCall()
		if err := fn(ctx, inst, stack); err != nil {
			if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
				inst.env.check(ctx)
			}
			inst.env.halt(&Error{Kind: KindHost, Err: err})
		}
	}
}

// callContext passes the calling instance to host functions.
type callContext struct {
	context.Context
	inst *Instance
}

type instanceKey struct{}

// Value returns the instance for instanceKey, and the parent's value for other keys.
func (c *callContext) Value(key any) any {
	if _, ok := key.(instanceKey); ok {
		return c.inst
	}
	return c.Context.Value(key)
}

func instanceOf(ctx context.Context) *Instance {
	if c, ok := ctx.(*callContext); ok {
		return c.inst
	}
	inst, _ := ctx.Value(instanceKey{}).(*Instance)
	return inst
}

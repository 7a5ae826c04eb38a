package wasmrt

import (
	"cmp"
	"context"
	"slices"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental/table"
)

// A Func is a function of one instance.
type Func struct {
	inst *Instance
	def  api.FunctionDefinition
	find func() api.Function // returns the function with a stack of its own, for nested calls
}

// isOwn reports whether a function is code of the module. An imported function that the module exports again is not: if the host called
// it directly, the limits of the module would not apply, and an error that ends the guest would panic in the host.
func isOwn(def api.FunctionDefinition) bool {
	_, _, imported := def.Import()
	return !imported && def.GoFunction() == nil
}

// Func returns the exported function of that name, unless it is an imported one. The error has KindMissing.
func (i *Instance) Func(name string) (*Func, error) {
	if i.closed {
		return nil, &Error{Kind: KindClosed}
	}
	fn := i.mod.ExportedFunction(name)
	if fn == nil || !isOwn(fn.Definition()) {
		return nil, missing("no exported function " + clip(name))
	}
	return &Func{i, fn.Definition(), func() api.Function { return i.mod.ExportedFunction(name) }}, nil
}

// TableFunc returns the function at offset in the module's table of functions: the table exported as `__indirect_function_table`, else as
// `table`, else the first exported one. The error has KindMissing if there is no function with exactly that signature.
func (i *Instance) TableFunc(offset uint32, params, results []ValueType) (*Func, error) {
	if i.closed {
		return nil, &Error{Kind: KindClosed}
	}
	index, ok := i.module.shape.funcTable()
	if !ok {
		return nil, missing("no table is exported")
	}
	if i.module.shape.refersToHost {
		return nil, missing("the module has references to functions that it imports, so that none can be called by its place in a table: wrap them in functions of the module")
	}
	params, results = slices.Clone(params), slices.Clone(results)
	fn, err := i.lookUp(index, offset, params, results)
	if err != nil {
		return nil, err
	}
	return &Func{i, fn.Definition(), func() api.Function {
		fn, _ := i.lookUp(index, offset, params, results) // nil if the module has changed the table
		return fn
	}}, nil
}

func (i *Instance) lookUp(index, offset uint32, params, results []ValueType) (fn api.Function, err error) {
	defer func() {
		if recover() != nil { // the engine panics if there is no such function
			fn, err = nil, missing("no function of that signature at that place of the table")
		}
	}()
	return table.LookupFunction(i.mod, index, offset, params, results), nil
}

// Params returns the number of parameters.
func (f *Func) Params() int { return len(f.def.ParamTypes()) }

// Results returns the number of results.
func (f *Func) Results() int { return len(f.def.ResultTypes()) }

// stackSlots returns the number of stack slots that the parameters and the results require.
func (f *Func) stackSlots() int { return max(f.Params(), f.Results()) }

// Invoke calls the function. stack contains the parameters from index 0, and afterwards the results. If ctx ends, the guest is stopped
// and never runs again. The error is an *[Error]; after it the instance is [Instance.Spent].
func (f *Func) Invoke(ctx context.Context, stack []uint64) error {
	i := f.inst
	switch {
	case i.closed:
		return &Error{Kind: KindClosed}
	case i.env.ended != nil:
		return i.env.ended
	case ctx.Err() != nil:
		i.spent, i.env.ended = true, stopped(ctx)
		return i.env.ended
	}
	if len(stack) < f.stackSlots() {
		return invalid("the stack has %d places, and the function needs %d", len(stack), f.stackSlots())
	}
	fn := f.find()
	if fn == nil {
		return &Error{Kind: KindMissing}
	}
	if err := i.run(ctx, fn, stack); err != nil { // not `return i.run(…)`: a nil *Error would be an error that is not nil
		return err
	}
	return nil
}

// run calls a function of the guest, with the state of the calls around it saved and restored.
func (i *Instance) run(ctx context.Context, fn api.Function, stack []uint64) *Error {
	e := i.env
	outer, refused, calls := e.ctx, e.refused, e.calls
	// Requests that were refused before this call are not the cause of its failure.
	e.ctx, e.refused, e.calls = ctx, "", callStack{stackOf(fn), calls.size()}
	failed := e.calls.overflow()
	if failed == nil {
		if err := fn.CallWithStack(&callContext{ctx, i}, stack); err != nil {
			failed = failure(ctx, e, err, e.refused)
		} else if failed = e.ended; failed == nil { // the guest may have returned before the next tick
			failed = e.calls.overflow()
		}
	}
	i.spent = i.spent || failed != nil
	e.ctx, e.refused, e.calls = outer, cmp.Or(e.refused, refused), calls
	return failed
}

// Invoke calls the exported function of that name and returns its results. See [Func.Invoke].
func (i *Instance) Invoke(ctx context.Context, name string, args ...uint64) ([]uint64, error) {
	f, err := i.Func(name)
	if err != nil {
		return nil, err
	}
	if f.Params() != len(args) {
		return nil, missing("the function takes another number of arguments")
	}
	stack := make([]uint64, f.stackSlots())
	copy(stack, args)
	if err := f.Invoke(ctx, stack); err != nil {
		return nil, err
	}
	return stack[:f.Results()], nil
}

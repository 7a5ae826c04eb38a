package wasmtool

// This file calls the function of a module, by its exports: the function is tool(args_ptr, args_len, out_ptr, out_len_ptr: i32) -> i32, and
// its memory comes from an allocator of the module or from an arena.

import (
	"context"
	"errors"
	"fmt"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wasmrt"
	"github.com/lathe-run/lathe/tool"
)

// noSpace is the return code ENOSPC for an output that is too large.
const noSpace = -28

// An abi describes how the functions of one module are called.
type abi struct {
	export    string
	limit     uint32 // maximum length of the output, in bytes
	allocator allocator
}

// An allocator is the way in which a module provides memory for a call.
type allocator uint8

const (
	byRealloc allocator = iota + 1 // cabi_realloc(old, oldSize, align, newSize) -> ptr
	byMalloc                       // malloc(size) -> ptr
	byArena                        // exports tool_arena_ptr and tool_arena_len: functions or globals
)

const (
	arenaPtr = "tool_arena_ptr"
	arenaLen = "tool_arena_len"
)

var (
	i32      = []wasmrt.ValueType{wasmrt.I32}
	fourI32  = []wasmrt.ValueType{wasmrt.I32, wasmrt.I32, wasmrt.I32, wasmrt.I32}
	noValues = []wasmrt.ValueType{}
)

// abiOf determines the abi from the exports of the module.
func abiOf(m *wasmrt.Module, manifest *Manifest) (abi, error) {
	a := abi{export: manifest.Export, limit: uint32(manifest.Limits.OutputBytes)}
	switch found, fits := m.Exports(a.export, fourI32, i32); {
	case !found:
		return a, fmt.Errorf("the module exports no function %q", a.export)
	case !fits:
		return a, fmt.Errorf("the function %q is not (args_ptr, args_len, out_ptr, out_len_ptr: i32) -> i32", a.export)
	}
	if _, ok := m.Exports("cabi_realloc", fourI32, i32); ok {
		a.allocator = byRealloc
	} else if _, ok := m.Exports("malloc", i32, i32); ok {
		a.allocator = byMalloc
	} else {
		a.allocator = byArena // globals are visible only in an instance
	}
	return a, nil
}

// instanceState is the state of an instance that remains between calls: its functions and its arena.
type instanceState struct {
	inst      *wasmrt.Instance
	allocator allocator
	fn, alloc *wasmrt.Func // alloc is nil if there is an arena
	base, end uint64       // bounds of the arena
}

// prepare sets the state of an instance before its memory snapshot is made. A module may allocate its arena when the address is requested;
// the snapshot then contains the arena, and all calls use it.
func (a *abi) prepare(ctx context.Context, i *wasmrt.Instance) error {
	d := &instanceState{inst: i, allocator: a.allocator}
	var err error
	if d.fn, err = i.Func(a.export); err != nil {
		return err
	}
	switch a.allocator {
	case byRealloc:
		d.alloc, err = i.Func("cabi_realloc")
	case byMalloc:
		d.alloc, err = i.Func("malloc")
	default:
		err = d.arena(ctx, i)
	}
	if err == nil {
		i.SetData(d)
	}
	return err
}

var errNoAllocator = errors.New("the module exports neither cabi_realloc, nor malloc, nor tool_arena_ptr and tool_arena_len")

// arena reads the address and the length of the module's arena.
func (d *instanceState) arena(ctx context.Context, i *wasmrt.Instance) error {
	address, err := exportedValue(ctx, i, arenaPtr)
	if err != nil {
		return err
	}
	length, err := exportedValue(ctx, i, arenaLen)
	if err != nil {
		return err
	}
	d.base, d.end = wasmrt.Align8(address), address+length
	if address == 0 || d.end > uint64(i.Memory().Size()) {
		return fault("the arena is not in memory")
	}
	return nil
}

// exportedValue returns the value of an exported global, or the result of the exported function with that name.
func exportedValue(ctx context.Context, i *wasmrt.Instance, name string) (uint64, error) {
	if g, ok := i.Global(name); ok {
		return uint64(uint32(g)), nil
	}
	if _, fits := i.Module().Exports(name, noValues, i32); !fits {
		return 0, errNoAllocator
	}
	res, err := i.Invoke(ctx, name)
	if err != nil {
		return 0, err
	}
	return uint64(wasmrt.Uint32(res[0])), nil
}

func fault(text string) error { return fmt.Errorf("%w: %s", tool.ErrGuestFault, text) }

// Most implements [wasmrt.Space].
func (d *instanceState) Most() uint64 {
	if d.alloc != nil {
		return 1 << 32
	}
	return d.end - min(d.base, d.end)
}

// Reserve implements [wasmrt.Space].
func (d *instanceState) Reserve(ctx context.Context, n uint64) (uint64, error) {
	if d.alloc == nil {
		return d.base, nil
	}
	want := n + 7 // an allocator may align to less than 8 bytes
	if want >= 1<<32 {
		return 0, fault("the memory cannot hold the call")
	}
	stack := []uint64{want}
	if d.allocator == byRealloc {
		stack = []uint64{0, 0, 8, want}
	}
	if err := d.alloc.Invoke(ctx, stack); err != nil {
		return 0, err
	}
	ptr := uint64(wasmrt.Uint32(stack[0]))
	if ptr == 0 || ptr+want > uint64(d.inst.Memory().Size()) {
		return 0, fault("the allocator gave no memory")
	}
	return wasmrt.Align8(ptr), nil
}

// call calls the module and converts its result.
func (a *abi) call(ctx context.Context, i *wasmrt.Instance, args []byte) (*lathe.Output, error) {
	d := i.Data().(*instanceState)
	res, err := d.fn.Exchange(ctx, d, args, uint64(a.limit))
	if err != nil {
		return nil, err
	}
	out := &lathe.Output{IsError: true, Code: lathe.CodeExecutionFailed, RC: int(res.RC)}
	switch res.Outcome {
	case wasmrt.Returned:
		return &lathe.Output{Data: res.Data}, nil
	case wasmrt.Cramped:
		return nil, tool.Fail(lathe.CodeExecutionFailed, "the arguments do not fit into the arena of the module")
	case wasmrt.TooLarge:
		out.Code, out.RC = lathe.CodeOutputTooLarge, noSpace
	case wasmrt.TooOften:
		out.RC = noSpace
	case wasmrt.Garbled:
		out.Code = lathe.CodeInvalidOutput
	case wasmrt.Refused, wasmrt.NoLarger: // with the return code of the tool
	}
	return out, nil
}

// outcome converts an error of the module to one that the runner knows.
func outcome(name string, err error) error {
	op := "wasmtool: call " + name
	var e *wasmrt.Error
	if !errors.As(err, &e) {
		var failure *tool.Failure
		switch {
		case errors.Is(err, tool.ErrGuestFault), errors.As(err, &failure):
			return err
		case errors.Is(err, context.DeadlineExceeded):
			return lathe.CodeTimeout.Wrap(op, err)
		case errors.Is(err, context.Canceled):
			return lathe.CodeCancelled.Wrap(op, err)
		}
		return lathe.CodeExecutionFailed.Wrap(op, err)
	}
	switch {
	case e.Kind == wasmrt.KindTimeout:
		return lathe.CodeTimeout.Wrap(op, err)
	case e.Kind == wasmrt.KindCancelled:
		return lathe.CodeCancelled.Wrap(op, err)
	case e.Kind == wasmrt.KindMemory, e.Kind == wasmrt.KindLimit && e.Limit == "memory_pages":
		return fmt.Errorf("%s: %w: %w", op, tool.ErrGuestFault, err)
	case e.Kind == wasmrt.KindLimit:
		return tool.Fail(lathe.CodeExecutionFailed, "the module reached its limit %s", e.Limit)
	}
	return lathe.CodeExecutionFailed.Wrap(op, err)
}

package wasmtool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wasmrt"
	"github.com/lathe-run/lathe/tool"
)

// noSpace is the return code of an output that is too large: see [wasmrt.NeedsSpace]. Any other but 0 is a failure of the tool's own.
const noSpace = -28

const (
	firstOutput = 4 << 10 // bytes of the output buffer at the first attempt
	maxAttempts = 8       // of one call, each with a larger output buffer
)

// abi is how one module is called.
type abi struct {
	export string
	limit  uint32 // of the output
	how    allocator
}

type allocator uint8

const (
	byRealloc allocator = iota + 1 // cabi_realloc(old, oldSize, align, newSize) -> ptr
	byMalloc                       // malloc(size) -> ptr
	byArena                        // tool_arena_ptr and tool_arena_len: functions, or globals
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

// abiOf looks at what the module exports.
func abiOf(m *wasmrt.Module, manifest *Manifest) (abi, error) {
	a := abi{export: manifest.Export, limit: uint32(manifest.Limits.OutputBytes)}
	switch found, fits := m.Exports(a.export, fourI32, i32); {
	case !found:
		return a, fmt.Errorf("the module exports no function %q", a.export)
	case !fits:
		return a, fmt.Errorf("the function %q is not (args_ptr, args_len, out_ptr, out_len_ptr: i32) -> i32", a.export)
	}
	if _, ok := m.Exports("cabi_realloc", fourI32, i32); ok {
		a.how = byRealloc
	} else if _, ok := m.Exports("malloc", i32, i32); ok {
		a.how = byMalloc
	} else {
		a.how = byArena // globals show only in an instance
	}
	return a, nil
}

// instanceState is the state of an instance that is kept between calls: its functions and its arena.
type instanceState struct {
	fn, alloc *wasmrt.Func // alloc is nil where there is an arena
	base, end uint64       // of the arena
	stack     [4]uint64
}

// prepare sets the state of an instance before the memory snapshot is taken. A module may allocate its arena when it is asked
// for the address; the snapshot then contains the arena, and all calls use it.
func (a *abi) prepare(ctx context.Context, i *wasmrt.Instance) error {
	d := &instanceState{}
	var err error
	if d.fn, err = i.Func(a.export); err != nil {
		return err
	}
	switch a.how {
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

// arena asks the module once where its arena is.
func (d *instanceState) arena(ctx context.Context, i *wasmrt.Instance) error {
	var v [2]uint64
	for n, name := range []string{arenaPtr, arenaLen} {
		if g, ok := i.Global(name); ok {
			v[n] = uint64(uint32(g))
			continue
		}
		if _, fits := i.Module().Exports(name, noValues, i32); !fits {
			return errNoAllocator
		}
		res, err := i.Invoke(ctx, name)
		if err != nil {
			return err
		}
		v[n] = uint64(wasmrt.Uint32(res[0]))
	}
	d.base, d.end = (v[0]+7)&^7, v[0]+v[1]
	if v[0] == 0 || d.end > uint64(i.Memory().Size()) {
		return fault("the arena is not in memory")
	}
	return nil
}

func fault(text string) error { return fmt.Errorf("%w: %s", tool.ErrGuestFault, text) }

// reserve allocates n bytes in the module and returns their address, aligned to 8. It is called once per attempt.
func (d *instanceState) reserve(ctx context.Context, i *wasmrt.Instance, a *abi, n uint64) (uint64, error) {
	want := n + 7 // an allocator may align to less
	if want >= 1<<32 {
		return 0, fault("the memory cannot hold the call")
	}
	if a.how == byRealloc {
		d.stack = [4]uint64{0, 0, 8, want}
	} else {
		d.stack[0] = want
	}
	if err := d.alloc.Invoke(ctx, d.stack[:]); err != nil {
		return 0, err
	}
	ptr := uint64(wasmrt.Uint32(d.stack[0]))
	if ptr == 0 || ptr+want > uint64(i.Memory().Size()) {
		return 0, fault("the allocator gave no memory")
	}
	return (ptr + 7) &^ 7, nil
}

// call runs the tool, and runs it again with a larger output buffer if it returns noSpace.
//
// The length word comes first, then the arguments with a NUL behind them, then the output, each at
// a multiple of 8.
func (a *abi) call(ctx context.Context, i *wasmrt.Instance, args []byte) (*lathe.Output, error) {
	d := i.Data().(*instanceState)
	head := 8 + (uint64(len(args))+1+7)&^7
	room := min(uint64(firstOutput), uint64(a.limit))
	block := d.base
	var out, most uint64
	var err error
	most = uint64(a.limit)
	if d.alloc == nil {
		if d.base+head+8 > d.end {
			return nil, tool.Fail(lathe.CodeExecutionFailed, "the arguments do not fit into the arena of the module")
		}
		most = min(most, d.end-d.base-head)
		room = min(room, most)
	} else if block, err = d.reserve(ctx, i, a, head+room); err != nil {
		return nil, err
	}
	out = block + head
	mem := i.Memory()
	word, argsAt := uint32(block), uint32(block+8)
	for range maxAttempts {
		// The tool may have written over its arguments: each attempt gets them anew.
		if err := errors.Join(mem.WriteUint32(word, uint32(room)), mem.Write(argsAt, args), mem.Write(argsAt+uint32(len(args)), []byte{0})); err != nil {
			return nil, err
		}
		d.stack = [4]uint64{uint64(argsAt), uint64(len(args)), out, uint64(word)}
		if err := d.fn.Invoke(ctx, d.stack[:]); err != nil {
			return nil, err
		}
		rc := wasmrt.Int32(d.stack[0])
		n, err := mem.ReadUint32(word)
		if err != nil {
			return nil, err
		}
		switch {
		case rc == 0:
			return output(mem, uint32(out), n, uint32(room))
		case !wasmrt.NeedsSpace(rc, n, room):
			return &lathe.Output{IsError: true, Code: lathe.CodeExecutionFailed, RC: int(rc)}, nil
		case uint64(n) > most:
			return &lathe.Output{IsError: true, Code: lathe.CodeOutputTooLarge, RC: noSpace}, nil
		case uint64(n) <= room: // it has that much already
			return &lathe.Output{IsError: true, Code: lathe.CodeExecutionFailed, RC: int(rc)}, nil
		}
		room = uint64(n)
		if d.alloc != nil {
			if out, err = d.reserve(ctx, i, a, room); err != nil {
				return nil, err
			}
		}
	}
	return &lathe.Output{IsError: true, Code: lathe.CodeExecutionFailed, RC: noSpace}, nil
}

// output takes n bytes out of memory. Text that is not JSON becomes a string of JSON.
func output(mem wasmrt.Memory, at, n, room uint32) (*lathe.Output, error) {
	if n > room {
		return &lathe.Output{IsError: true, Code: lathe.CodeInvalidOutput}, nil
	}
	view, err := mem.Read(at, n)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(view) {
		return &lathe.Output{IsError: true, Code: lathe.CodeInvalidOutput}, nil
	}
	if n > 0 && !json.Valid(view) {
		return &lathe.Output{Data: rawjson.AppendQuote(nil, string(view))}, nil
	}
	return &lathe.Output{Data: bytes.Clone(view)}, nil
}

// outcome turns what a module did into what the runner knows.
func outcome(name string, err error) error {
	op := "wasmtool: call " + name
	var e *wasmrt.Error
	if !errors.As(err, &e) {
		var failure *tool.Failure
		switch {
		case errors.Is(err, tool.ErrGuestFault), errors.As(err, &failure):
			return err
		case errors.Is(err, context.DeadlineExceeded):
			return &lathe.Error{Code: lathe.CodeTimeout, Op: op, Err: err}
		case errors.Is(err, context.Canceled):
			return &lathe.Error{Code: lathe.CodeCancelled, Op: op, Err: err}
		}
		return &lathe.Error{Code: lathe.CodeExecutionFailed, Op: op, Err: err}
	}
	switch {
	case e.Kind == wasmrt.KindTimeout:
		return &lathe.Error{Code: lathe.CodeTimeout, Op: op, Err: err}
	case e.Kind == wasmrt.KindCancelled:
		return &lathe.Error{Code: lathe.CodeCancelled, Op: op, Err: err}
	case e.Kind == wasmrt.KindMemory, e.Kind == wasmrt.KindLimit && e.Limit == "memory_pages":
		return fmt.Errorf("%s: %w: %w", op, tool.ErrGuestFault, err)
	case e.Kind == wasmrt.KindLimit:
		return tool.Fail(lathe.CodeExecutionFailed, "the module reached its limit %s", e.Limit)
	}
	return &lathe.Error{Code: lathe.CodeExecutionFailed, Op: op, Err: err}
}

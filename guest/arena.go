package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wasmrt"
)

var (
	i32     = []wasmrt.ValueType{wasmrt.I32}
	fourI32 = []wasmrt.ValueType{wasmrt.I32, wasmrt.I32, wasmrt.I32, wasmrt.I32}
)

var (
	errArena = errors.New("the arena is not in memory")
	errNoMem = errors.New("the allocator gave no memory")
)

// A callMemory provides the memory of one call: an arena of the session, or the guest's own allocator.
type callMemory struct {
	program   *program
	base, end uint64 // the bounds of an arena, as addresses
	alloc     string // name of the exported allocator; "" for an arena
	block            // memory that alloc has returned
}

// A block is memory of the guest's allocator.
type block struct{ at, size uint64 }

// memoryFor returns the callMemory for calls of functions of the session, or nil if the guest provides no memory. It returns errArena if
// the arena is out of bounds.
func (p *program) memoryFor(s *session) (*callMemory, error) {
	ptr, n := uint64(s.params.arenaPtr), uint64(s.params.arenaLen)
	if ptr != 0 && n != 0 {
		if ptr+n > uint64(p.inst.Memory().Size()) {
			return nil, errArena
		}
		return &callMemory{program: p, base: wasmrt.Align8(ptr), end: ptr + n}, nil
	}
	m := p.inst.Module()
	if _, ok := m.Exports("cabi_realloc", fourI32, i32); ok {
		return &callMemory{program: p, alloc: "cabi_realloc"}, nil
	}
	if _, ok := m.Exports("malloc", i32, i32); ok {
		return &callMemory{program: p, alloc: "malloc"}, nil
	}
	return nil, nil
}

// Most implements [wasmrt.Space].
func (l *callMemory) Most() uint64 {
	if l.alloc != "" {
		return 1 << 32
	}
	return l.end - min(l.base, l.end)
}

// Reserve implements [wasmrt.Space].
func (l *callMemory) Reserve(ctx context.Context, n uint64) (uint64, error) {
	if l.alloc == "" {
		return l.base, nil
	}
	want := n + 7 // the allocator may align to less than 8
	if l.size >= want {
		return wasmrt.Align8(l.at), nil
	}
	if want >= 1<<32 {
		return 0, errNoMem
	}
	args := []uint64{want}
	if l.alloc == "cabi_realloc" {
		args = []uint64{l.at, l.size, 8, want}
	} else if err := l.free(ctx); err != nil {
		return 0, err
	}
	res, err := l.program.inst.Invoke(ctx, l.alloc, args...)
	if err != nil {
		return 0, errors.Join(err, errNoMem)
	}
	at := uint64(wasmrt.Uint32(res[0]))
	if at == 0 || at+want > uint64(l.program.inst.Memory().Size()) {
		return 0, errNoMem
	}
	l.at, l.size = at, want
	return wasmrt.Align8(at), nil
}

// free frees memory of malloc if the guest exports free. Memory of cabi_realloc is reused by the next call.
func (l *callMemory) free(ctx context.Context) error {
	if l.alloc != "malloc" || l.at == 0 {
		return nil
	}
	at := l.at
	l.at, l.size = 0, 0
	if _, ok := l.program.inst.Module().Exports("free", i32, nil); !ok {
		return nil
	}
	_, err := l.program.inst.Invoke(ctx, "free", at)
	return err
}

// find returns the function of the guest; nil if the offset is invalid or there is no such export.
func (p *program) find(f *function) (*wasmrt.Func, error) {
	if f.offset < byName {
		return nil, nil
	}
	if f.offset != byName {
		return p.inst.TableFunc(uint32(f.offset), fourI32, i32)
	}
	if found, fits := p.inst.Module().Exports(f.spec.Name, fourI32, i32); found && !fits {
		return nil, &wasmrt.Error{Kind: wasmrt.KindMissing, Err: errors.New("the export has another signature")}
	} else if !found {
		return nil, nil
	}
	return p.inst.Func(f.spec.Name)
}

// byName is the offset of a function that is the export with the tool's name.
const byName = -1

// call calls a function of the guest. A failure of the call is an Output with IsError. An error ends the guest, or is converted to a
// failure by outcome.
func (p *program) call(ctx context.Context, f *function, args json.RawMessage) (*lathe.Output, error) {
	l, err := p.memoryFor(f.session)
	if err != nil {
		return nil, err
	}
	fn, err := p.find(f)
	if err != nil {
		return nil, err
	}
	if l == nil || fn == nil {
		cause := "the guest exports no function under the tool's name"
		if l == nil {
			cause = "the guest provides no memory for arguments: tool_arena_ptr and tool_arena_len, cabi_realloc, or malloc and free"
		}
		return failedBecause(-efault, cause), nil
	}
	if l.alloc == "cabi_realloc" { // nested calls use separate blocks
		if last := len(p.spare) - 1; last >= 0 {
			l.block, p.spare = p.spare[last], p.spare[:last]
		}
		defer func() { p.spare = append(p.spare, l.block) }()
	}
	res, err := fn.Exchange(ctx, l, args, uint64(p.outputBytes(f.session)))
	if err != nil {
		return nil, err
	}
	return outputOf(&res), l.free(ctx)
}

// outputOf converts the result of an exchange to the output of the call.
func outputOf(res *wasmrt.Exchanged) *lathe.Output {
	switch res.Outcome {
	case wasmrt.Cramped:
		return failedBecause(-enospc, "the arguments do not fit into the memory that the guest provides")
	case wasmrt.Refused:
		return failedBecause(int(res.RC), fmt.Sprintf("the function returned %d", res.RC))
	case wasmrt.TooLarge:
		return &lathe.Output{IsError: true, Code: lathe.CodeOutputTooLarge, RC: -enospc}
	case wasmrt.NoLarger: // the buffer has that size already
		return failedBecause(-eio, "the function returned -28 (ENOSPC) without a larger length; if it meant EINVAL, which is 28 in WASI's C library, return -22 (see docs/internals/guest-abi.md)")
	case wasmrt.TooOften:
		return failedBecause(-eio, "the function asked for a larger buffer at each attempt")
	case wasmrt.Garbled:
		return &lathe.Output{IsError: true, Code: lathe.CodeInvalidOutput, RC: -eio}
	}
	return &lathe.Output{Data: res.Data}
}

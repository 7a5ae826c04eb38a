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

// The allocators that a guest can export.
const (
	allocRealloc = "cabi_realloc"
	allocMalloc  = "malloc"
)

// byName is the offset of a function that is the export with the tool's name.
const byName = -1

// An arena is memory that a session provides for all of its calls. It implements [wasmrt.Space].
type arena struct{ base, end uint64 }

// Most implements [wasmrt.Space].
func (a arena) Most() uint64 { return a.end - min(a.base, a.end) }

// Reserve implements [wasmrt.Space].
func (a arena) Reserve(context.Context, uint64) (uint64, error) { return a.base, nil }

// A callMemory is memory of the guest's allocator for one call. It implements [wasmrt.Space]. Blocks of cabi_realloc are stored in
// program.spare after a call, since nested calls must not share one.
type callMemory struct {
	program *program
	alloc   string // name of the exported allocator
	block          // memory that alloc has returned
}

// A block is memory of the guest's allocator.
type block struct{ at, size uint64 }

// memoryFor returns the memory for a call of a function of the session, an arena or a *callMemory, or nil if the guest provides none. It
// returns errArena if the arena is out of bounds.
func (p *program) memoryFor(s *session) (wasmrt.Space, error) {
	ptr, n := uint64(s.params.arenaPtr), uint64(s.params.arenaLen)
	if ptr != 0 && n != 0 {
		if ptr+n > uint64(p.inst.Memory().Size()) {
			return nil, errArena
		}
		return arena{base: wasmrt.Align8(ptr), end: ptr + n}, nil
	}
	m := p.inst.Module()
	if _, ok := m.Exports(allocRealloc, fourI32, i32); ok {
		return &callMemory{program: p, alloc: allocRealloc}, nil
	}
	if _, ok := m.Exports(allocMalloc, i32, i32); ok {
		return &callMemory{program: p, alloc: allocMalloc}, nil
	}
	return nil, nil
}

// Most implements [wasmrt.Space].
func (m *callMemory) Most() uint64 { return 1 << 32 }

// Reserve implements [wasmrt.Space].
func (m *callMemory) Reserve(ctx context.Context, n uint64) (uint64, error) {
	want := n + 7 // the allocator may align to less than 8
	if m.size >= want {
		return wasmrt.Align8(m.at), nil
	}
	if want >= 1<<32 {
		return 0, errNoMem
	}
	args := []uint64{want}
	if m.alloc == allocRealloc {
		args = []uint64{m.at, m.size, 8, want}
	} else if err := m.release(ctx); err != nil {
		return 0, err
	}
	res, err := m.program.inst.Invoke(ctx, m.alloc, args...)
	if err != nil {
		return 0, errors.Join(err, errNoMem)
	}
	at := uint64(wasmrt.Uint32(res[0]))
	if at == 0 || at+want > uint64(m.program.inst.Memory().Size()) {
		return 0, errNoMem
	}
	m.at, m.size = at, want
	return wasmrt.Align8(at), nil
}

// release frees memory of malloc if the guest exports free. Memory of cabi_realloc is reused by the next call.
func (m *callMemory) release(ctx context.Context) error {
	if m.alloc != allocMalloc || m.at == 0 {
		return nil
	}
	at := m.at
	m.at, m.size = 0, 0
	if _, ok := m.program.inst.Module().Exports("free", i32, nil); !ok {
		return nil
	}
	_, err := m.program.inst.Invoke(ctx, "free", at)
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
	found, fits := p.inst.Module().Exports(f.spec.Name, fourI32, i32)
	switch {
	case !found:
		return nil, nil
	case !fits:
		return nil, &wasmrt.Error{Kind: wasmrt.KindMissing, Err: errors.New("the export has another signature")}
	}
	return p.inst.Func(f.spec.Name)
}

// call calls a function of the guest. A failure of the call is an Output with IsError. An error ends the guest, or is converted to a
// failure by outcome.
func (p *program) call(ctx context.Context, f *function, args json.RawMessage) (*lathe.Output, error) {
	mem, err := p.memoryFor(f.session)
	if err != nil {
		return nil, err
	}
	fn, err := p.find(f)
	if err != nil {
		return nil, err
	}
	if mem == nil || fn == nil {
		cause := "the guest exports no function under the tool's name"
		if mem == nil {
			cause = "the guest provides no memory for arguments: tool_arena_ptr and tool_arena_len, cabi_realloc, or malloc and free"
		}
		return failedBecause(-efault, cause), nil
	}
	own, _ := mem.(*callMemory)                  // nil: an arena
	if own != nil && own.alloc == allocRealloc { // nested calls use separate blocks
		if last := len(p.spare) - 1; last >= 0 {
			own.block, p.spare = p.spare[last], p.spare[:last]
		}
		defer func() { p.spare = append(p.spare, own.block) }()
	}
	res, err := fn.Exchange(ctx, mem, args, uint64(p.limitsOf(f.session).MaxOutputBytes))
	if err != nil {
		return nil, err
	}
	if own != nil {
		err = own.release(ctx)
	}
	return outputOf(&res), err
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

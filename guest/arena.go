package guest

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
	base, end uint64 // of an arena
	alloc     string // else the export that allocates memory
	block            // allocated by it
}

// A block is memory of the guest's allocator.
type block struct{ at, size uint64 }

// memoryFor returns the callMemory for calls of the session, or nil if the guest provides no memory.
func (p *program) memoryFor(s *session) (*callMemory, error) {
	ptr, n := uint64(s.params.arenaPtr), uint64(s.params.arenaLen)
	if ptr != 0 && n != 0 {
		if ptr+n > uint64(p.inst.Memory().Size()) {
			return nil, errArena
		}
		return &callMemory{program: p, base: align8(ptr), end: ptr + n}, nil
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

func align8(n uint64) uint64 { return (n + 7) &^ 7 }

// most returns the maximum number of bytes.
func (l *callMemory) most() uint64 {
	if l.alloc != "" {
		return 1 << 32
	}
	return l.end - min(l.base, l.end)
}

// reserve returns the address of n bytes, aligned to 8. It invalidates the previous address.
func (l *callMemory) reserve(ctx context.Context, n uint64) (uint64, error) {
	if l.alloc == "" {
		return l.base, nil
	}
	want := n + 7 // an allocator may align to less
	if l.size >= want {
		return align8(l.at), nil
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
	return align8(at), nil
}

// free frees memory of malloc if the guest exports free. Memory of cabi_realloc is kept for
// the next call.
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

// find returns the function of the guest, or nil for an invalid offset.
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

// byName is the offset of a function that is exported with the tool's name.
const byName = -1

// call calls a function of the guest, and repeats the call with a larger buffer if the function asks for one. An error
// that is not a failure of the call ends the guest.
//
// The memory holds the length word, then the arguments with a NUL, then the output buffer, each at a
// multiple of 8.
func (p *program) call(ctx context.Context, f *function, args json.RawMessage) (*lathe.Output, error) {
	limit := uint64(p.outputBytes(f.session))
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
	if l.alloc == "cabi_realloc" { // calls within calls have blocks of their own
		if last := len(p.spare) - 1; last >= 0 {
			l.block, p.spare = p.spare[last], p.spare[:last]
		}
		defer func() { p.spare = append(p.spare, l.block) }()
	}
	head := 8 + align8(uint64(len(args))+1)
	if l.most() <= head {
		return failedBecause(-enospc, "the arguments do not fit into the memory that the guest provides"), nil
	}
	fits := l.most() - head
	capacity := min(firstOutput, limit, fits)
	for range maxAttempts {
		base, err := l.reserve(ctx, head+capacity)
		if err != nil {
			return nil, err
		}
		rc, n, err := p.attempt(ctx, fn, base, head, capacity, args)
		switch {
		case err != nil:
			return nil, err
		case rc == 0:
			out, err := p.output(uint32(base+head), n, uint32(capacity))
			return out, errors.Join(err, l.free(ctx))
		case !wasmrt.NeedsSpace(rc, n, capacity):
			return failedBecause(int(rc), fmt.Sprintf("the function returned %d", rc)), l.free(ctx)
		case uint64(n) > min(limit, fits):
			return &lathe.Output{IsError: true, Code: lathe.CodeOutputTooLarge, RC: -enospc}, l.free(ctx)
		case uint64(n) <= capacity: // the buffer has that size already
			return failedBecause(-eio, "the function returned -28 (ENOSPC) without a larger length; if it meant EINVAL, which is 28 in WASI's C library, return -22 (see docs/guest-abi.md)"), l.free(ctx)
		}
		capacity = uint64(n)
	}
	return failedBecause(-eio, fmt.Sprintf("the function returned -ENOSPC %d times", maxAttempts)), l.free(ctx)
}

// attempt calls the function once. n is the length word afterwards.
func (p *program) attempt(ctx context.Context, fn *wasmrt.Func, base, head, capacity uint64, args []byte) (rc int32, n uint32, err error) {
	mem := p.inst.Memory()
	word, argsAt := uint32(base), uint32(base+8)
	// The function may have written over its arguments: each attempt gets them anew.
	if err := errors.Join(mem.WriteUint32(word, uint32(capacity)), mem.Write(argsAt, args), mem.Write(argsAt+uint32(len(args)), []byte{0})); err != nil {
		return 0, 0, err
	}
	stack := []uint64{uint64(argsAt), uint64(len(args)), base + head, uint64(word)}
	if err := fn.Invoke(ctx, stack); err != nil {
		return 0, 0, err
	}
	n, err = p.inst.Memory().ReadUint32(word)
	return wasmrt.Int32(stack[0]), n, err
}

// output copies n bytes out of memory. Text that is not JSON becomes a JSON string.
func (p *program) output(at, n, capacity uint32) (*lathe.Output, error) {
	bad := &lathe.Output{IsError: true, Code: lathe.CodeInvalidOutput, RC: -eio}
	if n > capacity {
		return bad, nil
	}
	view, err := p.inst.Memory().Read(at, n)
	switch {
	case err != nil:
		return nil, err
	case !utf8.Valid(view):
		return bad, nil
	case n > 0 && !json.Valid(view):
		return &lathe.Output{Data: rawjson.AppendQuote(nil, string(view))}, nil
	}
	return &lathe.Output{Data: bytes.Clone(view)}, nil
}

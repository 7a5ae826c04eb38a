package wasmrt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/lathe-run/lathe/internal/rawjson"
)

const (
	firstOutput = 4 << 10 // size of the output buffer at the first attempt
	maxAttempts = 8       // maximal number of attempts, each with a larger output buffer
)

// A Space is memory of a guest that the host may use during one exchange.
type Space interface {
	// Most returns the largest size that Reserve accepts, in bytes.
	Most() uint64
	// Reserve returns the address of n bytes, a multiple of 8. The bytes that it returned before are no longer used.
	Reserve(ctx context.Context, n uint64) (uint64, error)
}

// An Outcome is the way in which an exchange ended.
type Outcome uint8

// The outcomes.
const (
	Returned Outcome = iota // the function returned 0; Data is its output
	Refused                 // the function returned the error RC, which does not ask for a larger buffer
	Cramped                 // the arguments do not fit into the space
	TooLarge                // the output is larger than the limit or the space
	NoLarger                // the function returned RC, which asks for a larger buffer, with a length that is not larger
	TooOften                // the function asked for a larger buffer at each attempt
	Garbled                 // the output is not UTF-8, or longer than its buffer
)

// Exchanged is the result of [Func.Exchange].
type Exchanged struct {
	Outcome Outcome
	RC      int32
	Data    json.RawMessage // output that is not JSON is a JSON string
}

// Exchange calls a function (args_ptr, args_len, out_ptr, out_len_ptr: i32) -> i32, and repeats the call with a larger buffer if the
// function asks for one, up to limit bytes.
//
// The reserved memory contains the length word, the arguments with a NUL, and the output buffer, each at a multiple of 8.
func (f *Func) Exchange(ctx context.Context, space Space, args []byte, limit uint64) (Exchanged, error) {
	head := 8 + Align8(uint64(len(args))+1)
	if space.Most() <= head {
		return Exchanged{Outcome: Cramped}, nil
	}
	most := min(limit, space.Most()-head)
	capacity := min(firstOutput, most)
	for range maxAttempts {
		base, err := space.Reserve(ctx, head+capacity)
		if err != nil {
			return Exchanged{}, err
		}
		rc, n, err := f.attempt(ctx, base, head, capacity, args)
		switch {
		case err != nil:
			return Exchanged{}, err
		case rc == 0:
			return f.output(uint32(base+head), n, uint32(capacity))
		case !needsSpace(rc, n, capacity):
			return Exchanged{Outcome: Refused, RC: rc}, nil
		case uint64(n) > most:
			return Exchanged{Outcome: TooLarge, RC: rc}, nil
		case uint64(n) <= capacity:
			return Exchanged{Outcome: NoLarger, RC: rc}, nil
		}
		capacity = uint64(n)
	}
	return Exchanged{Outcome: TooOften}, nil
}

// Align8 returns the smallest multiple of 8 that is at least n.
func Align8(n uint64) uint64 { return (n + 7) &^ 7 }

// attempt calls the function once. n is the value of the length word after the call.
func (f *Func) attempt(ctx context.Context, base, head, capacity uint64, args []byte) (rc int32, n uint32, err error) {
	mem := f.inst.Memory()
	word, argsAt := uint32(base), uint32(base+8)
	// The function may have written over its arguments: each attempt writes them again.
	if err := errors.Join(mem.WriteUint32(word, uint32(capacity)), mem.Write(argsAt, args), mem.Write(argsAt+uint32(len(args)), []byte{0})); err != nil {
		return 0, 0, err
	}
	stack := []uint64{uint64(argsAt), uint64(len(args)), base + head, uint64(word)}
	if err := f.Invoke(ctx, stack); err != nil {
		return 0, 0, err
	}
	n, err = mem.ReadUint32(word)
	return Int32(stack[0]), n, err
}

// needsSpace reports whether a function that returned rc, and wrote n as the length of its output, asks for a buffer larger than
// capacity. ENOSPC is 28 on Linux and in the contract of guests. In the C library of WASI it is 51, which counts only with a larger
// length, because 51 may be another error in other programs.
func needsSpace(rc int32, n uint32, capacity uint64) bool {
	return rc == -28 || rc == -51 && uint64(n) > capacity
}

// output returns a copy of the n bytes of output at address at.
func (f *Func) output(at, n, capacity uint32) (Exchanged, error) {
	if n > capacity {
		return Exchanged{Outcome: Garbled}, nil
	}
	view, err := f.inst.Memory().Read(at, n)
	switch {
	case err != nil:
		return Exchanged{}, err
	case !utf8.Valid(view):
		return Exchanged{Outcome: Garbled}, nil
	case n > 0 && !json.Valid(view):
		return Exchanged{Data: rawjson.AppendQuote(nil, string(view))}, nil
	}
	return Exchanged{Data: bytes.Clone(view)}, nil
}

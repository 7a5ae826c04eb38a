package wasmrt

import (
	"encoding/binary"
	"errors"
	"unicode/utf8"
)

// A reader reads the binary format. After its first error it returns only zeros.
type reader struct {
	b   []byte
	i   int // index of the next byte
	err error
}

const cutShort = "the module is cut short"

func (r *reader) fail(text string) { r.refuse(errors.New(text)) }

// refuse does what fail does, with an error that may be an *Error.
func (r *reader) refuse(err error) {
	if r.err == nil {
		r.err = err
	}
	r.i = len(r.b)
}

func (r *reader) byte() byte {
	if r.i >= len(r.b) {
		r.fail(cutShort)
		return 0
	}
	r.i++
	return r.b[r.i-1]
}

func (r *reader) bytes(n uint32) []byte {
	if uint64(n) > uint64(len(r.b)-r.i) {
		r.fail(cutShort)
		return nil
	}
	r.i += int(n)
	return r.b[r.i-int(n) : r.i]
}

func (r *reader) u32() uint32 {
	v, n := binary.Uvarint(r.b[r.i:])
	if n <= 0 || n > 5 || v > 1<<32-1 {
		r.fail(cutShort)
		return 0
	}
	r.i += n
	return uint32(v)
}

// count reads the length of a vector. Each element has at least one byte, so a length above the rest of the input is an error, before
// memory is allocated for it.
func (r *reader) count() uint32 {
	n := r.u32()
	if uint64(n) > uint64(len(r.b)-r.i) {
		r.fail("a list is longer than the module")
		return 0
	}
	return n
}

// leb skips a LEB128 number of any width.
func (r *reader) leb() {
	for n := 0; ; n++ {
		if b := r.byte(); b < 0x80 || n > 10 || r.err != nil {
			return
		}
	}
}

func (r *reader) name() string {
	b := r.bytes(r.u32())
	if !utf8.Valid(b) {
		r.fail("a name is not UTF-8")
	}
	return string(b)
}

// limits reads the size of a memory or table, which must have 32 bits and not be shared.
func (r *reader) limits() (least, most uint32, bounded bool) {
	flag := r.byte()
	if flag > 1 {
		r.fail("a memory or table is shared or of 64 bits")
		return 0, 0, false
	}
	least = r.u32()
	if flag == 1 {
		most = r.u32()
	}
	return least, most, flag == 1
}

package wasmrt

import (
	"encoding/binary"
	"errors"
	"unicode/utf8"
)

// A reader reads the binary format. After its first error all it reads is zero.
type reader struct {
	b   []byte
	i   int
	err error
}

func (r *reader) fail(text string) {
	if r.err == nil {
		r.err = errors.New(text)
	}
	r.i = len(r.b)
}

func (r *reader) byte() byte {
	if r.i >= len(r.b) {
		if r.err == nil {
			r.err = errShort
		}
		return 0
	}
	r.i++
	return r.b[r.i-1]
}

func (r *reader) bytes(n uint32) []byte {
	if uint64(n) > uint64(len(r.b)-r.i) {
		r.i = len(r.b)
		if r.err == nil {
			r.err = errShort
		}
		return nil
	}
	r.i += int(n)
	return r.b[r.i-int(n) : r.i]
}

func (r *reader) u32() uint32 {
	v, n := binary.Uvarint(r.b[r.i:])
	if n <= 0 || n > 5 || v > 1<<32-1 {
		if r.err == nil {
			r.err = errShort
		}
		r.i = len(r.b)
		return 0
	}
	r.i += n
	return uint32(v)
}

// count reads the length of a vector. Each of its elements has at least a byte, so that a length
// above what is left is wrong before anything is made for it.
func (r *reader) count() uint32 {
	n := r.u32()
	if uint64(n) > uint64(len(r.b)-r.i) {
		r.fail("a list is longer than the module")
		return 0
	}
	return n
}

// leb skips a number of any width.
func (r *reader) leb() {
	for n := 0; ; n++ {
		if b := r.byte(); b < 0x80 || n > 10 || r.err != nil {
			return
		}
	}
}

func (r *reader) lebs(n int) {
	for range n {
		r.leb()
	}
}

func (r *reader) name() string {
	b := r.bytes(r.u32())
	if !utf8.Valid(b) {
		r.fail("a name is not UTF-8")
	}
	return string(b)
}

// limits reads the size of a memory or table: of 32 bits and not shared.
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

// constExpr skips the initial value of a global.
func (r *reader) constExpr() {
	for r.err == nil {
		switch op := r.byte(); op {
		case 0x0b:
			return
		case 0x23, 0x41, 0x42, 0xd0, 0xd2:
			r.leb()
		case 0x43:
			r.bytes(4)
		case 0x44:
			r.bytes(8)
		case 0xfd:
			r.u32()
			r.bytes(16)
		case 0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e:
		default:
			r.fail("a global has an initial value that is not constant")
		}
	}
}

// lasting reads the instructions of a function and says which of them can change state that is
// neither in memory nor in a global; "" when none can. An instruction that is not known can.
func (r *reader) lasting() string {
	for r.i < len(r.b) && r.err == nil {
		switch op := r.byte(); {
		case op <= 0x01, op == 0x05, op == 0x0b, op == 0x0f, op == 0x1a, op == 0x1b, op >= 0x45 && op <= 0xc4, op == 0xd1:
		case op >= 0x02 && op <= 0x04, op == 0x0c, op == 0x0d, op == 0x10, op >= 0x20 && op <= 0x25,
			op >= 0x3f && op <= 0x42, op == 0xd0, op == 0xd2:
			r.leb()
		case op == 0x0e:
			r.lebs(int(r.count()) + 1)
		case op == 0x11:
			r.lebs(2)
		case op == 0x1c:
			r.bytes(r.u32())
		case op == 0x26:
			return "its code changes a table"
		case op >= 0x28 && op <= 0x3e:
			r.lebs(2)
		case op == 0x43:
			r.bytes(4)
		case op == 0x44:
			r.bytes(8)
		case op == 0xfc:
			if why := r.lastingBulk(); why != "" {
				return why
			}
		case op == 0xfd:
			r.simd()
		default:
			return "its code has instructions that are not known"
		}
	}
	if r.err != nil {
		return "its code cannot be read"
	}
	return ""
}

func (r *reader) lastingBulk() string {
	switch op := r.u32(); op {
	case 0, 1, 2, 3, 4, 5, 6, 7:
	case 11, 16:
		r.leb()
	case 8, 10:
		r.lebs(2)
	case 12, 14, 15, 17:
		return "its code changes a table"
	default:
		return "its code drops a segment"
	}
	return ""
}

func (r *reader) simd() {
	switch op := r.u32(); {
	case op <= 11, op == 92, op == 93:
		r.lebs(2)
	case op == 12, op == 13:
		r.bytes(16)
	case op >= 21 && op <= 34:
		r.byte()
	case op >= 84 && op <= 91:
		r.lebs(2)
		r.byte()
	}
}

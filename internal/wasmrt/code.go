package wasmrt

// This file reads the instructions of functions.

import "fmt"

const (
	opBlock      = 0x02
	opLoop       = 0x03
	opIf         = 0x04
	opElse       = 0x05
	opEnd        = 0x0b
	opCall       = 0x10
	opDrop       = 0x1a
	opGetLocal   = 0x20
	opSetLocal   = 0x21
	opTeeLocal   = 0x22
	opGetGlobal  = 0x23
	opSetGlobal  = 0x24
	opSetTable   = 0x26
	opFirstStore = 0x36
	opLastStore  = 0x3e
	opGrowMemory = 0x40
	opConst      = 0x41 // of i32
	opRefFunc    = 0xd2
)

// operandKinds has a letter for each instruction: the form of its operands.
//
//	.  none                      /  none; the instruction divides
//	i  a number                  b  the type of a block         t  a table of branches
//	f  a function that is called y  a type and a table          s  types
//	g  a global                  T  a table                     a  alignment and offset
//	z  a byte of zero            c  four bytes                  d  eight bytes
//	n  the type of a reference   r  a function                  m, v  the rest of the instruction's number
//
// x marks an unsupported instruction. An instruction is supported only if this reader and the engine certainly parse it in the same way:
// otherwise code could escape the metering.
const operandKinds = "..bbb.xxxxx.iit." + "fyxxxxxxxx..sxxx" + "iiiggTTxaaaaaaaa" + "aaaaaaaaaaaaaaaz" + // 0x
	"ziicd..........." + "................" + "............." + "///" + "/............../" + // 4x
	"///............." + "./.../........./" + ".../............" + "................" + // 8x
	".....xxxxxxxxxxx" + "n.rxxxxxxxxxxxxx" + "xxxxxxxxxxxxxxxx" + "xxxxxxxxxxxxmvxx" // cx

// operands reads the operands of an instruction and returns its weight. If the operands change, it writes the instruction by meter.write.
func (m *meter) operands(op byte) uint32 {
	r := m.r
	switch operandKinds[op] {
	case '.':
	case '/':
		return weightAccess
	case 'i':
		r.leb()
	case 'b':
		if r.blockType(m.types) {
			m.made += uint64(m.mostParams + m.mostResults)
		}
	case 't':
		for range r.count() + 1 {
			r.leb()
		}
		return weightAccess
	case 'f':
		return m.call(r.u32())
	case 'y':
		r.below(m.types, "a type")
		r.leb()
		m.calls, m.made = true, m.made+uint64(m.mostResults)
		return weightCall
	case 's':
		if r.byte() != 1 {
			r.fail("a select instruction has more than one type")
		}
		r.valueType()
	case 'g':
		r.below(m.globals, "a global")
	case 'T':
		r.leb()
		if op == opSetTable {
			m.shape.notRestorable = true
		}
		return weightAccess
	case 'a':
		r.leb()
		r.leb()
		return weightAccess
	default:
		return m.rareOperands(op)
	}
	return weightPlain
}

// rareOperands is the part of operands for rare instructions.
func (m *meter) rareOperands(op byte) uint32 {
	r := m.r
	switch operandKinds[op] {
	case 'z':
		r.zero()
		if op == opGrowMemory {
			return weightBulk
		}
	case 'c':
		r.bytes(4)
	case 'd':
		r.bytes(8)
	case 'n':
		r.refType()
	case 'r':
		m.write(op, m.refer(r, r.u32()))
	case 'm':
		return m.misc(r.byte())
	case 'v':
		r.simd()
		return weightAccess
	default:
		r.fail(fmt.Sprintf("its code has the instruction %#02x%s, which is not supported", op, proposal(op)))
	}
	return weightPlain
}

// proposal returns the name of the WebAssembly proposal that an unsupported instruction belongs to; "" if it is not known.
func proposal(op byte) string {
	switch {
	case op <= 0x0a, op == 0x18, op == 0x19, op == 0x1f:
		return " of exceptions"
	case op == 0x12, op == 0x13:
		return " of tail calls"
	case op == 0x14, op == 0x15, op >= 0xd3 && op <= 0xd6:
		return " of typed function references"
	case op == 0xfb:
		return " of garbage collection"
	case op == 0xfe:
		return " of threads"
	}
	return ""
}

// write writes an instruction whose operand is a function, in place of the one that was read. function is the index in the rewritten module.
func (m *meter) write(op byte, function uint32) {
	m.out = uleb(append(m.out, op), function)
	m.from = m.r.i
}

// call writes a call of a function and returns its weight.
func (m *meter) call(function uint32) uint32 {
	m.write(opCall, m.moved(m.r, function))
	m.calls, m.made = true, m.made+uint64(m.mostResults)
	if function < m.importedFuncs {
		return weightAccess // host functions check the context themselves
	}
	return weightCall
}

// misc reads the rest of an instruction with the prefix 0xfc and returns its weight.
func (m *meter) misc(op byte) uint32 {
	r := m.r
	switch op {
	case 0, 1, 2, 3, 4, 5, 6, 7: // saturating conversions
		return weightPlain
	case 8: // memory.init
		r.leb()
		r.zero()
	case 10: // memory.copy
		r.zero()
		r.zero()
		return m.inChunks(funcCopy)
	case 11: // memory.fill
		r.zero()
		return m.inChunks(funcFill)
	case 9, 13: // data.drop, elem.drop
		m.shape.notRestorable = true
		r.leb()
		return weightPlain
	case 16: // table.size
		r.leb()
		return weightPlain
	case 12, 14: // table.init, table.copy
		m.shape.notRestorable = true
		r.leb()
		r.leb()
	case 15, 17: // table.grow, table.fill
		m.shape.notRestorable = true
		r.leb()
	default:
		r.fail(fmt.Sprintf("its code has the instruction 0xfc %d, which is not supported", op))
	}
	return weightBulk
}

// inChunks writes a call of an added function in place of the instruction that was read, and returns its weight.
func (m *meter) inChunks(function uint32) uint32 {
	if m.metered {
		m.write(opCall, m.helper(function))
	}
	return weightAccess
}

// simd reads the rest of an instruction with the prefix 0xfd. The engine reads only one byte of its number, and executes a second byte as
// an instruction, so only the second byte 1 (nop) is allowed.
func (r *reader) simd() {
	op := r.byte()
	switch {
	case op <= 11, op == 92, op == 93: // loads and stores
		r.leb()
		r.leb()
	case op == 12, op == 13: // v128.const, shuffle
		r.bytes(16)
	case op >= 21 && op <= 34: // a lane
		r.byte()
	case op >= 84 && op <= 91: // loads and stores of a lane
		r.leb()
		r.leb()
		r.byte()
	case op >= 128 && r.byte() != 1:
		r.fail("its code has a vector instruction that is not supported")
	}
}

// zero reads the index of a memory, which must be 0.
func (r *reader) zero() {
	if r.byte() != 0 {
		r.fail("its code uses a second memory")
	}
}

// below reads an index and checks that it is less than n; what names the kind of index in the error.
func (r *reader) below(n uint32, what string) {
	if i := r.u32(); i >= n && r.err == nil {
		r.fail(what + " does not exist")
	}
}

// valueType reads a value type, which has one byte.
func (r *reader) valueType() byte {
	t := r.byte()
	if r.err == nil && !isValueType(t) {
		r.fail("it has a type that is not supported")
	}
	return t
}

func isValueType(t byte) bool { return t >= 0x7b && t <= 0x7f || isRefType(t) }

func isRefType(t byte) bool { return t == 0x70 || t == 0x6f }

// refType reads the type of a reference, which has one byte.
func (r *reader) refType() byte {
	t := r.byte()
	if r.err == nil && !isRefType(t) {
		r.fail("it has a type of references that is not supported")
	}
	return t
}

// blockType reads the type of a block: none, a value type, or a type index, which is signed. It reports whether it is an index.
func (r *reader) blockType(types uint32) bool {
	from := r.i
	t := r.byte()
	switch {
	case t == 0x40, isValueType(t), r.err != nil:
		return false
	case t >= 0x40 && t < 0x80:
		r.fail("it has a type of a block that is not supported")
	default:
		r.i = from
		r.below(types, "a type")
		if r.b[r.i-1]&0x40 != 0 {
			r.fail("it has a type of a block that is not supported")
		}
	}
	return true
}

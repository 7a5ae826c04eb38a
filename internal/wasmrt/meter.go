package wasmrt

import (
	"context"
	"encoding/binary"

	"github.com/tetratelabs/wazero/api"
)

// The engine runs machine code that Go cannot preempt: until it calls the host, the garbage collector cannot stop the world and no
// deadline is checked. Therefore every function is metered when its module is compiled. Its code is divided into pieces without a loop or
// a call inside; at the start of each piece the weight of the piece is subtracted from an added global, the fuel. If the fuel is below
// zero, the code calls the function `tick` of the host, which ends the guest if its context has ended, and the fuel is set to fullFuel.
// So the work between two ticks is limited.
//
// A weight of 1 is about a nanosecond on a slow machine. Expensive instructions are overestimated: the weights determine only the
// distance of the ticks.
const (
	fullFuel = 50_000 // fuel between two ticks
	// The weight of a piece is at most maxPiece plus that of one instruction.
	maxPiece = 4_096
	// A piece of at most freePiece that is not in a loop is not charged. Returning from the deepest recursion runs about half a million
	// such pieces in a row.
	freePiece = 8
	// Entering a function that calls others is charged by the number of values that its frame may contain, so that the stack grows by at
	// most some megabytes between two ticks.
	valuesShift = 2 // a weight of 1 for 4 values

	weightPlain  = 1
	weightAccess = 10     // access to memory or to a table; a division; a vector instruction
	weightCall   = 16     // above freePiece, so that a function with calls is always charged
	weightBulk   = 20_000 // an operation on a segment or table, whose length is limited, and growing
	chunkBytes   = 1 << 20
	// Filling and copying memory is charged by length: a weight of 1 for 16 bytes.
	chunkShift = 4
)

// meterModule is the module from which metered modules import tick. No guest module can import from it itself: see Runtime.Compile.
const meterModule = "\x00lathe"

// addMeter defines tick.
func (r *Runtime) addMeter(ctx context.Context) error {
	_, err := r.engine.NewHostModuleBuilder(meterModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, _ api.Module, _ []uint64) {
			e := instanceOf(ctx).env
			e.check(ctx)
			if err := e.calls.overflow(); err != nil {
				e.halt(err)
			}
		}), nil, nil).Export("tick").Instantiate(ctx)
	return err
}

// The entries that are added to a metered module, each after the module's own: types, an import, functions, a global.
const (
	addedTypes    = "\x60\x00\x00" + "\x60\x01\x7f\x00" + "\x60\x03\x7f\x7f\x7f\x00" // of tick and refuel; of charge; of fill and copy
	numAddedTypes = 3
	addedFuel     = "\x7f\x01\x41\x00\x0b"

	funcRefuel = 0 // sets the fuel to fullFuel and calls tick
	funcCharge = 1 // subtracts its argument from the fuel
	funcStart  = 2 // calls the start function
	funcFill   = 3 // replaces memory.fill, in chunks
	funcCopy   = 4 // replaces memory.copy, in chunks
)

// uleb appends v in LEB128.
func uleb[T uint32 | int](b []byte, v T) []byte { return binary.AppendUvarint(b, uint64(v)) }

// sleb appends v, which is not negative, in signed LEB128.
func sleb(b []byte, v uint32) []byte {
	for ; v >= 0x40; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

// helpers returns the number of added functions.
func (w *rewriter) helpers() uint32 {
	switch {
	case !w.metered:
		return 0
	case w.hasMemory:
		return 5
	}
	return 3
}

// helper returns the index of added function n. The added functions follow all others, whose indexes are one higher than in the original
// module because tick is an import.
func (w *rewriter) helper(n uint32) uint32 { return w.importedFuncs + 1 + w.ownFuncs + n }

// charge appends a call that subtracts weight from the fuel.
func (w *rewriter) charge(b []byte, weight uint32) []byte {
	return uleb(append(sleb(append(b, opConst), weight), opCall), w.helper(funcCharge))
}

// chargeInline appends code that does what charge does without a call, which is faster and longer.
func (w *rewriter) chargeInline(b []byte, weight uint32) []byte {
	return w.spend(sleb(append(uleb(append(b, opGetGlobal), w.globals), opConst), weight))
}

// spend appends code that subtracts from the fuel, which is on the stack, the value above it, and refuels if the fuel is below zero.
func (w *rewriter) spend(b []byte) []byte {
	const below = "\x48" // signed
	b = uleb(append(b, sub[0], opSetGlobal), w.globals)
	b = uleb(append(b, opGetGlobal), w.globals)
	b = append(append(b, opConst, 0), below+ifThen...)
	return append(uleb(append(b, opCall), w.helper(funcRefuel)), opEnd)
}

// helperTypes appends the entries of the added functions in the function section.
func (w *rewriter) helperTypes(b []byte) []byte {
	for _, t := range []uint32{0, 1, 0, 2, 2}[:w.helpers()] {
		b = uleb(b, w.types+t)
	}
	return b
}

// helperCode appends the entries of the added functions in the code section, in the order of their numbers.
func (w *rewriter) helperCode(b []byte) []byte {
	refuel := uleb(append(sleb([]byte{opConst}, fullFuel), opSetGlobal), w.globals)
	refuel = uleb(append(refuel, opCall), w.importedFuncs) // tick
	charge := w.spend(append(uleb([]byte{opGetGlobal}, w.globals), get0...))
	var start []byte
	if w.starts {
		start = uleb([]byte{opCall}, w.start)
	}
	for _, body := range [][]byte{refuel, charge, start, w.bulk(memoryFill), w.bulk(memoryCopy)}[:w.helpers()] {
		b = uleb(b, len(body)+2)
		b = append(append(append(b, 0), body...), opEnd) // 0 locals
	}
	return b
}

// Instructions of the added functions; numbers are i32, and comparisons unsigned.
const (
	block, loop, ifThen = "\x02\x40", "\x03\x40", "\x04\x40" // without results
	orElse, end         = "\x05", "\x0b"
	branchIf            = "\x0d\x00" // leaves the innermost block, or repeats the innermost loop
	above, atMost       = "\x4b", "\x4d"
	add, sub, shift     = "\x6a", "\x6b", "\x76" // shift is to the right
	memoryFill          = "\xfc\x0b\x00"
	memoryCopy          = "\xfc\x0a\x00\x00"
	// The parameters: the destination, the value or the source, and the length.
	get0, get1, get2 = "\x20\x00", "\x20\x01", "\x20\x02"
	set0, set1, set2 = "\x21\x00", "\x21\x01", "\x21\x02"
	// outside adds the length to the address on the stack, in 64 bits, and compares the sum with the size of the memory.
	outside = "\xad" + get2 + "\xad\x7c" + "\x3f\x00\xad\x42\x10\x86" + "\x56"
)

// bulk returns the code of instruction, memoryFill or memoryCopy, in chunks, for any length. An operation out of bounds traps before a byte is
// written, and copying uses the direction in which no byte is overwritten before it is read. For memoryFill it is
//
//	if length > chunk && destination+length is in memory {
//		do { charge; fill(destination, value, chunk); destination += chunk; length -= chunk } while length > chunk
//	}
//	spend(length >> chunkShift); fill(destination, value, length)
func (w *rewriter) bulk(instruction string) []byte {
	chunk := string(sleb([]byte{opConst}, chunkBytes))
	charge := string(w.charge(nil, chunkBytes>>chunkShift))
	shorten := get2 + chunk + sub + set2
	again := get2 + chunk + above + branchIf
	leave := get2 + chunk + atMost + branchIf + get0 + outside + branchIf
	advance := get0 + chunk + add + set0
	if instruction == memoryCopy {
		leave += get1 + outside + branchIf
		advance += get1 + chunk + add + set1
	}
	chunks := loop + charge + get0 + get1 + chunk + instruction + advance + shorten + again + end
	if instruction == memoryCopy { // from the end to the beginning if the destination is above the source
		back := loop + shorten + charge + get0 + get2 + add + get1 + get2 + add + chunk + memoryCopy + again + end
		chunks = get0 + get1 + above + ifThen + back + orElse + chunks + end
	}
	fuel := string(uleb([]byte{opGetGlobal}, w.globals))
	units := get2 + string(sleb([]byte{opConst}, chunkShift)) + shift
	code := w.spend([]byte(block + leave + chunks + end + fuel + units))
	return append(code, get0+get1+get2+instruction...)
}

// A meter rewrites the code of one function. For each instruction, meter.instruction sets from to its offset, reads its operands, and copies
// the bytes behind from to out. meter.write puts other bytes into out, and sets from behind the instruction.
type meter struct {
	*rewriter
	r      *reader
	out    []byte // the rewritten code, without charges
	from   int    // offset in r of the first byte that is not in out
	pieces []piece
	frames []frame // the open blocks, the innermost last
	cur    int     // index in pieces of the current piece
	values
}

// values estimates how many values the engine may keep in the frame of a function across a call. The engine assigns each value its own
// place.
type values struct {
	calls  bool
	made   uint64 // number of values that instructions produce
	blocks uint64
	// A local has a further value at the end of each block in which it is written, or at its start if the block is a loop.
	merged uint64
}

// count adds the values of an instruction inside that number of blocks.
func (v *values) count(op byte, blocks int) {
	switch {
	case op == opSetLocal, op == opTeeLocal:
		v.merged += uint64(blocks)
	case op >= opBlock && op <= opIf:
		v.blocks++
		v.made++
	case op <= opDrop, op == opGetLocal, op == opSetGlobal, op == opSetTable, op >= opFirstStore && op <= opLastStore: // no new value
	default:
		v.made++
	}
}

// weight returns the weight of entering a function with that number of locals.
func (v *values) weight(locals uint64) uint32 {
	if !v.calls {
		return 0
	}
	return uint32(min((v.made+min(v.merged, v.blocks*locals))>>valuesShift, fullFuel))
}

// A piece is code in which each instruction runs at most once for each time that the start of the piece runs.
type piece struct {
	at     int // offset in meter.out
	weight uint32
	loop   bool // it is the beginning of the body of a loop
}

// A frame is an open block. If a frame is split, so are all frames around it.
type frame struct {
	piece int // index of the piece in which the block began
	isIf  bool
	split bool // another piece began inside the block, so the code after the block is a piece, too
}

// meterCode appends the metered instructions of a function, which end with r. locals is the number of its locals without parameters.
func (w *rewriter) meterCode(dst []byte, r *reader, locals uint64) []byte {
	m := &meter{rewriter: w, r: r, out: make([]byte, 0, len(r.b)-r.i), frames: make([]frame, 1, 8)}
	m.start()
	for len(m.frames) > 0 && r.err == nil {
		m.instruction()
	}
	if r.i != len(r.b) {
		r.fail("a function has code behind its end")
	}
	m.pieces[0].weight += m.values.weight(locals + uint64(w.mostParams))
	copied := 0 // bytes of m.out
	for _, p := range m.pieces {
		dst = append(dst, m.out[copied:p.at]...)
		copied = p.at
		switch {
		case !w.metered:
		case p.loop:
			dst = w.chargeInline(dst, p.weight)
		case p.weight > freePiece:
			dst = w.charge(dst, p.weight)
		}
	}
	return append(dst, m.out[copied:]...)
}

// start begins a piece.
func (m *meter) start() {
	m.cur = len(m.pieces)
	m.pieces = append(m.pieces, piece{at: len(m.out)})
}

// split begins a piece inside the open blocks.
func (m *meter) split() {
	for i := len(m.frames) - 1; i >= 0 && !m.frames[i].split; i-- {
		m.frames[i].split = true
	}
	m.start()
}

// instruction reads one instruction and writes it.
func (m *meter) instruction() {
	r := m.r
	m.from = r.i
	op := r.byte()
	weight := m.operands(op)
	if r.err != nil {
		return
	}
	m.out = append(m.out, r.b[m.from:r.i]...)
	m.pieces[m.cur].weight += weight
	m.values.count(op, len(m.frames))
	switch {
	case op >= opBlock && op <= opIf:
		m.frames = append(m.frames, frame{piece: m.cur, isIf: op == opIf})
		if op == opLoop {
			m.start()
			m.pieces[m.cur].loop = true
		}
	case op == opElse || op == opEnd:
		m.leave(op)
	case weight == weightCall, m.pieces[m.cur].weight > maxPiece:
		m.split()
	}
}

// leave ends a block (opEnd), or the first half of an if (opElse).
func (m *meter) leave(op byte) {
	last := len(m.frames) - 1
	f := m.frames[last]
	if op == opElse {
		if !f.isIf {
			m.r.fail("an else is without its if")
		}
		m.frames[last].isIf = false
	} else {
		m.frames = m.frames[:last]
		if last == 0 {
			return
		}
	}
	if f.split {
		m.start()
	} else {
		m.cur = f.piece
	}
}

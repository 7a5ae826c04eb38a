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

// charge appends code that subtracts weight from the fuel: inline if inPlace is set, else a call, which is shorter.
func (w *rewriter) charge(b []byte, weight uint32, inPlace bool) []byte {
	if !inPlace {
		return uleb(append(sleb(append(b, 0x41), weight), 0x10), w.helper(funcCharge))
	}
	b = sleb(append(uleb(append(b, 0x23), w.globals), 0x41), weight)
	return w.spend(b)
}

// spend appends code that subtracts the value on the stack from the fuel, and refuels if the fuel is below zero.
func (w *rewriter) spend(b []byte) []byte {
	b = uleb(append(b, 0x6b, 0x24), w.globals)         // sub, global.set
	b = uleb(append(b, 0x23), w.globals)               // global.get
	b = append(b, 0x41, 0, 0x48, 0x04, 0x40, 0x10)     // < 0, if, call
	return append(uleb(b, w.helper(funcRefuel)), 0x0b) // end
}

// helperTypes appends the entries of the added functions in the function section.
func (w *rewriter) helperTypes(b []byte) []byte {
	for _, t := range []uint32{0, 1, 0, 2, 2}[:w.helpers()] {
		b = uleb(b, w.types+t)
	}
	return b
}

// helperCode appends the entries of the added functions in the code section.
func (w *rewriter) helperCode(b []byte) []byte {
	refuel := uleb(append(sleb([]byte{0x41}, fullFuel), 0x24), w.globals)
	refuel = uleb(append(refuel, 0x10), w.importedFuncs) // tick
	charge := w.spend(append(uleb([]byte{0x23}, w.globals), 0x20, 0))
	var start []byte
	if w.starts {
		start = uleb([]byte{0x10}, w.start)
	}
	for _, body := range [][]byte{refuel, charge, start, w.bulk(false), w.bulk(true)}[:w.helpers()] {
		b = uleb(b, len(body)+2)
		b = append(append(append(b, 0), body...), 0x0b)
	}
	return b
}

const (
	get0, get1, get2 = "\x20\x00", "\x20\x01", "\x20\x02"
	// end64 adds the length to the address on the stack, in 64 bits, and compares the sum with the size of the memory.
	end64 = "\xad" + get2 + "\xad\x7c" + "\x3f\x00\xad\x42\x10\x86" + "\x56"
)

// bulk returns the code of memory.fill or memory.copy in chunks, for any length. An operation out of bounds traps before a byte is
// written, and copying uses the direction in which no byte is overwritten before it is read.
func (w *rewriter) bulk(copies bool) []byte {
	op := get0 + get1 + get2 + "\xfc\x0b\x00"
	if copies {
		op = get0 + get1 + get2 + "\xfc\x0a\x00\x00"
	}
	chunk := string(sleb([]byte{0x41}, chunkBytes))
	one := func(b []byte, ops string) []byte { // one chunk at the addresses and of the length that ops push
		return append(w.charge(b, chunkBytes>>chunkShift, false), ops...)
	}
	shorten := get2 + chunk + "\x6b\x21\x02"
	again := get2 + chunk + "\x4b\x0d\x00" // br_if 0 if more than one chunk is left
	advance := func(local string) string { return "\x20" + local + chunk + "\x6a\x21" + local }

	b := append([]byte("\x02\x40"+get2+chunk+"\x4d\x0d\x00"), get0+end64+"\x0d\x00"...) // block: leave it if short, or out of bounds
	if copies {
		b = append(b, get1+end64+"\x0d\x00"+get0+get1+"\x4b\x04\x40"...) // if the destination is above the source
		b = append(b, "\x03\x40"+shorten...)                             // from the end to the beginning
		b = one(b, get0+get2+"\x6a"+get1+get2+"\x6a"+chunk+"\xfc\x0a\x00\x00"+again+"\x0b")
		b = append(b, "\x05\x03\x40"...)
		b = one(b, get0+get1+chunk+"\xfc\x0a\x00\x00"+advance("\x00")+advance("\x01")+shorten+again+"\x0b\x0b")
	} else {
		b = append(b, "\x03\x40"...)
		b = one(b, get0+get1+chunk+"\xfc\x0b\x00"+advance("\x00")+shorten+again+"\x0b")
	}
	b = append(uleb(append(b, 0x0b, 0x23), w.globals), get2+"\x41"+string(rune(chunkShift))+"\x76"...) // end; the rest
	return append(w.spend(b), op...)
}

// A meter rewrites the code of one function.
type meter struct {
	*rewriter
	r      *reader
	out    []byte // the rewritten code
	from   int    // offset in r of the first byte that is not in out
	pieces []piece
	frames []frame
	cur    int // index in pieces of the current piece
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
	case op == 0x21, op == 0x22: // a local is written
		v.merged += uint64(blocks)
	case op >= opBlock && op <= opIf:
		v.blocks++
		v.made++
	case op >= 0x1b && op != 0x20 && op != 0x24 && op != 0x26 && (op < 0x36 || op > 0x3e): // all instructions that push a new value
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
	loop   bool
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
	m.start(false)
	for len(m.frames) > 0 && r.err == nil {
		m.instruction()
	}
	if r.i != len(r.b) {
		r.fail("a function has code behind its end")
	}
	m.pieces[0].weight += m.values.weight(locals + uint64(w.mostParams))
	done := 0
	for _, p := range m.pieces {
		dst = append(dst, m.out[done:p.at]...)
		if done = p.at; w.metered && (p.loop || p.weight > freePiece) {
			dst = w.charge(dst, p.weight, p.loop)
		}
	}
	return append(dst, m.out[done:]...)
}

// start begins a piece; loop says that it is the body of a loop.
func (m *meter) start(loop bool) {
	m.cur = len(m.pieces)
	m.pieces = append(m.pieces, piece{at: len(m.out), loop: loop})
}

// split begins a piece inside the open blocks.
func (m *meter) split() {
	for i := len(m.frames) - 1; i >= 0 && !m.frames[i].split; i-- {
		m.frames[i].split = true
	}
	m.start(false)
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
			m.start(true)
		}
	case op == opElse || op == opEnd:
		m.leave(op == opElse)
	case weight == weightCall, m.pieces[m.cur].weight > maxPiece:
		m.split()
	}
}

// leave ends a block, or the first half of an if if half is set.
func (m *meter) leave(half bool) {
	last := len(m.frames) - 1
	f := m.frames[last]
	if half {
		if !f.isIf {
			m.r.fail("an else is without its if")
		}
		m.frames[last].isIf = false
	} else if m.frames = m.frames[:last]; last == 0 {
		return
	}
	if f.split {
		m.start(false)
	} else {
		m.cur = f.piece
	}
}

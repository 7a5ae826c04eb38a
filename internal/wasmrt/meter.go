package wasmrt

import (
	"context"
	"encoding/binary"

	"github.com/tetratelabs/wazero/api"
)

// The engine runs machine code that Go cannot interrupt: until it calls the host, the garbage collector cannot stop the world
// and no deadline is noticed. Every function is therefore metered when its module is compiled. Its code is cut into pieces
// without a loop or a call within them; at the start of each piece an added global, the fuel, is lowered by the weight of the
// piece. When it is below zero, the function `tick` of the host is called, which ends the guest if its context is done, and
// the fuel is full again. Between two ticks there is thus a bounded amount of work.
//
// A weight of 1 is about a nanosecond on a slow day. What costs much is overestimated: nothing but the distance of the ticks
// depends on it.
const (
	fullFuel = 50_000 // between two ticks
	// A piece is at most maxPiece plus the weight of one instruction.
	maxPiece = 4_096
	// A piece of at most freePiece that is not in a loop is not counted. Returning from the deepest recursion runs about half a
	// million such pieces in a row.
	freePiece = 8
	// Entering a function that calls is counted by the values that its frame may have to hold: the stack grows by some megabytes
	// between two ticks.
	valuesShift = 2 // 1 for 4 of them

	weightPlain  = 1
	weightAccess = 10     // of memory, of a table; a division; a vector instruction
	weightCall   = 16     // above freePiece: a function that calls is always counted
	weightBulk   = 20_000 // of what the length of a segment or table bounds, and of growing
	chunkBytes   = 1 << 20
	// Filling and copying is counted by the byte: 1 for 16 of them.
	chunkShift = 4
)

// meterModule is the module that the metered ones import tick from. No guest can import from it itself: see Runtime.Compile.
const meterModule = "\x00lathe"

// addMeter makes tick available.
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

// What is added to a metered module, each behind the module's own: types, an import, functions, a global.
const (
	addedTypes    = "\x60\x00\x00" + "\x60\x01\x7f\x00" + "\x60\x03\x7f\x7f\x7f\x00" // of tick and refuel; of charge; of fill and copy
	numAddedTypes = 3
	addedFuel     = "\x7f\x01\x41\x00\x0b"

	funcRefuel = 0 // fills the fuel, and ticks
	funcCharge = 1 // lowers the fuel by its argument
	funcStart  = 2 // calls the start function
	funcFill   = 3 // memory.fill, a chunk at a time
	funcCopy   = 4 // memory.copy
)

// uleb appends v.
func uleb[T uint32 | int](b []byte, v T) []byte { return binary.AppendUvarint(b, uint64(v)) }

// sleb appends v, which is not negative, as a signed number.
func sleb(b []byte, v uint32) []byte {
	for ; v >= 0x40; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

// helpers returns how many functions are added.
func (w *rewriter) helpers() uint32 {
	switch {
	case !w.metered:
		return 0
	case w.hasMemory:
		return 5
	}
	return 3
}

// helper returns the index of an added function. It is behind that of all others, which are one higher than the module says,
// for tick.
func (w *rewriter) helper(n uint32) uint32 { return w.importedFuncs + 1 + w.ownFuncs + n }

// charge appends code that lowers the fuel: a call, or where speed is more important than size, in place.
func (w *rewriter) charge(b []byte, weight uint32, inPlace bool) []byte {
	if !inPlace {
		return uleb(append(sleb(append(b, 0x41), weight), 0x10), w.helper(funcCharge))
	}
	b = sleb(append(uleb(append(b, 0x23), w.globals), 0x41), weight)
	return w.spend(b)
}

// spend appends code that lowers the fuel by the value on the stack.
func (w *rewriter) spend(b []byte) []byte {
	b = uleb(append(b, 0x6b, 0x24), w.globals)         // sub, global.set
	b = uleb(append(b, 0x23), w.globals)               // global.get
	b = append(b, 0x41, 0, 0x48, 0x04, 0x40, 0x10)     // < 0, if, call
	return append(uleb(b, w.helper(funcRefuel)), 0x0b) // end
}

// helperTypes are the entries of the added functions in the function section.
func (w *rewriter) helperTypes(b []byte) []byte {
	for _, t := range []uint32{0, 1, 0, 2, 2}[:w.helpers()] {
		b = uleb(b, w.types+t)
	}
	return b
}

// helperCode are their entries in the code section.
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
	// end64 adds the length to the address before it, in 64 bits, and compares the sum with the size of the memory.
	end64 = "\xad" + get2 + "\xad\x7c" + "\x3f\x00\xad\x42\x10\x86" + "\x56"
)

// bulk is memory.fill or memory.copy of any length: what lies outside of memory traps before a byte is written, and copying
// takes the direction in which no byte is overwritten before it is read.
func (w *rewriter) bulk(copies bool) []byte {
	op := get0 + get1 + get2 + "\xfc\x0b\x00"
	if copies {
		op = get0 + get1 + get2 + "\xfc\x0a\x00\x00"
	}
	chunk := string(sleb([]byte{0x41}, chunkBytes))
	one := func(b []byte, ops string) []byte { // a chunk, from the addresses and the length that ops leave
		return append(w.charge(b, chunkBytes>>chunkShift, false), ops...)
	}
	shorten := get2 + chunk + "\x6b\x21\x02"
	again := get2 + chunk + "\x4b\x0d\x00" // br_if 0 if more than a chunk is left
	advance := func(local string) string { return "\x20" + local + chunk + "\x6a\x21" + local }

	b := append([]byte("\x02\x40"+get2+chunk+"\x4d\x0d\x00"), get0+end64+"\x0d\x00"...) // block: leave it if short, or out of bounds
	if copies {
		b = append(b, get1+end64+"\x0d\x00"+get0+get1+"\x4b\x04\x40"...) // if the destination is above the source
		b = append(b, "\x03\x40"+shorten...)                             // from the end on
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
	out    []byte // what was read, with its indices moved
	from   int    // of r: what is not in out yet
	pieces []piece
	frames []frame
	cur    int // of pieces
	values
}

// values counts what the engine may keep in the frame of a function across a call. It gives each value a place of its own.
type values struct {
	calls  bool
	made   uint64 // by instructions
	blocks uint64
	// A local has a new value at the end of each block that it is written in, or at the start if that is a loop.
	merged uint64
}

// count adds the values of an instruction in so many blocks.
func (v *values) count(op byte, blocks int) {
	switch {
	case op == 0x21, op == 0x22: // a local is written
		v.merged += uint64(blocks)
	case op >= opBlock && op <= opIf:
		v.blocks++
		v.made++
	case op >= 0x1b && op != 0x20 && op != 0x24 && op != 0x26 && (op < 0x36 || op > 0x3e): // all that leaves something new on the stack
		v.made++
	}
}

// weight is what entering a function costs.
func (v *values) weight(locals uint64) uint32 {
	if !v.calls {
		return 0
	}
	return uint32(min((v.made+min(v.merged, v.blocks*locals))>>valuesShift, fullFuel))
}

// A piece is code whose instructions are each executed at most once for each time that its start is passed.
type piece struct {
	at     int // in meter.out
	weight uint32
	loop   bool
}

// A frame is a block that is open. All around a split frame are split.
type frame struct {
	piece int // in which it began
	isIf  bool
	split bool // another piece began within it, so that what follows it is a piece, too
}

// meterCode appends the metered instructions of a function, which end where r does. locals does not count its parameters.
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

// start begins a piece.
func (m *meter) start(loop bool) {
	m.cur = len(m.pieces)
	m.pieces = append(m.pieces, piece{at: len(m.out), loop: loop})
}

// split begins a piece that is not a loop's.
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

// leave ends a block, or the first half of an if.
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

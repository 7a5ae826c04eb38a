package wasmtest

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// Random returns a valid module that ends. It exports functions `f0`, `f1`, … without parameters and with any number of results. They use
// every kind of control flow, memory, globals, tables, and call functions with higher indexes. It may trap. It imports sched_yield and
// fd_fdstat_get of WASI.
func Random(seed uint64) *Module {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), m: New()}
	m := g.m
	m.Import(wasi, "sched_yield", nil, T{I32})
	m.Import(wasi, "fd_fdstat_get", T{I32, I32}, T{I32})
	m.Memory(1, 3)
	m.Data(0, "some bytes that are not zero")
	m.Passive("a segment")
	for i := range 2 {
		m.Global(true, int32(g.Uint32()))
		m.Export([]string{"g0", "g1"}[i], 3, i)
	}
	n := 2 + g.IntN(5)
	for range n {
		g.funcs = append(g.funcs, signature{g.types(3), g.types(3)})
	}
	m.Table("table", n, n+2)
	var elems []int
	for i := range n {
		elems = append(elems, m.nImports+i)
	}
	m.Elem(0, elems...)
	for i := range g.funcs {
		g.function(i)
	}
	for i, f := range g.funcs { // the exported functions
		code := ""
		for _, t := range f.params {
			code += g.constant(t)
		}
		m.Func("f"+string(rune('0'+i)), nil, f.results, 0, code, Call(m.nImports+i))
	}
	if g.IntN(3) == 0 {
		m.Start(m.Func("", nil, nil, 0, GetGlobal(0), Const(1), Add, SetGlobal(0)))
	}
	return m
}

type signature struct{ params, results T }

// A generator writes the functions of a module one after the other.
type generator struct {
	*rand.Rand
	m     *Module     // the module being generated
	funcs []signature // the signatures of its functions

	// Of the function being generated; generator.function sets them.
	at     int // its index
	locals T   // the types of its locals
	calls  int // number of calls that it may still contain; 0 within a loop
	labels []T // the result types of each enclosing block, the innermost last; nil for a loop, nothing for a block without results
	loops  int // index of the first local that counts loop rounds
	used   int // number of those locals in use: each loop has its own
}

const counters = 6 // maximal number of loops in a function

// Instructions. A block, an if and a br_table have operands. Those of the arithmetic from add to shl follow each other.
const (
	nop       = "\x01"
	block     = "\x02"
	ifThen    = "\x04"
	orElse    = "\x05"
	end       = "\x0b"
	brTable   = "\x0e"
	choose    = "\x1b"             // select
	extendS   = "\xac"             // i64.extend_i32_s
	nullFunc  = "\xd0\x70"         // ref.null
	initData  = "\xfc\x08\x00\x00" // memory.init of segment 0
	tableCopy = "\xfc\x0e\x00\x01" // to table 0 from table 1
	tableGrow = "\xfc\x0f\x00"
	tableFill = "\xfc\x11\x00"

	addI32, addI64 = 0x6a, 0x7c
	arithmetic     = 11 // number of instructions from add to shl

	noType = "\x40" // type of a block without results
)

func (g *generator) valueType() byte { return []byte{I32, I64}[g.IntN(2)] }

func (g *generator) types(most int) T {
	t := make(T, g.IntN(most))
	for i := range t {
		t[i] = g.valueType()
	}
	return t
}

func (g *generator) function(at int) {
	f := g.funcs[at]
	extra := append(g.types(4), I32, I64)
	g.at, g.calls, g.used = at, 3, 0
	g.locals = slices.Concat(f.params, extra, slices.Repeat(T{I32}, counters))
	g.loops = len(g.locals) - counters
	g.labels = []T{f.results}
	decl := u(len(extra) + counters)
	for _, t := range g.locals[len(f.params):] {
		decl += "\x01" + string([]byte{t})
	}
	g.m.RawFunc("", f.params, f.results, decl+g.sequence(f.results, 4)+end)
}

// sequence returns code for some statements, followed by values of these types.
func (g *generator) sequence(results T, depth int) string {
	code := ""
	for range g.IntN(4) {
		code += g.statement(depth)
	}
	for _, t := range results {
		code += g.value(t, depth)
	}
	return code
}

func (g *generator) values(types T, depth int) (code string) {
	for _, t := range types {
		code += g.value(t, depth)
	}
	return code
}

func (g *generator) statement(depth int) string {
	if depth <= 0 {
		return nop
	}
	depth--
	switch g.IntN(13) {
	case 0, 1:
		i := g.IntN(g.loops)
		return g.value(g.locals[i], depth) + Set(i)
	case 2:
		i := g.IntN(2)
		return g.value(I32, depth) + SetGlobal(i)
	case 3:
		return g.address(depth) + g.value(I32, depth) + Store(g.IntN(100))
	case 4:
		return g.block(nil, depth)
	case 5:
		return g.value(I32, depth) + g.ifElse(nil, depth)
	case 6:
		return g.loop(depth)
	case 7:
		return g.call(depth)
	case 8:
		return g.address(depth) + g.value(I32, depth) + Const(int32(g.IntN(300))) + MemoryFill
	case 9:
		return g.address(depth) + g.address(depth) + Const(int32(g.IntN(300))) + MemoryCopy
	case 10:
		return g.address(depth) + Const(int32(g.IntN(4))) + Const(int32(g.IntN(7))) + initData
	case 11:
		return g.leave(depth)
	default:
		return g.value(g.valueType(), depth) + Drop
	}
}

// loop returns a loop of at most four iterations.
func (g *generator) loop(depth int) string {
	if g.used == counters {
		return nop
	}
	c := g.loops + g.used
	g.used++
	calls := g.calls
	g.calls = 0
	body := g.within(nil, func() string { return g.sequence(nil, depth) })
	g.calls = calls
	return Const(int32(1+g.IntN(4))) + Set(c) + Loop(body, Get(c), Const(1), Sub, Tee(c), BrIf(0))
}

// leave returns a branch out of an enclosing block without results. Only the loop's own counter may branch to a loop.
func (g *generator) leave(depth int) string {
	for at := range g.labels {
		label := g.labels[len(g.labels)-1-at]
		if label != nil && len(label) == 0 && g.IntN(2) == 0 {
			return g.value(I32, depth) + BrIf(at)
		}
	}
	return nop
}

var nothing = T{} // the label of a block without results; nil is the label of a loop

// within returns the code that body generates inside a block with that label.
func (g *generator) within(label T, body func() string) string {
	g.labels = append(g.labels, label)
	code := body()
	g.labels = g.labels[:len(g.labels)-1]
	return code
}

func (g *generator) block(results T, depth int) string {
	body := g.within(append(nothing, results...), func() string { return g.blockBody(results, depth) })
	return block + g.blockType(results) + body + end
}

func (g *generator) blockBody(results T, depth int) string {
	body := g.sequence(results, depth)
	if g.IntN(3) == 0 { // a branch out of the block, before its code
		body = g.values(results, depth) + g.value(I32, depth) + BrIf(0) + strings.Repeat(Drop, len(results)) + body
	}
	if g.IntN(8) == 0 {
		body = g.values(results, depth) + g.value(I32, depth) + brTable + "\x02\x00\x00\x00" + body // three targets, all of them the block
	}
	return body
}

func (g *generator) blockType(results T) string {
	switch len(results) {
	case 0:
		return noType
	case 1:
		return string([]byte{results[0]})
	}
	return g.m.typ(nil, results)
}

func (g *generator) ifElse(results T, depth int) string {
	return g.within(append(nothing, results...), func() string {
		return ifThen + g.blockType(results) + g.sequence(results, depth) + orElse + g.sequence(results, depth) + end
	})
}

// call calls a function with a higher index, directly or through the table, and drops its results.
func (g *generator) call(depth int) string {
	if g.calls == 0 || g.at+1 >= len(g.funcs) {
		return Call(0) + Drop
	}
	g.calls--
	to := g.at + 1 + g.IntN(len(g.funcs)-g.at-1)
	f := g.funcs[to]
	code := g.values(f.params, depth)
	if g.IntN(3) == 0 {
		code += Const(int32(to)) + g.m.CallTable(f.params, f.results)
	} else {
		code += Call(g.m.nImports + to)
	}
	return code + strings.Repeat(Drop, len(f.results))
}

// address returns code for an address, mostly one within memory.
func (g *generator) address(depth int) string {
	if g.IntN(20) == 0 {
		return g.value(I32, depth)
	}
	return Const(int32(g.IntN(65_000)))
}

func (g *generator) constant(t byte) string {
	if t == I32 {
		return Const(int32(g.Uint32() >> g.IntN(32)))
	}
	return Const64(int64(g.Uint64() >> g.IntN(64)))
}

func (g *generator) value(t byte, depth int) string {
	if depth--; depth <= 0 {
		return g.constant(t)
	}
	switch g.IntN(9) {
	case 0:
		for range 8 {
			if i := g.IntN(len(g.locals)); g.locals[i] == t {
				return Get(i)
			}
		}
		return g.constant(t)
	case 1:
		return g.block(T{t}, depth)
	case 2:
		return g.value(I32, depth) + g.ifElse(T{t}, depth)
	case 3: // a block with two results
		return g.block(T{t, I32}, depth) + Drop
	case 4:
		return g.value(t, depth) + g.value(t, depth) + g.value(I32, depth) + choose
	}
	if t == I64 {
		if g.IntN(3) == 0 {
			return g.value(I32, depth) + extendS
		}
		return g.value(t, depth) + g.value(t, depth) + string([]byte{addI64 + byte(g.IntN(arithmetic))})
	}
	switch g.IntN(8) {
	case 0:
		return g.address(depth) + Load(g.IntN(100))
	case 1:
		return GetGlobal(g.IntN(2))
	case 2:
		return MemorySize
	case 3:
		return Const(int32(g.IntN(2))) + MemoryGrow
	case 4:
		return g.value(I64, depth) + Wrap
	case 5:
		return g.value(I32, depth) + Const(int32(g.IntN(65_000))) + Call(1) // a system call with an arbitrary descriptor
	}
	return g.value(t, depth) + g.value(t, depth) + string([]byte{addI32 + byte(g.IntN(arithmetic))})
}

package wasmtest

import (
	"slices"
	"strings"
)

const wasi = "wasi_snapshot_preview1"

// A HostileModule does not end by itself within a test. It is a tool: it exports memory, malloc and tool, and its endless code as `run`,
// unless that code runs at instantiation.
type HostileModule struct {
	Name  string
	Bytes []byte
	// Limit is a limit that the module may reach before its deadline; "" if it reaches none.
	Limit string
	// AtStart is set if instantiation does not return.
	AtStart bool
}

// Hostile returns modules that occupy a processor, one for each known method.
func Hostile() []HostileModule {
	return []HostileModule{
		{Name: "calls", Bytes: hostile(endless)},
		{Name: "calls_table", Bytes: hostile(callsByTable)},
		{Name: "calls_values", Bytes: hostile(callsWithValues)},
		{Name: "recursion_tree", Bytes: hostile(recursionTree(0, 60))},
		{Name: "recursion_endless", Limit: "stack", Bytes: hostile(recursion)},
		{Name: "recursion_results", Limit: "stack", Bytes: hostile(recursionWithResults)},
		{Name: "recursion_values", Limit: "stack", Bytes: hostile(recursionWithValues)},
		{Name: "recursion_blocks", Limit: "stack", Bytes: hostile(recursionInBlocks)},
		{Name: "recursion_start", Limit: "stack", AtStart: true, Bytes: hostile(func(m *Module) int { return m.started(recursion(m)) })},
		{Name: "recursion_return", Bytes: hostile(recursionReturning)},
		{Name: "fill", Bytes: hostile(once(strings.Repeat(allMemory+MemoryFill, 4_000)))},
		{Name: "fill_calls", Bytes: hostile(often(allMemory + MemoryFill))},
		{Name: "copy", Bytes: hostile(once(strings.Repeat(copyBothWays, 2_000)))},
		{Name: "init", Bytes: hostile(initMemory)},
		{Name: "tables", Bytes: hostile(fillTables)},
		{Name: "table_grow", Bytes: hostile(growTable)},
		{Name: "grow", Bytes: hostile(growMemory)},
		{Name: "host", Limit: "host_calls", Bytes: hostile(often(strings.Repeat(Call(0)+Drop, 100)))},
		{Name: "host_random", Limit: "host_calls", Bytes: hostile(often(Const(0) + Const(memory) + Call(1) + Drop))},
		{Name: "straight", Bytes: hostile(often(Const64(1<<62+12345) + strings.Repeat(Const64(7)+RemU64, 8_000) + Wrap + Drop))},
		{Name: "chase", Bytes: hostile(often(Const(0) + strings.Repeat(Load(0), 10_000) + Drop))}, // each load reads its address from the one before
		{Name: "branches", Bytes: hostile(often(strings.Repeat(branches, 300)))},
		{Name: "locals", Bytes: hostile(recursionTree(20_000, 50))},
		{Name: "loop", Bytes: hostile(once(Loop(Br(0))))},
		{Name: "loop_nested", Bytes: hostile(func(m *Module) int { return m.Func("", nil, nil, 1, Loop(Loop(Get(0), Eqz, BrIf(0)), Br(0))) })},
		{Name: "start", AtStart: true, Bytes: hostile(func(m *Module) int { return m.started(endless(m)) })},
		{Name: "initialize", AtStart: true, Bytes: hostile(initialize)},
		{Name: "malloc", Bytes: endlessMalloc()},
	}
}

// The size of the memory, and code with its operands.
const (
	page   = 64 << 10
	memory = 1024 * page
)

var (
	allMemory    = Const(0) + Const(0) + Const(memory)
	copyBothWays = Const(0) + Const(8) + Const(memory-8) + MemoryCopy + Const(8) + Const(0) + Const(memory-8) + MemoryCopy
	// branches are a branch that skips the rest of its block, and a br_table out of three blocks.
	branches = Block(Const(1), BrIf(0), strings.Repeat(Const(0)+Drop, 50)) + Block(Block(Block(Const(9), brTable, "\x02\x00\x01\x02")))
)

// hostile returns a tool with the functions that build adds; build returns the index of the function to run. Function 0 is sched_yield
// and function 1 is random_get of WASI.
func hostile(build func(m *Module) int) []byte {
	m := New()
	m.Import(wasi, "sched_yield", nil, T{I32})
	m.Import(wasi, "random_get", T{I32, I32}, T{I32})
	m.Memory(memory/page, memory/page)
	m.Func("malloc", T{I32}, T{I32}, 0, Const(1024))
	f := build(m)
	m.Export("run", 0, f)
	const emptyObject = 0x7d7b // the bytes of {}
	writeLength := Get(3) + Const(2) + Store(0)
	writeOutput := Get(2) + Const(emptyObject) + Store(0)
	m.Func("tool", T{I32, I32, I32, I32}, T{I32}, 0, Call(f), writeLength, writeOutput, Const(0))
	return m.Bytes()
}

// doubling adds n functions and returns the index of the first. Each calls the next one twice, so that the last one runs code 2^(n-1) times.
func (m *Module) doubling(n int, code string) int {
	first := m.nextFunc()
	for i := range n {
		if i+1 < n {
			m.Func("", nil, nil, 0, strings.Repeat(Call(first+i+1), 2))
		} else {
			m.Func("", nil, nil, 0, code)
		}
	}
	return first
}

// endlessDepth is the number of functions with which doubling does not end within a test, and codeDepth that for functions with code.
const (
	endlessDepth = 50
	codeDepth    = 40
)

// endless adds functions, of which the first makes about 2^50 calls, and returns the index of the first.
func endless(m *Module) int { return m.doubling(endlessDepth, "") }

// often returns a builder of a function that runs code 2^39 times.
func often(code string) func(m *Module) int {
	return func(m *Module) int { return m.doubling(codeDepth, code) }
}

// once returns a builder of a function that runs code once.
func once(code string) func(m *Module) int {
	return func(m *Module) int { return m.Func("", nil, nil, 0, code) }
}

// started makes f the start function and returns it.
func (m *Module) started(f int) int {
	m.Start(f)
	return f
}

func initialize(m *Module) int {
	f := endless(m)
	m.Export("_initialize", 0, f)
	return f
}

// endlessMalloc returns a tool whose malloc does not return.
func endlessMalloc() []byte {
	m := New()
	m.Memory(1, 1)
	f := endless(m)
	m.Func("malloc", T{I32}, T{I32}, 0, Call(f), Const(1024))
	m.Func("tool", T{I32, I32, I32, I32}, T{I32}, 0, Const(0))
	m.Export("run", 0, f)
	return m.Bytes()
}

// callsByTable does what endless does, with calls through a table.
func callsByTable(m *Module) int {
	m.Table("", endlessDepth, endlessDepth)
	var funcs []int
	for i := range endlessDepth {
		next := ""
		if i+1 < endlessDepth {
			next = strings.Repeat(Const(int32(i+1))+m.CallTable(nil, nil), 2)
		}
		funcs = append(funcs, m.Func("", nil, nil, 0, next))
	}
	m.Elem(0, funcs...)
	return funcs[0]
}

// callsWithValues does what endless does, with functions of many parameters and results.
func callsWithValues(m *Module) int {
	const n = 200
	values := slices.Repeat(T{I32}, n)
	all := ""
	for i := range n {
		all += Get(i)
	}
	f := m.nextFunc()
	for i := range endlessDepth {
		next := ""
		if i+1 < endlessDepth {
			next = strings.Repeat(Call(f+i+1), 2)
		}
		m.Func("", values, values, 0, all, next)
	}
	return m.Func("", nil, nil, 0, strings.Repeat(Const(1), n), Call(f), strings.Repeat(Drop, n))
}

// recursionTree returns a builder of a function with locals that calls itself twice, to a depth.
func recursionTree(locals int, depth int32) func(m *Module) int {
	return func(m *Module) int {
		f := m.nextFunc()
		m.Func("", T{I32}, nil, locals, Get(0), If(strings.Repeat(Get(0)+Const(1)+Sub+Call(f), 2)))
		return m.Func("", nil, nil, 0, Const(depth), Call(f))
	}
}

func recursion(m *Module) int { return m.Func("", nil, nil, 0, Call(m.nextFunc())) }

// recursionWithResults adds a short function with a large frame.
func recursionWithResults(m *Module) int {
	const n = 1_000
	f := m.nextFunc()
	m.Func("", nil, slices.Repeat(T{I64}, n), 0, Call(f))
	return m.Func("", nil, nil, 0, Call(f), strings.Repeat(Drop, n))
}

// recursionWithValues adds a function with a large frame, whose values are used only in the call that does not recurse.
func recursionWithValues(m *Module) int {
	const n = 5_000
	f := m.nextFunc()
	recurse := If(Get(0), Call(f), Return)
	pushValues := strings.Repeat(Get(0)+Const(7)+Mul, n)
	storeValues := strings.Repeat(Set(1)+Const(0)+Get(1)+Store(0), n)
	m.Func("", T{I32}, nil, 1, Get(0), recurse, pushValues, Call(f+1), storeValues)
	m.Func("", nil, nil, 0) // f+1: the values are live across a call of it
	return m.Func("", nil, nil, 0, Const(1), Call(f))
}

// recursionInBlocks adds a function with nested blocks. After each block it uses all locals, which have other values if the code leaves the
// block early.
func recursionInBlocks(m *Module) int {
	const n = 60
	f := m.nextFunc()
	recurse := If(Get(0), Call(f), Return)
	assign, use := "", ""
	for i := range n {
		assign += Get(0) + Const(int32(i)) + Mul + Set(1+i)
		use += Const(0) + Get(1+i) + Store(4*i)
	}
	blocks := assign
	for range n {
		blocks = Block(Get(0), BrIf(0), blocks) + Call(f+1) + use
	}
	m.Func("", T{I32}, nil, n, Get(0), recurse, blocks)
	m.Func("", nil, nil, 0) // f+1
	return m.Func("", nil, nil, 0, Const(1), Call(f))
}

// recursionReturning adds a recursive function that executes long code without calls at each return.
func recursionReturning(m *Module) int {
	f := m.nextFunc()
	again := Get(0) + Const(1) + Sub + Call(f) + strings.Repeat(Load(4), 300)
	m.Func("", T{I32}, T{I32}, 0, Get(0), ifThen+"\x7f", again, orElse, Const(0), end) // 7f: the result is an i32
	g := m.Func("", nil, nil, 0, Const(60_000), Call(f), Drop)
	return m.doubling(codeDepth, Call(g))
}

func initMemory(m *Module) int {
	m.Passive(strings.Repeat("x", page))
	return m.doubling(codeDepth, strings.Repeat(Const(0)+Const(0)+Const(page)+initData, 100))
}

func fillTables(m *Module) int {
	const n = 40_000
	m.Table("", n, n)
	m.Table("", n, n)
	fill := Const(0) + nullFunc + Const(n) + tableFill
	copies := Const(0) + Const(0) + Const(n) + tableCopy
	return m.doubling(codeDepth, strings.Repeat(fill+copies, 100))
}

func growTable(m *Module) int {
	m.Table("", 0, -1)
	return m.doubling(codeDepth, strings.Repeat(nullFunc+Const(1)+tableGrow+Drop, 100))
}

func growMemory(m *Module) int {
	m.memory = []string{size(1, -1)} // in place of that of hostile
	return m.doubling(codeDepth, strings.Repeat(Const(0)+MemoryGrow+Drop+Const(1)+MemoryGrow+Drop, 100))
}

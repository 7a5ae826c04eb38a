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
	const page, memory = 64 << 10, 64 << 20
	all := Const(0) + Const(0) + Const(memory) // the operands of a memory operation on all memory
	mods := []HostileModule{
		{Name: "calls", Bytes: hostile(func(m *Module) int { return m.doubling(50, "") })},
		{Name: "calls_table", Bytes: hostile(func(m *Module) int {
			const n = 50
			m.Table("", n, n)
			var funcs []int
			for i := range n {
				next := ""
				if i+1 < n {
					next = strings.Repeat(Const(int32(i+1))+m.CallTable(nil, nil), 2)
				}
				funcs = append(funcs, m.Func("", nil, nil, 0, next))
			}
			m.Elem(0, funcs...)
			return funcs[0]
		})},
		{Name: "calls_values", Bytes: hostile(func(m *Module) int { // functions with many parameters and results
			const n = 200
			values := slices.Repeat(T{I32}, n)
			all := ""
			for i := range n {
				all += Get(i)
			}
			f := m.nextFunc()
			for i := range 50 {
				next := ""
				if i < 49 {
					next = strings.Repeat(Call(f+i+1), 2)
				}
				m.Func("", values, values, 0, all, next)
			}
			return m.Func("", nil, nil, 0, strings.Repeat(Const(1), n), Call(f), strings.Repeat(Drop, n))
		})},
		{Name: "recursion_tree", Bytes: hostile(func(m *Module) int {
			f := m.nextFunc()
			m.Func("", T{I32}, nil, 0, Get(0), If(strings.Repeat(Get(0)+Const(1)+Sub+Call(f), 2)))
			return m.Func("", nil, nil, 0, Const(60), Call(f))
		})},
		{Name: "recursion_endless", Limit: "stack", Bytes: hostile(func(m *Module) int {
			f := m.nextFunc()
			return m.Func("", nil, nil, 0, Call(f))
		})},
		{Name: "recursion_results", Limit: "stack", Bytes: hostile(func(m *Module) int { // a large frame of a short function
			const n = 1_000
			f := m.nextFunc()
			m.Func("", nil, slices.Repeat(T{I64}, n), 0, Call(f))
			return m.Func("", nil, nil, 0, Call(f), strings.Repeat(Drop, n))
		})},
		{Name: "recursion_values", Limit: "stack", Bytes: hostile(func(m *Module) int { // a large frame whose values are used only without recursion
			const n = 5_000
			f := m.nextFunc()
			m.Func("", T{I32}, nil, 1, Get(0), If(Get(0), Call(f), Return), strings.Repeat(Get(0)+Const(7)+Mul, n)+Call(f+1)+strings.Repeat(Set(1)+Const(0)+Get(1)+Store(0), n))
			m.Func("", nil, nil, 0)
			return m.Func("", nil, nil, 0, Const(1), Call(f))
		})},
		{Name: "recursion_blocks", Limit: "stack", Bytes: hostile(func(m *Module) int { // each block assigns another value to each local
			const n = 60
			f := m.nextFunc()
			code, use := "", ""
			for i := range n {
				code += Get(0) + Const(int32(i)) + Mul + Set(1+i)
				use += Const(0) + Get(1+i) + Store(4*i)
			}
			for range n {
				code = Block(Get(0), BrIf(0), code) + Call(f+1) + use
			}
			m.Func("", T{I32}, nil, n, Get(0), If(Get(0), Call(f), Return), code)
			m.Func("", nil, nil, 0)
			return m.Func("", nil, nil, 0, Const(1), Call(f))
		})},
		{Name: "recursion_start", Limit: "stack", AtStart: true, Bytes: hostile(func(m *Module) int {
			f := m.nextFunc()
			m.Func("", nil, nil, 0, Call(f))
			m.Start(f)
			return f
		})},
		{Name: "recursion_return", Bytes: hostile(func(m *Module) int { // each return executes long code without a call
			f := m.nextFunc()
			m.Func("", T{I32}, T{I32}, 0, Get(0), "\x04\x7f", Get(0)+Const(1)+Sub+Call(f), strings.Repeat(Load(4), 300), "\x05", Const(0), "\x0b")
			g := m.Func("", nil, nil, 0, Const(60_000), Call(f), Drop)
			return m.doubling(40, Call(g))
		})},
		{Name: "fill", Bytes: hostile(func(m *Module) int {
			return m.Func("", nil, nil, 0, strings.Repeat(all+MemoryFill, 4_000))
		})},
		{Name: "fill_calls", Bytes: hostile(func(m *Module) int { return m.doubling(40, all+MemoryFill) })},
		{Name: "copy", Bytes: hostile(func(m *Module) int {
			return m.Func("", nil, nil, 0, strings.Repeat(Const(0)+Const(8)+Const(memory-8)+MemoryCopy+Const(8)+Const(0)+Const(memory-8)+MemoryCopy, 2_000))
		})},
		{Name: "init", Bytes: hostile(func(m *Module) int {
			m.Passive(strings.Repeat("x", page))
			return m.doubling(40, strings.Repeat(Const(0)+Const(0)+Const(page)+"\xfc\x08\x00\x00", 100))
		})},
		{Name: "tables", Bytes: hostile(func(m *Module) int {
			const n = 40_000
			m.Table("", n, n)
			m.Table("", n, n)
			fill := Const(0) + "\xd0\x70" + Const(n) + "\xfc\x11\x00"
			copies := Const(0) + Const(0) + Const(n) + "\xfc\x0e\x00\x01"
			return m.doubling(40, strings.Repeat(fill+copies, 100))
		})},
		{Name: "table_grow", Bytes: hostile(func(m *Module) int {
			m.Table("", 0, -1)
			return m.doubling(40, strings.Repeat("\xd0\x70"+Const(1)+"\xfc\x0f\x00"+Drop, 100))
		})},
		{Name: "grow", Bytes: hostile(func(m *Module) int {
			m.memory = []string{size(1, -1)}
			return m.doubling(40, strings.Repeat(Const(0)+MemoryGrow+Drop+Const(1)+MemoryGrow+Drop, 100))
		})},
		{Name: "host", Limit: "host_calls", Bytes: hostile(func(m *Module) int {
			return m.doubling(40, strings.Repeat(Call(0)+Drop, 100))
		})},
		{Name: "host_random", Limit: "host_calls", Bytes: hostile(func(m *Module) int {
			return m.doubling(40, Const(0)+Const(memory)+Call(1)+Drop)
		})},
		{Name: "straight", Bytes: hostile(func(m *Module) int {
			return m.doubling(40, Const64(1<<62+12345)+strings.Repeat(Const64(7)+RemU64, 8_000)+Wrap+Drop)
		})},
		{Name: "chase", Bytes: hostile(func(m *Module) int { // each load reads its address from the one before
			return m.doubling(40, Const(0)+strings.Repeat(Load(0), 10_000)+Drop)
		})},
		{Name: "branches", Bytes: hostile(func(m *Module) int { // branches over all code between
			return m.doubling(40, strings.Repeat(Block(Const(1), BrIf(0), strings.Repeat(Const(0)+Drop, 50))+"\x02\x40\x02\x40\x02\x40"+Const(9)+"\x0e\x02\x00\x01\x02\x0b\x0b\x0b", 300))
		})},
		{Name: "locals", Bytes: hostile(func(m *Module) int {
			f := m.nextFunc()
			m.Func("", T{I32}, nil, 20_000, Get(0), If(strings.Repeat(Get(0)+Const(1)+Sub+Call(f), 2)))
			return m.Func("", nil, nil, 0, Const(50), Call(f))
		})},
		{Name: "loop", Bytes: hostile(func(m *Module) int { return m.Func("", nil, nil, 0, Loop(Br(0))) })},
		{Name: "loop_nested", Bytes: hostile(func(m *Module) int {
			return m.Func("", nil, nil, 1, Loop(Loop(Get(0), Eqz, BrIf(0)), Br(0)))
		})},
		{Name: "start", AtStart: true, Bytes: hostile(func(m *Module) int {
			f := m.doubling(50, "")
			m.Start(f)
			return f
		})},
		{Name: "initialize", AtStart: true, Bytes: hostile(func(m *Module) int {
			f := m.doubling(50, "")
			m.Export("_initialize", 0, f)
			return f
		})},
	}
	m := New()
	m.Memory(1, 1)
	f := m.doubling(50, "")
	m.Func("malloc", T{I32}, T{I32}, 0, Call(f), Const(1024))
	m.Func("tool", T{I32, I32, I32, I32}, T{I32}, 0, Const(0))
	m.Export("run", 0, f)
	return append(mods, HostileModule{Name: "malloc", Bytes: m.Bytes()})
}

// hostile returns a tool with the functions that build adds; build returns the index of the function to run. Function 0 is sched_yield
// and function 1 is random_get of WASI.
func hostile(build func(m *Module) int) []byte {
	m := New()
	m.Import(wasi, "sched_yield", nil, T{I32})
	m.Import(wasi, "random_get", T{I32, I32}, T{I32})
	m.Memory(1024, 1024)
	m.Func("malloc", T{I32}, T{I32}, 0, Const(1024))
	f := build(m)
	m.Export("run", 0, f)
	m.Func("tool", T{I32, I32, I32, I32}, T{I32}, 0, Call(f), Get(3), Const(2), Store(0), Get(2), Const(0x7d7b), Store(0), Const(0)) // {}
	return m.Bytes()
}

// doubling adds n functions and returns the index of the first. Each calls the next one twice, and the last one runs code.
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

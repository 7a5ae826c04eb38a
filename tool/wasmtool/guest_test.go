package wasmtool_test

import (
	. "github.com/lathe-run/lathe/internal/wasmrt/wasmtest"
)

// The parameters of a tool's function.
const (
	argsPtr = iota
	argsLen
	outPtr
	outLenPtr
	local0
)

const (
	rem = "\x70"
	ltS = "\x48"
)

// toolModule has a memory, a bump allocator under the name malloc, and a tool of that code. Its heap
// starts at 4096; what is below is for data.
func toolModule(locals int, code ...string) *Module {
	m := New()
	m.Memory(2, -1)
	next := m.Global(true, 4096)
	m.Func("malloc", T{I32}, T{I32}, 1, GetGlobal(next), Tee(1), Get(0), Add, SetGlobal(next),
		Block(Loop(MemorySize, Const(65536), Mul, GetGlobal(next), LtU, Eqz, BrIf(1), Const(1), MemoryGrow, Const(-1), Eq, If(Const(0), Return), Br(0))), Get(1))
	m.Func("tool", T{I32, I32, I32, I32}, T{I32}, locals, code...)
	return m
}

// reply answers what stands at an address of the data.
func reply(at, n int) string {
	return Get(outPtr) + Const(int32(at)) + Const(int32(n)) + MemoryCopy + Get(outLenPtr) + Const(int32(n)) + Store(0) + Const(0)
}

// sumModule adds up the integers in its arguments, whatever they are called: {"a":7,"b":35} gives
// {"sum":42}. It is the source of testdata/sum.wasm.
func sumModule() *Module {
	const i, n, in, neg, total, c, p = local0, local0 + 1, local0 + 2, local0 + 3, local0 + 4, local0 + 5, local0 + 6
	isDigit := Get(c) + Const('0') + Sub + Const(10) + LtU
	m := toolModule(7,
		Loop( // each byte, and the NUL behind them
			Get(argsPtr), Get(i), Add, Load8(0), Set(c),
			isDigit, "\x04\x40", // if
			Get(n), Const(10), Mul, Get(c), Const('0'), Sub, Add, Set(n), Const(1), Set(in),
			"\x05", // else
			Get(in), If(Get(total), Get(neg), "\x04\x7f", Const(0), Get(n), Sub, "\x05", Get(n), "\x0b", Add, Set(total), Const(0), Set(n), Const(0), Set(in)),
			Get(c), Const('-'), Eq, Set(neg),
			"\x0b",
			Get(i), Const(1), Add, Tee(i), Get(argsLen), GtU, Eqz, BrIf(0)),
		// The digits are written backwards, up to address 64.
		Get(total), Const(0), ltS, Set(neg),
		Get(neg), If(Const(0), Get(total), Sub, Set(total)),
		Const(64), Set(p),
		Loop(Get(p), Const(1), Sub, Tee(p), Get(total), Const(10), rem, Const('0'), Add, Store8(0),
			Get(total), Const(10), DivU, Tee(total), BrIf(0)),
		Get(neg), If(Get(p), Const(1), Sub, Tee(p), Const('-'), Store8(0)),
		Get(outPtr), Const(80), Const(7), MemoryCopy,
		Get(outPtr), Const(7), Add, Get(p), Const(64), Get(p), Sub, MemoryCopy,
		Get(outPtr), Const(71), Add, Get(p), Sub, Const('}'), Store8(0),
		Get(outLenPtr), Const(72), Get(p), Sub, Store(0),
		Const(0))
	m.Data(80, `{"sum":`)
	return m
}

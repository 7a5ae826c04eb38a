// Package wasmtest builds small WebAssembly modules for tests from single instructions, so that the tests need no compiler. It checks
// nothing, so it can build invalid modules, too.
package wasmtest

import (
	"encoding/binary"
	"slices"
)

// Value types.
const (
	I32 = 0x7f
	I64 = 0x7e
	F64 = 0x7c
)

// Instructions without operands.
const (
	Unreachable = "\x00"
	Drop        = "\x1a"
	Return      = "\x0f"
	Eqz         = "\x45"
	Eq          = "\x46"
	LtU         = "\x49"
	GtU         = "\x4b"
	Add         = "\x6a"
	Sub         = "\x6b"
	Mul         = "\x6c"
	DivU        = "\x6e"
	Wrap        = "\xa7" // i64 to i32
	MemorySize  = "\x3f\x00"
	MemoryGrow  = "\x40\x00"
	MemoryCopy  = "\xfc\x0a\x00\x00"
	MemoryFill  = "\xfc\x0b\x00"
	RemU64      = "\x82" // of i64
)

// Const pushes an i32.
func Const(v int32) string { return "\x41" + signed(int64(v)) }

// Const64 pushes an i64.
func Const64(v int64) string { return "\x42" + signed(v) }

// Get reads a local.
func Get(i int) string { return "\x20" + u(i) }

// Set writes a local.
func Set(i int) string { return "\x21" + u(i) }

// Tee writes a local and leaves the value on the stack.
func Tee(i int) string { return "\x22" + u(i) }

// GetGlobal reads a global.
func GetGlobal(i int) string { return "\x23" + u(i) }

// SetGlobal writes a global.
func SetGlobal(i int) string { return "\x24" + u(i) }

// Call calls the function of that index.
func Call(f int) string { return "\x10" + u(f) }

// Load is i32.load with an offset from the address on the stack.
func Load(offset int) string { return "\x28\x02" + u(offset) }

// Store is i32.store with an offset from the address on the stack.
func Store(offset int) string { return "\x36\x02" + u(offset) }

// Load8 is i32.load8_u.
func Load8(offset int) string { return "\x2d\x00" + u(offset) }

// Store8 is i32.store8.
func Store8(offset int) string { return "\x3a\x00" + u(offset) }

// Loop is a loop without result; Br(0) inside it continues with its next round.
func Loop(code ...string) string { return "\x03\x40" + join(code) + "\x0b" }

// Block is a block without result; Br(0) inside it leaves it.
func Block(code ...string) string { return "\x02\x40" + join(code) + "\x0b" }

// If runs code if the value on the stack is not 0.
func If(code ...string) string { return "\x04\x40" + join(code) + "\x0b" }

// Br leaves the block at that depth.
func Br(depth int) string { return "\x0c" + u(depth) }

// BrIf is Br if the value on the stack is not 0.
func BrIf(depth int) string { return "\x0d" + u(depth) }

func join(code []string) (s string) {
	for _, c := range code {
		s += c
	}
	return s
}

func u(v int) string { return string(binary.AppendUvarint(nil, uint64(v))) }

func signed(v int64) string {
	var b []byte
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return string(append(b, c))
		}
		b = append(b, c|0x80)
	}
}

// T is a list of value types.
type T []byte

// A Module is a module being built. Imports must be added before functions.
type Module struct {
	types, imports, funcs, tables, memory, globals, exports, start, elems, dataCount, code, data []string
	nImports                                                                                     int
}

// New returns an empty module.
func New() *Module { return &Module{} }

func (m *Module) typ(params, results T) string {
	t := "\x60" + u(len(params)) + string(params) + u(len(results)) + string(results)
	i := slices.Index(m.types, t)
	if i < 0 {
		i = len(m.types)
		m.types = append(m.types, t)
	}
	return u(i)
}

func name(s string) string { return u(len(s)) + s }

// Import imports a function and returns its index.
func (m *Module) Import(module, field string, params, results T) int {
	m.imports = append(m.imports, name(module)+name(field)+"\x00"+m.typ(params, results))
	m.nImports++
	return m.nImports - 1
}

// ImportMemory imports a memory.
func (m *Module) ImportMemory(module, field string) {
	m.imports = append(m.imports, name(module)+name(field)+"\x02\x00\x01")
}

// Func adds a function and returns its index. It is exported under that name unless the name is "". locals is the number of its locals,
// of type i32.
func (m *Module) Func(export string, params, results T, locals int, code ...string) int {
	body := "\x00"
	if locals > 0 {
		body = "\x01" + u(locals) + "\x7f"
	}
	return m.RawFunc(export, params, results, body+join(code)+"\x0b")
}

// nextFunc returns the index of the function that is added next.
func (m *Module) nextFunc() int { return m.nImports + len(m.funcs) }

// RawFunc is Func with a complete body: locals, instructions and end.
func (m *Module) RawFunc(export string, params, results T, body string) int {
	i := m.nextFunc()
	m.funcs = append(m.funcs, m.typ(params, results))
	m.code = append(m.code, u(len(body))+body)
	if export != "" {
		m.Export(export, 0, i)
	}
	return i
}

// Export exports the item of that kind and index: kind 0 is a function, 1 a table, 2 a memory, 3 a global.
func (m *Module) Export(as string, kind byte, index int) {
	m.exports = append(m.exports, name(as)+string([]byte{kind})+u(index))
}

func size(least, most int) string {
	if most < 0 {
		return "\x00" + u(least)
	}
	return "\x01" + u(least) + u(most)
}

// Memory adds the memory, exported as `memory`, with its minimal and maximal number of pages. A negative maximum means none.
func (m *Module) Memory(least, most int) {
	m.memory = append(m.memory, size(least, most))
	m.Export("memory", 2, 0)
}

// Table adds a table of functions and returns its index. It is exported under that name unless the name is "".
func (m *Module) Table(export string, least, most int) int {
	m.tables = append(m.tables, "\x70"+size(least, most))
	if export != "" {
		m.Export(export, 1, len(m.tables)-1)
	}
	return len(m.tables) - 1
}

// Global adds a global of type i32 with the value v and returns its index.
func (m *Module) Global(mutable bool, v int32) int {
	mut := "\x00"
	if mutable {
		mut = "\x01"
	}
	m.globals = append(m.globals, "\x7f"+mut+Const(v)+"\x0b")
	return len(m.globals) - 1
}

// Elem writes functions to table 0 from offset on.
func (m *Module) Elem(offset int, funcs ...int) {
	s := "\x00" + Const(int32(offset)) + "\x0b" + u(len(funcs))
	for _, f := range funcs {
		s += u(f)
	}
	m.elems = append(m.elems, s)
}

// Data adds a segment that initializes memory at offset.
func (m *Module) Data(offset int, b string) {
	m.data = append(m.data, "\x00"+Const(int32(offset))+"\x0b"+u(len(b))+b)
}

// Passive adds a segment for memory.init and returns its index.
func (m *Module) Passive(b string) int {
	m.data = append(m.data, "\x01"+u(len(b))+b)
	m.dataCount = []string{u(len(m.data))}
	return len(m.data) - 1
}

// CallTable calls the function of that type in table 0 whose index is on the stack.
func (m *Module) CallTable(params, results T) string { return "\x11" + m.typ(params, results) + "\x00" }

// Start sets the function of the start section.
func (m *Module) Start(f int) { m.start = []string{u(f)} }

// Bytes returns the binary module.
func (m *Module) Bytes() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range []struct {
		id    byte
		items []string
		bare  bool
	}{{1, m.types, false}, {2, m.imports, false}, {3, m.funcs, false}, {4, m.tables, false}, {5, m.memory, false}, {6, m.globals, false},
		{7, m.exports, false}, {8, m.start, true}, {9, m.elems, false}, {12, m.dataCount, true}, {10, m.code, false}, {11, m.data, false}} {
		if len(s.items) == 0 {
			continue
		}
		body := u(len(s.items)) + join(s.items)
		if s.bare {
			body = join(s.items)
		}
		out = append(out, s.id)
		out = append(out, u(len(body))+body...)
	}
	return out
}

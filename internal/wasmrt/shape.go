package wasmrt

import (
	"encoding/binary"
	"errors"
	"strconv"
)

// A shape is what has to be known of a module, beyond what the engine tells: its state.
type shape struct {
	imports    []imported
	funcs      int
	memories   int
	firstPages uint32 // of memory, that an instance begins with
	tables     []tableExport
	// globals names the exports under which the mutable globals were made reachable.
	globals []string
	fixed   string // why the state cannot be set back; "" when it can
}

type imported struct {
	module, name string
	kind         byte // 0: a function
}

type tableExport struct {
	name  string
	index uint32
}

// funcTable chooses the table in which function pointers are looked up.
func (s *shape) funcTable() (index uint32, ok bool) {
	for _, want := range []string{"__indirect_function_table", "table"} {
		for _, t := range s.tables {
			if t.name == want {
				return t.index, true
			}
		}
	}
	if len(s.tables) > 0 {
		return s.tables[0].index, true
	}
	return 0, false
}

// Sections of a module, in the order of the binary format.
const (
	secCustom    = 0
	secType      = 1
	secImport    = 2
	secFunction  = 3
	secTable     = 4
	secMemory    = 5
	secGlobal    = 6
	secExport    = 7
	secStart     = 8
	secElement   = 9
	secCode      = 10
	secData      = 11
	secDataCount = 12
)

// globalPrefix names the exports that are added. A module that has such an export itself is refused.
const globalPrefix = "\x00lathe.global."

var errShort = errors.New("the module is cut short")

// read checks a module against the limits and returns the one to compile: without custom sections,
// its tables bounded, its mutable globals exported.
func (s *shape) read(wasm []byte, limits *Limits) ([]byte, error) {
	if len(wasm) < 8 || string(wasm[:8]) != "\x00asm\x01\x00\x00\x00" {
		return nil, invalid("it is not a WebAssembly module of version 1")
	}
	r := &reader{b: wasm, i: 8}
	out := append(make([]byte, 0, len(wasm)+256), wasm[:8]...)
	var added []byte // entries for the export section
	exported, count := false, 0
	for r.i < len(r.b) && r.err == nil {
		id := r.byte()
		body := r.bytes(r.u32())
		sec := &reader{b: body}
		if !exported && (id == secStart || id == secElement || id == secCode || id == secData || id == secDataCount) {
			exported = true
			if count > 0 {
				out = appendSection(out, secExport, append(binary.AppendUvarint(nil, uint64(count)), added...))
			}
		}
		switch id {
		case secCustom:
			continue
		case secType:
			s.readTypes(sec)
		case secImport:
			s.readImports(sec)
		case secFunction:
			s.funcs = int(sec.u32())
			if s.funcs > limits.Functions {
				return nil, overLimit("functions", "the module has %d functions, and at most %d are taken", s.funcs, limits.Functions)
			}
			sec.i = len(sec.b)
		case secTable:
			bounded, err := readTables(sec, limits)
			if err != nil {
				return nil, err
			}
			body = bounded
		case secMemory:
			if err := s.readMemory(sec, limits); err != nil {
				return nil, err
			}
		case secGlobal:
			added, count = s.readGlobals(sec, added)
		case secExport:
			exported = true
			body = s.readExports(sec, added, count)
		case secCode:
			if err := s.readCode(sec, limits); err != nil {
				return nil, err
			}
		default:
			sec.i = len(sec.b)
		}
		if sec.err == nil && sec.i != len(sec.b) {
			sec.err = errors.New("a section is longer than what it holds")
		}
		if sec.err != nil {
			return nil, &Error{Kind: KindInvalid, Err: sec.err}
		}
		out = appendSection(out, id, body)
	}
	if r.err != nil {
		return nil, &Error{Kind: KindInvalid, Err: r.err}
	}
	if !exported && count > 0 {
		out = appendSection(out, secExport, append(binary.AppendUvarint(nil, uint64(count)), added...))
	}
	return out, nil
}

func appendSection(dst []byte, id byte, body []byte) []byte {
	dst = binary.AppendUvarint(append(dst, id), uint64(len(body)))
	return append(dst, body...)
}

func (s *shape) readTypes(r *reader) {
	for range r.count() {
		if r.byte() != 0x60 {
			r.fail("a type is not that of a function")
		}
		for range 2 {
			n := r.u32()
			if n > maxParams {
				r.fail("a function type has too many parameters or results")
			}
			r.bytes(n)
		}
		if r.err != nil {
			return
		}
	}
}

func (s *shape) readImports(r *reader) {
	for range r.count() {
		im := imported{module: r.name(), name: r.name(), kind: r.byte()}
		switch im.kind {
		case 0:
			r.u32()
		case 1:
			r.byte()
			r.limits()
		case 2:
			r.limits()
		case 3:
			r.byte()
			r.byte()
		default:
			r.fail("an import is of an unknown kind")
		}
		if r.err != nil {
			return
		}
		s.imports = append(s.imports, im)
	}
}

// readTables returns the section with the size of each table bounded, so that table.grow stops there.
func readTables(r *reader, limits *Limits) ([]byte, error) {
	n := r.count()
	out := binary.AppendUvarint(nil, uint64(n))
	left := limits.TableElements
	for t := range n {
		kind := r.byte()
		if kind != 0x70 && kind != 0x6f {
			r.fail("a table is of an unknown type")
		}
		least, most, bounded := r.limits()
		if r.err != nil {
			return nil, &Error{Kind: KindInvalid, Err: r.err}
		}
		if least > left {
			return nil, overLimit("table_elements", "the tables have more than %d elements", limits.TableElements)
		}
		left -= least
		// What the tables may grow by is shared out evenly.
		room := least + left/(n-t)
		if !bounded || most > room {
			most = room
		}
		left -= most - least
		out = append(out, kind, 1)
		out = binary.AppendUvarint(out, uint64(least))
		out = binary.AppendUvarint(out, uint64(most))
	}
	return out, nil
}

func (s *shape) readMemory(r *reader, limits *Limits) error {
	s.memories = int(r.count())
	for range s.memories {
		least, _, _ := r.limits()
		if r.err == nil && least > limits.MemoryPages {
			return overLimit("memory_pages", "the module wants %d pages of memory, and at most %d are given", least, limits.MemoryPages)
		}
		s.firstPages += least
	}
	return nil
}

func (s *shape) readGlobals(r *reader, added []byte) (entries []byte, count int) {
	n := r.count()
	if n > maxGlobals {
		r.fail("there are too many globals")
		return added, 0
	}
	for g := range n {
		kind, mutable := r.byte(), r.byte()
		r.constExpr()
		if r.err != nil {
			return added, count
		}
		if mutable == 0 {
			continue
		}
		if kind < 0x7c || kind > 0x7f {
			s.fixed = "it has a mutable global that is no number"
			continue
		}
		// Imported globals come first in the index space, but a module that has one is not taken.
		name := globalPrefix + strconv.Itoa(int(g))
		s.globals = append(s.globals, name)
		added = append(binary.AppendUvarint(added, uint64(len(name))), name...)
		added = binary.AppendUvarint(append(added, 3), uint64(g))
		count++
	}
	return added, count
}

// readExports returns the section with the entries added.
func (s *shape) readExports(r *reader, added []byte, count int) []byte {
	n := r.count()
	start := r.i
	for range n {
		name, kind, index := r.name(), r.byte(), r.u32()
		if len(name) >= len(globalPrefix) && name[:len(globalPrefix)] == globalPrefix {
			r.fail("an export has a reserved name")
		}
		if r.err != nil {
			return nil
		}
		if kind == 1 {
			s.tables = append(s.tables, tableExport{name, index})
		}
	}
	out := binary.AppendUvarint(nil, uint64(n)+uint64(count))
	out = append(out, r.b[start:r.i]...)
	return append(out, added...)
}

// readCode bounds what the functions cost to compile, and looks for state that cannot be set back.
func (s *shape) readCode(r *reader, limits *Limits) error {
	for range r.count() {
		body := r.bytes(r.u32())
		if r.err != nil {
			return &Error{Kind: KindInvalid, Err: r.err}
		}
		if len(body) > limits.FunctionBytes {
			return overLimit("function_bytes", "a function has %d bytes of code, and at most %d are taken", len(body), limits.FunctionBytes)
		}
		code := &reader{b: body}
		locals := uint64(0)
		for range code.count() {
			locals += uint64(code.u32())
			code.byte()
			if locals > maxLocals {
				return overLimit("function_bytes", "a function has more than %d locals", maxLocals)
			}
		}
		if code.err != nil {
			return &Error{Kind: KindInvalid, Err: code.err}
		}
		if s.fixed == "" {
			s.fixed = code.lasting()
		}
	}
	return nil
}

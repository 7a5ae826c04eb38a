package wasmrt

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// A rewriter reads a module and writes the module to compile: without custom sections, with limited tables, exported mutable globals,
// metered functions, and a start function that is exported instead of started. The index of each function of the module increases by one.
// An index that does not exist in the original module is an error, because it could refer to an added entry.
type rewriter struct {
	*shape
	limits    *Limits
	metered   bool
	hasMemory bool

	// Numbers of entries in the original module. Each is set by its section, which precedes the sections that use it.
	types, importedFuncs, ownFuncs, globals uint32
	start                                   uint32 // the index of the start function in the rewritten module
	mostParams, mostResults                 uint32 // maximal number in one type

	// Entries that are added to the exports, by rewriter.export.
	exports     []byte
	exportCount uint32
}

type section struct {
	id      byte
	rewrite func(*rewriter, *reader) []byte
	added   bool // the section is also written if the module has none
}

// sections are the sections of a module, in their order.
var sections = [...]section{
	{secType, (*rewriter).typeSection, false},
	{secImport, (*rewriter).importSection, true},
	{secFunction, (*rewriter).functionSection, false},
	{secTable, (*rewriter).tableSection, false},
	{secMemory, (*rewriter).memorySection, false},
	{secGlobal, (*rewriter).globalSection, true},
	{secExport, (*rewriter).exportSection, true},
	{secStart, (*rewriter).startSection, false},
	{secElement, (*rewriter).elementSection, false},
	{secDataCount, (*rewriter).rawSection, false},
	{secCode, (*rewriter).codeSection, false},
	{secData, (*rewriter).rawSection, false},
}

// read checks a module against the limits, fills s, and returns the module to compile. The error is an *[Error].
func (s *shape) read(wasm []byte, limits *Limits, metered bool) ([]byte, error) {
	if len(wasm) < 8 || string(wasm[:8]) != "\x00asm\x01\x00\x00\x00" {
		return nil, invalid("it is not a WebAssembly module of version 1")
	}
	found, err := divide(&reader{b: wasm, i: 8})
	if err != nil {
		return nil, err
	}
	memory := &reader{b: found[secMemory]}
	w := &rewriter{shape: s, limits: limits, hasMemory: memory.count() > 0}
	// A module without one of these sections has no function of its own, or is invalid.
	w.metered = metered && found[secType] != nil && found[secFunction] != nil && found[secCode] != nil
	w.starts = w.metered && found[secStart] != nil
	out := append(make([]byte, 0, len(wasm)+len(wasm)/2+1024), wasm[:8]...)
	for _, sec := range sections {
		body := found[sec.id]
		if body == nil {
			if !sec.added {
				continue
			}
			body = []byte{0} // an empty list
		}
		r := &reader{b: body}
		rewritten := sec.rewrite(w, r)
		if r.err == nil && r.i != len(r.b) {
			r.fail("a section is longer than what it holds")
		}
		if r.err != nil {
			return nil, r.failure()
		}
		if rewritten != nil && (found[sec.id] != nil || len(rewritten) > 1) {
			out = append(uleb(append(out, sec.id), len(rewritten)), rewritten...)
		}
	}
	return out, nil
}

// divide returns the bodies of the sections of a module, by section number, without custom sections.
func divide(r *reader) (found [secDataCount + 1][]byte, err error) {
	last := -1
	for r.i < len(r.b) && r.err == nil {
		id := r.byte()
		body := r.bytes(r.u32())
		if id == secCustom || r.err != nil {
			continue
		}
		at := slices.IndexFunc(sections[:], func(s section) bool { return s.id == id })
		if at <= last {
			r.fail("it has a section that is not known, or not in its place")
			continue
		}
		last, found[id] = at, body
	}
	if r.err != nil {
		return found, r.failure()
	}
	return found, nil
}

// moved returns the index of function f in the rewritten module.
func (w *rewriter) moved(r *reader, f uint32) uint32 {
	switch {
	case f >= w.importedFuncs+w.ownFuncs:
		r.fail("it refers to a function that does not exist")
	case w.metered && f >= w.importedFuncs:
		return f + 1
	}
	return f
}

// refer is moved for a reference to a function. It records whether tables may contain functions of the host.
func (w *rewriter) refer(r *reader, f uint32) uint32 {
	w.shape.refersToHost = w.shape.refersToHost || f < w.importedFuncs
	return w.moved(r, f)
}

// extended returns the list of n entries that r has read since from, with more entries added after them if the module is metered.
func (w *rewriter) extended(r *reader, from int, n, more uint32, entries []byte) []byte {
	if !w.metered {
		more, entries = 0, nil
	}
	return append(append(uleb(nil, n+more), r.b[from:r.i]...), entries...)
}

func (w *rewriter) rawSection(r *reader) []byte { return r.bytes(uint32(len(r.b))) }

func (w *rewriter) typeSection(r *reader) []byte {
	w.types = r.count()
	from := r.i
	for range w.types {
		if r.byte() != 0x60 {
			r.fail("a type is not that of a function")
		}
		for _, most := range []*uint32{&w.mostParams, &w.mostResults} {
			n := r.u32()
			if n > maxParams {
				r.fail("a function type has too many parameters or results")
			}
			*most = max(*most, n)
			for range min(n, maxParams) {
				r.valueType()
			}
		}
		if r.err != nil {
			return nil
		}
	}
	return w.extended(r, from, w.types, numAddedTypes, []byte(addedTypes))
}

func (w *rewriter) importSection(r *reader) []byte {
	n := r.count()
	from := r.i
	for range n {
		im := imported{module: r.name(), name: r.name(), kind: r.byte()}
		switch im.kind {
		case externFunc:
			r.below(w.types, "a type")
			w.importedFuncs++
		case externTable:
			r.byte()
			r.limits()
		case externMemory:
			r.limits()
		case externGlobal:
			r.byte()
			r.byte()
		default:
			r.fail("an import is of an unknown kind")
		}
		if r.err != nil {
			return nil
		}
		w.shape.imports = append(w.shape.imports, im)
	}
	tick := append(appendName(appendName(nil, meterModule), "tick"), externFunc)
	return w.extended(r, from, n, 1, uleb(tick, w.types))
}

func (w *rewriter) functionSection(r *reader) []byte {
	n := r.u32()
	if uint64(n) > uint64(w.limits.Functions) {
		r.refuse(overLimit("functions", "the module has %d functions, and at most %d are taken", n, w.limits.Functions))
		return nil
	}
	w.ownFuncs = n
	from := r.i
	for range n {
		r.below(w.types, "a type")
	}
	return w.extended(r, from, n, w.helpers(), w.helperTypes(nil))
}

// tableSection limits the size of each table, so that table.grow fails beyond it.
func (w *rewriter) tableSection(r *reader) []byte {
	n := r.count()
	out := uleb(nil, n)
	left := w.limits.TableElements
	for t := range n {
		kind := r.refType()
		least, most, bounded := r.limits()
		if r.err != nil {
			return nil
		}
		if least > left {
			r.refuse(overLimit("table_elements", "the tables have more than %d elements", w.limits.TableElements))
			return nil
		}
		left -= least
		// The remaining elements are divided evenly among the tables.
		room := least + left/(n-t)
		if !bounded || most > room {
			most = room
		}
		left -= most - least
		out = uleb(uleb(append(out, kind, 1), least), most)
	}
	return out
}

func (w *rewriter) memorySection(r *reader) []byte {
	w.memories = int(r.count())
	for range w.memories {
		least, _, _ := r.limits()
		if r.err == nil && least > w.limits.MemoryPages {
			r.refuse(overLimit("memory_pages", "the module wants %d pages of memory, and at most %d are given", least, w.limits.MemoryPages))
		}
		w.firstPages += least
	}
	return r.b
}

func (w *rewriter) globalSection(r *reader) []byte {
	n := r.count()
	if n > maxGlobals {
		r.fail("there are too many globals")
		return nil
	}
	w.globals = n
	var out []byte
	for g := range n {
		kind, mutable := r.valueType(), r.byte()
		out = w.constExpr(append(out, kind, mutable), r)
		if r.err != nil {
			return nil
		}
		if mutable == 0 {
			continue
		}
		if kind < 0x7c || kind > 0x7f { // a vector or a reference
			w.notRestorable = true
			continue
		}
		// Imported globals would come first in the index space, but a module with one is not supported.
		name := globalPrefix + strconv.Itoa(int(g))
		w.shape.globals = append(w.shape.globals, name)
		w.export(name, externGlobal, g)
	}
	if w.metered {
		n++
		out = append(out, addedFuel...)
	}
	return append(uleb(nil, n), out...)
}

// constExpr copies a constant expression from r to out.
func (w *rewriter) constExpr(out []byte, r *reader) []byte {
	for r.err == nil {
		from := r.i
		switch op := r.byte(); op {
		case opEnd:
			return append(out, op)
		case opGetGlobal:
			r.below(w.globals, "a global")
		case opConst, 0x42: // i32.const, i64.const
			r.leb()
		case 0x43: // f32.const
			r.bytes(4)
		case 0x44: // f64.const
			r.bytes(8)
		case 0xd0: // ref.null
			r.refType()
		case opRefFunc:
			out = uleb(append(out, op), w.refer(r, r.u32()))
			from = r.i
		case 0xfd: // v128.const
			if r.byte() != 12 {
				r.fail("a value is not constant")
			}
			r.bytes(16)
		default:
			r.fail("a value is not constant")
		}
		out = append(out, r.b[from:r.i]...)
	}
	return out
}

// appendName appends a name with its length.
func appendName(b []byte, name string) []byte { return append(uleb(b, len(name)), name...) }

// export adds an entry to the exports.
func (w *rewriter) export(name string, kind byte, index uint32) {
	w.exports = uleb(append(appendName(w.exports, name), kind), index)
	w.exportCount++
}

func (w *rewriter) exportSection(r *reader) []byte {
	if w.starts {
		w.export(startExport, externFunc, w.helper(funcStart))
	}
	n := r.count()
	out := uleb(nil, n+w.exportCount)
	for range n {
		from := r.i
		name, kind := r.name(), r.byte()
		out = append(out, r.b[from:r.i]...)
		index := r.u32()
		if strings.HasPrefix(name, addedPrefix) {
			r.fail("an export has a reserved name")
		}
		switch kind {
		case externFunc:
			index = w.moved(r, index)
		case externTable:
			w.shape.tables = append(w.shape.tables, tableExport{name, index})
		case externGlobal:
			if index >= w.globals {
				r.fail("it exports a global that does not exist")
			}
		}
		if r.err != nil {
			return nil
		}
		out = uleb(out, index)
	}
	return append(out, w.exports...)
}

// startSection omits the section from a metered module: the start function is called like other functions.
func (w *rewriter) startSection(r *reader) []byte {
	w.start = w.moved(r, r.u32())
	if w.starts {
		return nil
	}
	return uleb(nil, w.start)
}

// elementSection renumbers the functions of tables. A segment begins with three flags: 1: it is not active; 2: an active one names its table
// and type, and any other is only declared; 4: its elements are expressions instead of indexes of functions.
func (w *rewriter) elementSection(r *reader) []byte {
	n := r.count()
	out := uleb(nil, n)
	for range n {
		form := r.u32()
		if form > 7 {
			r.fail("the functions of a table are in a form that is not supported")
		}
		out = uleb(out, form)
		active, explicit, hasExpressions := form&1 == 0, form&2 != 0, form&4 != 0
		if active && explicit {
			out = uleb(out, r.u32()) // the table
		}
		if active {
			out = w.constExpr(out, r) // the offset
		}
		if !active || explicit { // a type is written
			kind := r.byte()
			supported := kind == 0 // functions
			if hasExpressions {
				supported = isRefType(kind)
			}
			if !supported {
				r.fail("the elements of a table are of a type that is not supported")
			}
			out = append(out, kind)
		}
		m := r.count()
		out = uleb(out, m)
		for range m {
			if hasExpressions {
				out = w.constExpr(out, r)
			} else {
				out = uleb(out, w.refer(r, r.u32()))
			}
		}
		if r.err != nil {
			return nil
		}
	}
	return out
}

// codeSection limits the cost of compiling each function, and meters it.
func (w *rewriter) codeSection(r *reader) []byte {
	n := r.count()
	out := uleb(make([]byte, 0, len(r.b)+len(r.b)/2), n+w.helpers())
	var body []byte
	for range n {
		code := &reader{b: r.bytes(r.u32())}
		if r.err != nil {
			return nil
		}
		if len(code.b) > w.limits.FunctionBytes {
			r.refuse(overLimit("function_bytes", "a function has %d bytes of code, and at most %d are taken", len(code.b), w.limits.FunctionBytes))
			return nil
		}
		locals := uint64(0)
		for range code.count() {
			locals += uint64(code.u32())
			code.valueType()
			if locals > maxLocals {
				r.refuse(overLimit("function_bytes", "a function has more than %d locals", maxLocals))
				return nil
			}
		}
		body = append(body[:0], code.b[:code.i]...)
		body = w.meterCode(body, code, locals)
		if code.err != nil {
			r.err = code.err
			return nil
		}
		if len(body) > maxGrowth*w.limits.FunctionBytes {
			r.refuse(overLimit("function_bytes", "a function has too many loops and calls: with the code that counts them it has %d bytes", len(body)))
			return nil
		}
		out = append(uleb(out, len(body)), body...)
	}
	return w.helperCode(out)
}

// failure returns the error of r as an *Error.
func (r *reader) failure() error {
	var e *Error
	if errors.As(r.err, &e) {
		return e
	}
	return &Error{Kind: KindInvalid, Err: r.err}
}

package wasmrt

import "errors"

// A shape is what has to be known of a module, beyond what the engine tells: its state.
type shape struct {
	imports    []imported
	memories   int
	firstPages uint32 // of memory, that an instance begins with
	tables     []tableExport
	// globals names the exports under which the mutable globals were made reachable.
	globals []string
	fixed   string // why the state cannot be set back; "" when it can
	starts  bool   // startExport is to be called when an instance is made
	// refersToHost says that functions of the host may be in tables. The engine (wazero 1.12) reads arbitrary memory when such an element
	// is looked up: it takes the host's module for an instance.
	refersToHost bool
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

// The exports that are added. A module that has an export with the prefix itself is refused.
const (
	addedPrefix  = "\x00lathe."
	globalPrefix = addedPrefix + "global."
	startExport  = addedPrefix + "start"
)

var errShort = errors.New("the module is cut short")

// lasting notes why used instances cannot be set back.
func (s *shape) lasting(why string) {
	if s.fixed == "" {
		s.fixed = why
	}
}

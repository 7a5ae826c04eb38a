package wasmrt

// A shape is the information about a module that the engine does not provide.
type shape struct {
	imports    []imported
	memories   int
	firstPages uint32 // initial pages of memory
	tables     []tableExport
	// globals are the names of the exports that were added for the mutable globals.
	globals       []string
	notRestorable bool // a used instance cannot be restored
	starts        bool // the start function is exported as startExport, which instantiation calls
	// refersToHost is set if tables may contain functions of the host. A lookup of such an element makes the engine (wazero 1.12) read
	// arbitrary memory, because it handles the host's module as an instance.
	refersToHost bool
}

type imported struct {
	module, name string
	kind         byte // externFunc, or another
}

// Kinds of imports and exports.
const (
	externFunc   = 0
	externTable  = 1
	externMemory = 2
	externGlobal = 3
)

type tableExport struct {
	name  string
	index uint32
}

// funcTable returns the index of the table that contains the function pointers; ok is false if no table is exported.
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

// The prefix of added exports, and their names. A module with an export of its own with the prefix is an error.
const (
	addedPrefix  = "\x00lathe."
	globalPrefix = addedPrefix + "global."
	startExport  = addedPrefix + "start"
)

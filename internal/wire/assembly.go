package wire

import (
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// An Assembly is what the assemblers of all wires have of an answer. They embed it.
type Assembly struct {
	Opts      AssemblerOptions
	ID, Model string
	Faults    []lathe.Fault
	Unsound   bool
	Err       error // final

	size    int
	scratch []byte
}

// NewAssembly returns the beginning of an answer. opts may be nil.
func NewAssembly(opts *AssemblerOptions) Assembly { return Assembly{Opts: opts.WithDefaults()} }

// Next returns the beginning of another answer, with the memory of this one.
func (a *Assembly) Next() Assembly { return Assembly{Opts: a.Opts, scratch: a.scratch[:0]} }

// Names implements [Assembler].
func (a *Assembly) Names() (id, model string) { return a.ID, a.Model }

// Sound implements [Assembler].
func (a *Assembly) Sound() bool { return !a.Unsound && a.Err == nil }

// Fault counts a deviation that was tolerated.
func (a *Assembly) Fault(kind string) { a.Faults = CountFault(a.Faults, kind, 1) }

// Damage counts a deviation that some clients of the wire cannot read, so that the answer is not relayed as it is.
func (a *Assembly) Damage(kind string) {
	a.Fault(kind)
	a.Unsound = true
}

// Grow counts n bytes of the answer. Beyond MaxBytes, Err is [ErrTooManyBytes].
func (a *Assembly) Grow(n int) {
	if a.size += n; a.size > a.Opts.MaxBytes && a.Err == nil {
		a.Err = ErrTooManyBytes
	}
}

// Unquote returns the text of a string literal; nil for other values. It is valid until the next call.
func (a *Assembly) Unquote(v []byte) []byte {
	if Kind(v) != '"' {
		return nil
	}
	a.scratch = rawjson.AppendUnquoteLossy(a.scratch[:0], v)
	return a.scratch
}

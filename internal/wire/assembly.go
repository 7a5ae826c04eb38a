package wire

import "github.com/lathe-run/lathe"

// An Assembly is the part of an answer's state that is common to the assemblers of all wires. They embed it.
type Assembly struct {
	Opts      AssemblerOptions
	ID, Model string
	Faults    []lathe.Fault
	Unsound   bool
	Err       error         // final error: once set, nothing more is read
	Out       []lathe.Delta // deltas that Take returns

	size int
}

// NewAssembly returns the state of an answer of which nothing was read. opts may be nil.
func NewAssembly(opts *AssemblerOptions) Assembly { return Assembly{Opts: opts.WithDefaults()} }

// Take returns Out and empties it: the deltas that the caller added, and those emitted since the last call.
func (a *Assembly) Take() []lathe.Delta {
	out := a.Out
	a.Out = nil
	return out
}

// Emit adds a delta to those that Take returns.
func (a *Assembly) Emit(d lathe.Delta) { a.Out = append(a.Out, d) }

// EmitText adds a delta with a piece of text or, if index is the number of a call, of its arguments. It adds nothing for an empty text.
func (a *Assembly) EmitText(kind lathe.DeltaKind, index int, text string) {
	if text != "" {
		a.Emit(lathe.Delta{Kind: kind, Index: index, Text: text})
	}
}

// Names implements [Assembler].
func (a *Assembly) Names() (id, model string) { return a.ID, a.Model }

// Sound implements [Assembler].
func (a *Assembly) Sound() bool { return !a.Unsound && a.Err == nil }

// Fault counts a deviation from the wire that was tolerated.
func (a *Assembly) Fault(kind string) { a.Faults = CountFault(a.Faults, kind, 1) }

// Damage counts a deviation that some clients of the wire cannot parse, and marks the answer as not to be relayed.
func (a *Assembly) Damage(kind string) {
	a.Fault(kind)
	a.Unsound = true
}

// Grow adds n bytes to the size of the answer. If the size exceeds MaxBytes, Err is set to [ErrTooManyBytes].
func (a *Assembly) Grow(n int) {
	a.size += n
	if a.size > a.Opts.MaxBytes && a.Err == nil {
		a.Err = ErrTooManyBytes
	}
}

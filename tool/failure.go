package tool

import (
	"errors"
	"fmt"

	"github.com/lathe-run/lathe"
)

// A Failure is an error whose text the model gets: the tool understood the call and explains why it cannot do what was asked.
// For any other error of a tool the model gets the fixed text of its code.
type Failure struct {
	// Code is one of the codes of a tool call; anything else counts as execution_failed.
	Code lathe.Code
	// Message is shown to the model as the field `detail`, cut to 1 000 bytes. No allowlist applies to it: it must not contain
	// data that the model may not see.
	Message string
}

// Fail returns a [Failure] with a formatted message.
func Fail(code lathe.Code, format string, args ...any) error {
	return &Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error returns the code alone: the message is for the model, not for logs.
func (f *Failure) Error() string { return "tool: " + string(callCode(f.Code)) }

// A tool returns an error that wraps ErrGuestFault if a guest program violated its memory rules. The call is answered
// execution_failed and the run ends with reason guest_fault.
var ErrGuestFault = errors.New("guest fault")

// A PanicError is passed to [Options.OnError] when a tool panicked. Stack holds the names of the functions on the stack, and
// none of their arguments.
type PanicError struct{ Stack string }

// Error says that a tool panicked.
func (*PanicError) Error() string { return "tool: the tool panicked" }

// A CauseError is an error of a tool whose Cause operators may see: logs, events and terminals show it. Cause must not hold
// an argument, an output or a secret. Err may; only [Options.OnError] gets it.
type CauseError struct {
	Cause string // cut to 200 bytes
	Err   error  // may be nil
}

// Error returns the cause and the error behind it.
func (e *CauseError) Error() string {
	if e.Err == nil {
		return e.Cause
	}
	return e.Cause + ": " + e.Err.Error()
}

// Unwrap returns the error behind the cause.
func (e *CauseError) Unwrap() error { return e.Err }

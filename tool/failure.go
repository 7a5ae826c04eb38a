package tool

import (
	"errors"
	"fmt"

	"github.com/lathe-run/lathe"
)

// A Failure is an error whose text is meant for the model: the tool has looked at what was asked
// and says why it cannot be done. All other errors of a tool are told to the model as the fixed
// text of their code.
type Failure struct {
	// Code is one of the codes of a tool call; anything else counts as execution_failed.
	Code lathe.Code
	// Message is shown to the model as the field `detail`, cut to 1 000 bytes. It must not hold
	// what the model may not see: no allowlist applies to it.
	Message string
}

// Fail returns a [Failure] with a formatted message.
func Fail(code lathe.Code, format string, args ...any) error {
	return &Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error returns the code alone: the message is for the model, not for logs.
func (f *Failure) Error() string { return "tool: " + string(callCode(f.Code)) }

// ErrGuestFault, in the error of a tool, says that a guest program broke the rules of its memory.
// The call is answered execution_failed and the run ends with reason guest_fault.
var ErrGuestFault = errors.New("guest fault")

// A PanicError is told to [Options.OnError] when a tool panicked. It holds the functions on the
// stack and none of their values.
type PanicError struct{ Stack string }

// Error says that a tool panicked.
func (*PanicError) Error() string { return "tool: the tool panicked" }

// A CauseError is an error of a tool whose Cause operators may see: logs, events and terminals show it. Cause must not hold
// an argument, an output or a secret. Err may; only [Options.OnError] gets it.
type CauseError struct {
	Cause string // 200 bytes of it are kept
	Err   error  // nil where there is nothing more to say
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

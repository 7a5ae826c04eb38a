package tool

import (
	"errors"
	"fmt"

	"github.com/lathe-run/lathe"
)

// A Failure is an error whose text the model receives: the tool understood the call and explains why it cannot execute it. For any other
// error of a tool the model receives the fixed text of its code.
type Failure struct {
	// Code is a code of a tool call; any other code counts as execution_failed.
	Code lathe.Code
	// Message is the field `detail` in the error for the model, truncated to 1,000 bytes. No allowlist applies to it: it must not contain
	// data that the model may not receive.
	Message string
}

// Fail returns a [Failure] with a formatted message.
func Fail(code lathe.Code, format string, args ...any) error {
	return &Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error returns the code alone: the message is for the model, not for logs.
func (f *Failure) Error() string { return "tool: " + string(callCode(f.Code)) }

// ErrGuestFault is wrapped by the error of a tool whose guest program violated its memory rules. The call ends with execution_failed and
// the run with reason guest_fault.
var ErrGuestFault = errors.New("guest fault")

// A PanicError is passed to [Options.OnError] if a tool panicked. Stack contains the names of the functions on the stack, without their
// arguments.
type PanicError struct{ Stack string }

// Error returns a fixed text, without the value of the panic.
func (*PanicError) Error() string { return "tool: the tool panicked" }

// A CauseError is an error of a tool whose Cause operators may read: it appears in logs, events and terminals. Cause must not contain an
// argument, an output or a secret. Err may; only [Options.OnError] receives it.
type CauseError struct {
	Cause string // truncated to 200 bytes
	Err   error  // may be nil
}

// Error returns the cause and the text of Err.
func (e *CauseError) Error() string {
	if e.Err == nil {
		return e.Cause
	}
	return e.Cause + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *CauseError) Unwrap() error { return e.Err }

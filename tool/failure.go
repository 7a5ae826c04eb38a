package tool

import (
	"errors"
	"fmt"

	"github.com/lathe-run/lathe"
)

// A Failure is an error whose Message is sent to the model: the tool understood the call and explains why it cannot execute it. For any
// other error, the model receives only the fixed text of the error's code.
type Failure struct {
	// Code is the code with which the call ends. A code that is not one of a tool call counts as execution_failed.
	Code lathe.Code
	// Message is sent to the model as `detail`, truncated to 1,000 bytes. The allowlist of the tool does not apply to it, so it must not
	// contain data that the model may not receive.
	Message string
}

// Fail returns a *[Failure] with a message in the format of [fmt.Sprintf]. The model receives the message.
func Fail(code lathe.Code, format string, args ...any) error {
	return &Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error returns "tool: " and the code. It omits Message, which is for the model and not for logs.
func (f *Failure) Error() string { return "tool: " + string(callCode(f.Code)) }

// ErrGuestFault is wrapped by the error of a tool whose WebAssembly program passed an invalid memory range. The call ends with
// execution_failed, and the run ends with reason guest_fault.
var ErrGuestFault = errors.New("guest fault")

// A PanicError is the error that [Options.OnError] receives if a tool panicked. Stack contains function names only, neither arguments nor
// the value of the panic.
type PanicError struct{ Stack string }

// Error returns the same text for every panic.
func (*PanicError) Error() string { return "tool: the tool panicked" }

// A CauseError is an error of a tool with a cause that operators may read: Cause appears in logs, events and terminals, and must not
// contain arguments, outputs or secrets. Err may contain them: it is passed to [Options.OnError] only.
type CauseError struct {
	Cause string // truncated to 200 bytes
	Err   error  // may be nil
}

// Error returns the cause, followed by the text of Err unless Err is nil.
func (e *CauseError) Error() string {
	if e.Err == nil {
		return e.Cause
	}
	return e.Cause + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *CauseError) Unwrap() error { return e.Err }

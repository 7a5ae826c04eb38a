package wasmrt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero/sys"
)

// A Kind is the kind of failure of a guest.
type Kind uint8

// The kinds. The zero value is not a kind.
const (
	KindInvalid   Kind = iota + 1 // the module is invalid, or imports something that the runtime does not provide
	KindLimit                     // the limit named by Limit was reached
	KindMemory                    // memory was accessed out of its bounds, by the guest or for it
	KindTrap                      // any other trap
	KindTimeout                   // the deadline of the context passed
	KindCancelled                 // the context was cancelled
	KindExit                      // the guest exited, with Code
	KindHost                      // a host function ended the guest; Err is its error
	KindMissing                   // an export or table element does not exist, or has another type
	KindClosed                    // the instance, module or runtime is closed
)

// String returns the name of the kind in error texts.
func (k Kind) String() string {
	names := [...]string{"", "invalid module", "limit", "memory fault", "trap", "timeout", "cancelled", "exit", "host", "missing", "closed"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// An Error reports why a module could not be compiled or a guest call failed. Its text contains nothing
// from the guest's memory.
type Error struct {
	Kind  Kind
	Limit string // the name of the limit, for KindLimit
	Code  uint32 // the exit code, for KindExit
	Err   error  // may be nil
}

// Error returns "wasm: kind: cause".
func (e *Error) Error() string {
	s := "wasm: " + e.Kind.String()
	switch {
	case e.Kind == KindLimit:
		s += " " + e.Limit
	case e.Kind == KindExit:
		s += fmt.Sprintf(" with code %d", e.Code)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func invalid(format string, args ...any) *Error {
	return &Error{Kind: KindInvalid, Err: fmt.Errorf(format, args...)}
}

func missing(text string) *Error { return &Error{Kind: KindMissing, Err: errors.New(text)} }

func overLimit(name, format string, args ...any) *Error {
	e := &Error{Kind: KindLimit, Limit: name}
	if format != "" {
		e.Err = fmt.Errorf(format, args...)
	}
	return e
}

// The engine does not export its trap values, so they are recognized by their text.
const (
	trapPrefix   = "wasm error: "
	outOfBounds  = "out of bounds memory access"
	tooDeep      = "stack overflow"
	nothingAtAll = "the guest trapped"
)

// failure converts an error of the engine to an *Error. It uses only the first line of the text, because names from the module follow it.
// refused is the limit for which a request of the guest was refused during the call, or "".
func failure(ctx context.Context, e *env, err error, refused string) *Error {
	if s := e.pending; s != nil {
		e.pending = nil
		return s
	}
	var exit *sys.ExitError
	if errors.As(err, &exit) {
		if ctx.Err() != nil {
			return stopped(ctx)
		}
		return &Error{Kind: KindExit, Code: exit.ExitCode()}
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	_, text, isTrap := strings.Cut(line, trapPrefix)
	switch {
	case strings.HasSuffix(line, tooDeep):
		return overLimit(stackLimit, "the calls of the guest within each other are more than the engine takes")
	case !isTrap: // a panic of a host function, whose text must not be passed on
		text = nothingAtAll
	}
	cause := errors.New(text)
	switch {
	case refused != "":
		return &Error{Kind: KindLimit, Limit: refused, Err: cause}
	case text == outOfBounds:
		return &Error{Kind: KindMemory, Err: cause}
	}
	return &Error{Kind: KindTrap, Err: cause}
}

// stopped returns the error for a context that has ended.
func stopped(ctx context.Context) *Error {
	cause := ctx.Err()
	if errors.Is(cause, context.DeadlineExceeded) {
		return &Error{Kind: KindTimeout, Err: cause}
	}
	return &Error{Kind: KindCancelled, Err: cause}
}

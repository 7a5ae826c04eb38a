package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wasmrt"
	"github.com/lathe-run/lathe/tool"
)

// A function is a function of the guest that a session registered as a tool with cchat_write_fn.
type function struct {
	program *program
	session *session
	offset  int32 // index in the function table, or byName
	spec    lathe.ToolSpec
	send    *send // the send during which the function can be called; nil before
}

var _ lathe.Tool = (*function)(nil)

// A send is one active call of cchat_send. The guest is blocked in it, and the functions of its session are called one at a time.
type send struct {
	mu   sync.Mutex
	over bool
}

// during returns a copy of f that can be called during the send s.
func (f *function) during(s *send) *function {
	bound := *f
	bound.send = s
	return &bound
}

// Spec implements [lathe.Tool]. It returns the definition that the guest has registered.
func (f *function) Spec() *lathe.ToolSpec { return &f.spec }

// A returned is the result of a call of a guest's function.
type returned struct {
	out *lathe.Output
	err error
}

// Call implements [lathe.Tool]: it calls the function in the guest. A call after the end of the send to which the function belongs is
// cancelled.
//
// If ctx ends, the guest is stopped, which may take a moment. Call returns without waiting for that, so that the run ends in time;
// cchat_send waits.
func (f *function) Call(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	op := "guest: call " + f.spec.Name
	if f.send == nil {
		return nil, &lathe.Error{Code: lathe.CodeUnavailable, Op: op}
	}
	var inside atomic.Bool
	back := make(chan returned, 1)
	go func() {
		f.send.mu.Lock()
		defer f.send.mu.Unlock()
		inside.Store(true)
		out, err := f.enter(ctx, op, args)
		back <- returned{out, err}
	}()
	select {
	case r := <-back:
		return r.out, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-back: // the call returned at the same time
		return r.out, r.err
	default:
	}
	err := lathe.CodeTimeout.Wrap(op, ctx.Err())
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err.Code = lathe.CodeCancelled
	}
	if !inside.Load() {
		return nil, err
	}
	return nil, errors.Join(err, tool.ErrGuestFault)
}

// enter calls the function. The caller holds the lock of the send, so that only one goroutine at a time executes code of the guest.
func (f *function) enter(ctx context.Context, op string, args json.RawMessage) (*lathe.Output, error) {
	if f.send.over || ctx.Err() != nil {
		return nil, &lathe.Error{Code: lathe.CodeCancelled, Op: op}
	}
	if f.program.fault != nil {
		return nil, fmt.Errorf("%s: %w", op, tool.ErrGuestFault)
	}
	out, err := f.program.call(ctx, f, args)
	if err == nil {
		return out, nil
	}
	return f.outcome(op, err)
}

// outcome converts an error of the guest to a failure of the call, or to a fault that ends the guest.
func (f *function) outcome(op string, err error) (*lathe.Output, error) {
	var e *wasmrt.Error
	if errors.As(err, &e) && !errors.Is(err, errNoMem) {
		switch {
		case e.Kind == wasmrt.KindTrap, e.Kind == wasmrt.KindMissing, e.Kind == wasmrt.KindLimit && e.Limit == "stack":
			return failedBecause(-eio, trapCause(e)), nil
		case e.Kind == wasmrt.KindTimeout:
			err = errors.Join(lathe.CodeTimeout.Wrap(op, err), tool.ErrGuestFault)
		case e.Kind == wasmrt.KindCancelled:
			err = errors.Join(lathe.CodeCancelled.Wrap(op, err), tool.ErrGuestFault)
		}
	}
	if !errors.Is(err, tool.ErrGuestFault) {
		err = fmt.Errorf("%s: %w: %w", op, tool.ErrGuestFault, err)
	}
	f.program.fault = err
	return nil, err
}

// trapCause returns the reason for which a function did not return. It uses the kind of the error, because the error's text may quote the
// guest.
func trapCause(e *wasmrt.Error) string {
	switch {
	case e.Kind == wasmrt.KindMissing && e.Err != nil:
		return e.Err.Error() // written by package wasmrt
	case e.Kind == wasmrt.KindMissing:
		return "the function is not there"
	case e.Kind == wasmrt.KindLimit:
		return "the function exceeded the limit " + e.Limit
	default:
		return "the function trapped"
	}
}

// failedBecause returns the output of a failed call. The model receives rc, and operators also the cause.
func failedBecause(rc int, cause string) *lathe.Output {
	return &lathe.Output{IsError: true, Code: lathe.CodeExecutionFailed, RC: rc, Data: fmt.Appendf(nil, `{"rc":%d}`, rc), Cause: cause}
}

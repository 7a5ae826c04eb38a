package main

import (
	"context"
	"sync/atomic"
)

// interrupts lets a command handle Ctrl-C itself.
type interrupts struct {
	handler atomic.Pointer[func() bool] // nil: the program is interrupted as usual
}

type interruptsKey struct{}

func withInterrupts(ctx context.Context) (context.Context, *interrupts) {
	i := &interrupts{}
	return context.WithValue(ctx, interruptsKey{}, i), i
}

// onInterrupt calls handle in another goroutine when Ctrl-C is pressed, until release is called. If handle returns false, the program is
// interrupted as usual.
func onInterrupt(ctx context.Context, handle func() bool) (release func()) {
	i, ok := ctx.Value(interruptsKey{}).(*interrupts)
	if !ok {
		return func() {} // in a test
	}
	i.handler.Store(&handle)
	return func() { i.handler.Store(nil) }
}

// handle calls the function of the command, if there is one, and reports whether it has handled Ctrl-C.
func (i *interrupts) handle() bool {
	handle := i.handler.Load()
	return handle != nil && (*handle)()
}

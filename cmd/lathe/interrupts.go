package main

import (
	"context"
	"sync"
)

// interrupts lets a command handle Ctrl-C itself.
type interrupts struct {
	mu     sync.Mutex
	handle func() bool
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
	set := func(f func() bool) {
		i.mu.Lock()
		i.handle = f
		i.mu.Unlock()
	}
	set(handle)
	return func() { set(nil) }
}

// handled reports whether a command has handled Ctrl-C.
func (i *interrupts) handled() bool {
	i.mu.Lock()
	handle := i.handle
	i.mu.Unlock()
	return handle != nil && handle()
}

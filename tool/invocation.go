package tool

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/stack"
)

// invocation is the state of a call while its tool runs in its own goroutine. It is allocated for each call, because a tool
// may retain its context, and separately from the events, so that a sink that retains an event does not retain the context.
type invocation struct {
	callContext
	args  []byte
	began time.Time

	back  chan<- struct{} // set before the state is awaited: receives one value, when the tool has returned
	state atomic.Int32

	// Written before the tool is back, read after it.
	returned bool // false: it panicked or left its goroutine
	took     time.Duration
	out      *lathe.Output
	err      error // where it did not return, a *PanicError
}

// The states of an invocation.
const (
	running int32 = iota
	awaited       // it runs, and the runner waits on back
	back
)

// run calls the tool. It is the only place that does.
func (i *invocation) run() {
	defer i.finish()
	ctx := context.Context(&i.callContext)
	i.out, i.err = i.entry.tool.Call(ctx, i.args)
	i.returned = true
}

// finish runs however the tool ended: it returned, panicked, or ended its goroutine.
func (i *invocation) finish() {
	if !i.returned {
		_ = recover()
		i.err = &PanicError{Stack: stack.Functions()}
	}
	i.took = time.Since(i.began)
	i.entry.leave()
	i.end(context.Canceled)
	if i.state.Swap(back) == awaited {
		i.back <- struct{}{}
	}
}

// soonBack yields to the goroutine of the tool and reports whether it has returned. A tool that does not block mostly
// has, which saves a timer and a wait that cost more than the tool. It yields twice, because the scheduler sometimes
// returns here at once.
func (i *invocation) soonBack() bool {
	for range 2 {
		runtime.Gosched()
		if i.state.Load() == back {
			return true
		}
	}
	return false
}

// awaitOn makes finish send to the channel, whose buffer must not be full. It returns false if the tool has returned.
func (i *invocation) awaitOn(back chan<- struct{}) bool {
	i.back = back
	return i.state.CompareAndSwap(running, awaited)
}

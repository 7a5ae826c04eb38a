package tool

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe"
)

// invocation is a call while its tool runs, in a goroutine of its own. It is made anew for each
// call, because a tool may hold on to its context, and apart from the facts, because those who keep
// facts need not keep contexts.
type invocation struct {
	callContext
	args  []byte
	began time.Time

	tell  chan<- struct{} // set before the state is awaited: told once, when the tool is back
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
	awaited       // it runs, and somebody waits to be told
	back
)

// run calls the tool. It is the only place that does.
func (i *invocation) run() {
	defer i.finish()
	ctx := context.Context(&i.callContext)
	i.out, i.err = i.entry.tool.Call(ctx, i.args)
	i.returned = true
}

// finish is told however the tool ended: it returned, panicked, or ended its goroutine.
func (i *invocation) finish() {
	if !i.returned {
		_ = recover()
		i.err = &PanicError{Stack: functions()}
	}
	i.took = time.Since(i.began)
	i.entry.leave()
	i.end(context.Canceled)
	if i.state.Swap(back) == awaited {
		i.tell <- struct{}{}
	}
}

// soonBack lets the tool run and reports whether it is back already. A tool that waits for nothing
// mostly is, and then there is no need for a timer and for waiting, which cost more than it does.
// Twice, because now and then the scheduler returns here at once.
func (i *invocation) soonBack() bool {
	for range 2 {
		runtime.Gosched()
		if i.state.Load() == back {
			return true
		}
	}
	return false
}

// awaitOn asks to be told on the channel, which must have room. It returns false where the tool is back.
func (i *invocation) awaitOn(tell chan<- struct{}) bool {
	i.tell = tell
	return i.state.CompareAndSwap(running, awaited)
}

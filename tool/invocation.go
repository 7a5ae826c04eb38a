package tool

import (
	"context"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/stack"
)

// invocation is the state of a call while its tool runs in its own goroutine. It is allocated for each call, because a tool
// may retain its context, and separately from the events, so that a sink that retains an event does not retain the context.
type invocation struct {
	callContext
	entry *entry
	args  []byte
	back  chan struct{} // closed when the tool is back; what follows is written before

	returned bool // false: it panicked or left its goroutine
	out      *lathe.Output
	err      error // where it did not return, a *PanicError
}

// newInvocation returns the invocation of c's tool, which has not begun.
func newInvocation(ctx context.Context, c *call) *invocation {
	return &invocation{entry: c.entry, args: revealTokens(c), back: make(chan struct{}), callContext: callContext{
		parent: lathe.WithCallMeta(ctx, c.meta()), deadline: c.deadline, scope: c.scope, done: make(chan struct{})}}
}

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
	i.entry.leave()
	i.end(context.Canceled)
	close(i.back)
}

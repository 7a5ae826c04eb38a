package tool

import (
	"context"
	"encoding/json"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/stack"
)

// invocation is the state of a call while its tool executes in another goroutine. It is allocated for each call, because a tool may retain
// its context, and separately from the events, so that a sink that retains an event does not retain the context.
type invocation struct {
	callContext
	entry *entry
	args  []byte
	call  func(context.Context, lathe.Tool, json.RawMessage) (*lathe.Output, error) // Options.Around; nil: the method of the tool

	// These fields are set before back is closed.
	returned bool // false: it panicked or ended its goroutine
	out      *lathe.Output
	err      error // a *PanicError if returned is false
}

// newInvocation returns the invocation of c's tool. It does not call the tool.
func newInvocation(ctx context.Context, c *call) *invocation {
	return &invocation{entry: c.entry, call: c.w.r.opts.Around, args: revealTokens(c), callContext: callContext{
		back: make(chan *event.ToolCallProgress, 1), parent: lathe.WithCallMeta(ctx, c.meta()), deadline: c.deadline, scope: c.scope, done: make(chan struct{})}}
}

// run calls the tool. No other function calls tools.
func (i *invocation) run() {
	defer i.finish()
	ctx := context.Context(&i.callContext)
	if i.call != nil {
		i.out, i.err = i.call(ctx, i.entry.tool, i.args)
	} else {
		i.out, i.err = i.entry.tool.Call(ctx, i.args)
	}
	i.returned = true
}

// finish is called however the tool ended: it returned, panicked, or ended its goroutine.
func (i *invocation) finish() {
	if !i.returned {
		_ = recover()
		i.err = &PanicError{Stack: stack.Functions()}
	}
	i.entry.leave()
	i.end(context.Canceled)
	close(i.back)
}

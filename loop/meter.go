package loop

import (
	"context"

	"github.com/lathe-run/lathe"
)

// A Meter admits model calls and counts what they use. The loop asks it before each attempt of a model call. Its methods may be called
// from several goroutines at once.
type Meter interface {
	// Admit returns the admission of a call that is about to be made, whose request it must not change. wire is that of the model's
	// server. An error ends the run: one of code budget_exhausted or price_unknown with the reason budget_exhausted.
	Admit(ctx context.Context, run *lathe.RunInfo, req *lathe.Request, wire lathe.Wire) (*Admission, error)
}

// An Admission admits one model call.
type Admission struct {
	// MaxTokens is the token limit that the request is sent with, which has none of its own; 0: it is sent as it is.
	MaxTokens int
	// Repeat is called before the request is sent again after an attempt that failed with err; nil: nothing is called. Its error
	// ends the call, as one of Admit does.
	Repeat func(ctx context.Context, err error) error
	// Settle is called once, before the end of the call is published: with what the model said, or with nil and the error of a
	// call that failed or was stopped, which may be nil. ctx is that of the run and may be done.
	Settle func(ctx context.Context, finish *lathe.Finish, err error)
}

// admit asks the meter, and returns the request to send and a function that settles. ok is false if the call is refused.
func (c *modelCall) admit(ctx context.Context) (req *lathe.Request, settle func(), ok bool) {
	r := c.run
	c.repeat = nil
	if r.loop.opts.Meter == nil {
		return &r.req, func() {}, true
	}
	a, err := r.loop.opts.Meter.Admit(ctx, &r.info, &r.req, r.loop.Wire())
	if err != nil {
		c.err = err
		return nil, nil, false
	}
	if a.Repeat != nil {
		c.repeat = func(err error) error { return a.Repeat(ctx, err) }
	}
	req = &r.req
	if a.MaxTokens > 0 {
		limited := r.req // the hash of the prompt is of what the caller asked for
		limited.Sampling.MaxTokens = &a.MaxTokens
		if limited.Relay != nil && limited.Relay.Request != nil {
			relay := *limited.Relay
			relay.Request = nil // it has no limit
			limited.Relay = &relay
		}
		req = &limited
	}
	return req, func() { a.Settle(ctx, c.finish, c.err) }, true
}

// refusedByMeter reports whether err is that of a meter that admits no call.
func refusedByMeter(err error) bool {
	code := lathe.CodeOf(err)
	return code == lathe.CodeBudgetExhausted || code == lathe.CodePriceUnknown
}

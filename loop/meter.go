package loop

import (
	"context"

	"github.com/lathe-run/lathe"
)

// A Meter counts the usage of model calls and refuses those beyond a budget. It may be called from several goroutines at once.
type Meter interface {
	// Admit is called before each model call, and returns the permission for it. It must not change req. wire is that of the model's server.
	// An error ends the run, with reason budget_exhausted if its code is budget_exhausted or price_unknown.
	Admit(ctx context.Context, run *lathe.RunInfo, req *lathe.Request, wire lathe.Wire) (*Admission, error)
}

// An Admission is the permission to make one model call.
type Admission struct {
	// MaxTokens, if not 0, is sent as the maximum number of output tokens, in place of the one in the request. 0: the request is sent
	// unchanged.
	MaxTokens int
	// Repeat is called before the request is sent again after an attempt that failed with err; nil: not called. Its error ends the model
	// call, as an error of Admit does.
	Repeat func(ctx context.Context, err error) error
	// Settle is called once, before the ModelCallFinished event: with the finish of the model, or with a nil finish and the error of a
	// model call that failed or was stopped, which may be nil, too. ctx is that of the run and may be done. Required.
	Settle func(ctx context.Context, finish *lathe.Finish, err error)
}

// admit requests the admission of a model call. It returns the request to send, and a function that calls Settle. ok is false if the meter
// refuses.
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
		limited := r.req // a copy: the hash of the prompt is that of the caller's request
		limited.Sampling.MaxTokens = &a.MaxTokens
		if limited.Relay != nil && limited.Relay.Request != nil {
			relay := *limited.Relay
			relay.Request = nil // the client's bytes do not contain the limit
			limited.Relay = &relay
		}
		req = &limited
	}
	return req, func() { a.Settle(ctx, c.finish, c.err) }, true
}

// refusedByMeter reports whether err is a refusal of a meter.
func refusedByMeter(err error) bool {
	code := lathe.CodeOf(err)
	return code == lathe.CodeBudgetExhausted || code == lathe.CodePriceUnknown
}

package loop

import (
	"context"

	"github.com/lathe-run/lathe"
)

// A Meter counts the usage of model calls and refuses model calls beyond a budget. It may be called from several goroutines at once.
type Meter interface {
	// Admit is called before each model call. It returns the permission for the call, or an error, which ends the run: with reason
	// budget_exhausted if the code of the error is budget_exhausted or price_unknown. Admit must not change req. wire is the wire of the
	// model's server.
	Admit(ctx context.Context, run *lathe.RunInfo, req *lathe.Request, wire lathe.Wire) (*Admission, error)
}

// An Admission is the permission to make one model call.
type Admission struct {
	// MaxTokens, if not 0, replaces the maximum number of output tokens in the request.
	MaxTokens int
	// Repeat, if not nil, is called before the request is sent again after an attempt that failed with err. If it returns an error, the
	// model call ends with that error, as with an error of Admit.
	Repeat func(ctx context.Context, err error) error
	// Settle is called once, before the ModelCallFinished event, and must not be nil. If the model call succeeded, finish is its result.
	// Otherwise finish is nil, and err is the error of the call, or nil if the caller stopped it. ctx is that of the run and may be done.
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

// Package recording has the JSON form of the results of model calls that are recorded and replayed.
package recording

import (
	"errors"
	"time"

	"github.com/lathe-run/lathe"
)

// A Result is the result of one model call: one of Finish and Failure is set. Members are added, never renamed.
type Result struct {
	Finish  *Finish  `json:"finish,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
}

// A Finish is the end of a model call that succeeded.
type Finish struct {
	Message   lathe.Message      `json:"message"`
	Reason    lathe.FinishReason `json:"reason"`
	RawReason string             `json:"raw_reason,omitempty"`
	Usage     lathe.Usage        `json:"usage"`
	Model     string             `json:"model,omitempty"`
	Cost      *float64           `json:"provider_cost,omitempty"`
	Faults    []lathe.Fault      `json:"faults,omitempty"`
}

// A Failure is the error of a model server.
type Failure struct {
	Code         lathe.Code         `json:"code"`
	Op           string             `json:"op"`
	Kind         lathe.UpstreamKind `json:"kind"`
	Status       int                `json:"status,omitempty"`
	ProviderCode string             `json:"provider_code,omitempty"`
	Message      string             `json:"message,omitempty"`
	Connect      bool               `json:"connect,omitempty"`
	RetryAfter   time.Duration      `json:"retry_after,omitempty"`
}

// Of returns the result that a delta or an error of a model is. ok is false for deltas before the end and for errors that are not of a model
// server.
func Of(d lathe.Delta, err error) (r Result, ok bool) {
	var up *lathe.UpstreamError
	var outer *lathe.Error
	switch {
	case err == nil && d.Kind == lathe.DeltaFinish:
		f := d.Finish
		r.Finish = &Finish{f.Message, f.Reason, f.RawReason, f.Usage, f.Model, f.ProviderCost, f.Faults}
	case errors.As(err, &up) && errors.As(err, &outer):
		r.Failure = &Failure{outer.Code, outer.Op, up.Kind, up.Status, up.ProviderCode, up.Message, up.Connect, up.RetryAfter}
	default:
		return r, false
	}
	return r, true
}

// Replay returns the last delta of the model call, or its error; neither if the result is empty.
func (r *Result) Replay() (lathe.Delta, error) {
	switch {
	case r.Failure != nil:
		f := r.Failure
		return lathe.Delta{}, f.Code.Wrap(f.Op, &lathe.UpstreamError{Kind: f.Kind, Status: f.Status,
			ProviderCode: f.ProviderCode, Message: f.Message, Connect: f.Connect, RetryAfter: f.RetryAfter})
	case r.Finish != nil:
		f := r.Finish
		return lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Message: f.Message, Reason: f.Reason, RawReason: f.RawReason,
			Usage: f.Usage, Model: f.Model, ProviderCost: f.Cost, Faults: f.Faults}}, nil
	}
	return lathe.Delta{}, nil
}

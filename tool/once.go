package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/text"
)

// A CallError is the reason why [Runner.Call] returned no output. It is the Err of a *[lathe.Error] with the code of the call.
type CallError struct {
	// Detail is the error object that a model would receive, with the code, a text and details of the code: violations of the schema, the
	// limit, the reason of the policy.
	Detail json.RawMessage
	Limit  string // config key of the limit that ended the call; "": another cause
	Rule   string // rule of the policy's verdict; "" if the policy did not refuse the call
	Cause  string // text for operators
	// Output is the output of a tool that reported its failure by an output, reduced to its allowlist; nil for any other failure.
	Output *lathe.Output
	// Err is the error that the tool returned; nil if it returned none. Error does not include it, because it may contain arguments or
	// secrets.
	Err error
}

// Error returns the cause, the limit, the rule or the text of the code: the first of them that is set.
func (e *CallError) Error() string {
	switch {
	case e.Cause != "":
		return e.Cause
	case e.Limit != "":
		return "limit " + e.Limit
	case e.Rule != "":
		return "policy rule " + e.Rule
	}
	if text, ok := rawjson.Get(e.Detail, "message"); ok {
		if plain, err := rawjson.AppendUnquote(nil, text); err == nil {
			return string(plain)
		}
	}
	return "the tool failed"
}

// Unwrap returns Err.
func (e *CallError) Unwrap() error { return e.Err }

// Call makes one call of the named tool outside of a run, with every stage of a call by a model: schema, policy, approval, limits,
// deadline, journal, redaction. args is a JSON object; nil is {}. The caller owns the output. Its Data is JSON, reduced by the allowlist of
// the tool and the limits on outputs.
//
// The error is a *[lathe.Error] with the code of the call; its Err is a *[CallError]. If the approver answers later, the error wraps
// [lathe.ErrPending] and the tool was not called: a program that waits for such answers uses [Runner.Begin] and [Work.Execute], which can
// resume the call.
//
// For policies and limits, each Call is a run of its own, without a principal and without events.
func (r *Runner) Call(ctx context.Context, name string, args json.RawMessage) (*lathe.Output, error) {
	w := r.Begin(&lathe.RunInfo{RunID: r.opts.NewID("run_")}, nil)
	c := call{w: w, emit: func(event.Data) {}}
	w.begin(ctx, &c, 1, &Call{ToolCall: lathe.ToolCall{ID: r.opts.NewID("call_"), Name: name, Arguments: string(args)}}, false)
	runCall(ctx, &c)
	return c.result()
}

// result returns the output or the error of a call to a Go caller.
func (c *call) result() (*lathe.Output, error) {
	wrap := func(code lathe.Code, err error) (*lathe.Output, error) {
		return nil, code.Wrap("tool: call "+c.tool, err)
	}
	switch {
	case c.parked != nil:
		return wrap(lathe.CodeApprovalDenied, lathe.ErrPending)
	case c.client && c.code == "":
		return wrap(lathe.CodeUnknownTool, fmt.Errorf("%s is executed by the client", c.tool))
	case c.code == "":
		return c.shown(), nil
	}
	e := &CallError{Detail: c.appendError(nil), Limit: c.limitKey, Cause: text.Cut(c.cause, maxCause), Err: c.err}
	switch c.code {
	case lathe.CodePolicyDenied, lathe.CodeApprovalDenied, lathe.CodeApprovalExpired:
		e.Rule = c.verdict.Rule
	}
	if c.toolCode != "" {
		e.Output = c.shown()
	}
	return wrap(c.code, e)
}

// shown returns a copy of the output for a model.
func (c *call) shown() *lathe.Output {
	out := &lathe.Output{Blobs: c.blobs, IsError: c.toolCode != "", Code: c.toolCode, RC: c.rc, Cause: c.cause, Run: c.child}
	switch {
	case c.text:
		out.Data = rawjson.AppendQuote(nil, string(c.data))
	case len(c.data) > 0:
		out.Data = bytes.Clone(c.data)
	}
	return out
}

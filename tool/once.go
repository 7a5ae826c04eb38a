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

// A CallError says why [Runner.Call] returned no output. It is the Err of a *[lathe.Error] that has the code of the call.
type CallError struct {
	// Detail is the JSON object that a model would receive as the result: the code, a message, and details such as the violations of the
	// schema, the exceeded limit or the policy's reason.
	Detail json.RawMessage
	Limit  string // config key of the limit that ended the call; "": none
	Rule   string // rule of the policy that refused the call; "": the policy did not refuse it
	Cause  string // text for operators, of at most 200 bytes; "": none
	// Output is the output of a tool that reported its failure by [lathe.Output].IsError, reduced to the allowlist; nil for any other
	// failure.
	Output *lathe.Output
	// Err is the error that the tool returned; nil if it returned none. Error omits its text, which may contain arguments or secrets.
	Err error
}

// Error returns the first of these that is set: Cause, the limit, the rule, the message in Detail.
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

// Call makes one call of the named tool outside of a run. The call passes all checks of a call by a model: schema, policy, approval, limits,
// deadline, journal and redaction. args is a JSON object; nil is {}. Data of the output is JSON, reduced to the tool's allowlist; an output
// above max_tool_output_bytes is an error or truncated, as [lathe.Settings].OversizeOutput says. The output belongs to the caller.
//
// The error is a *[lathe.Error] with the code of the call, whose Err is a *[CallError]. There are two exceptions. If the approver will answer
// later, the code is approval_denied, and the error wraps [lathe.ErrPending]: the tool was not called. For a tool of [lathe.OwnerClient] the
// code is unknown_tool. A program that waits for approvals uses [Runner.Begin] and [Work.Execute] instead, which can resume the call.
//
// For policies and limits, each Call is a run of its own with a generated id, no principal and no events.
func (r *Runner) Call(ctx context.Context, name string, args json.RawMessage) (*lathe.Output, error) {
	w := r.Begin(&lathe.RunInfo{RunID: r.opts.NewID("run_")}, nil)
	c := call{w: w, emit: func(event.Data) {}}
	w.begin(ctx, &c, 1, &Call{ToolCall: lathe.ToolCall{ID: r.opts.NewID("call_"), Name: name, Arguments: string(args)}})
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

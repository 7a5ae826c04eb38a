// Package agenttool makes an agent a tool: a call starts a run of its own, with its own model, instructions, a subset of
// the caller's tools and narrower limits, and the answer of that run is the result of the call.
//
// The run that a call starts never has more than the run that makes the call: only tools that the caller's run offers, and
// only what is left of its limits on calls, tokens and cost. What it spends counts against the caller's limits. Its depth is
// one more than the caller's, and max_depth bounds it. Events link the two: RunStarted names the parent run and call,
// ToolCallExecuted names the child run.
package agenttool

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/tool"
)

// origin is the origin of the tools of this package, as listings and errors name it.
const origin = "run"

// AllTools, as the one entry of [Options].Tools, stands for every tool of the caller's run.
const AllTools = "*"

// defaultTimeout bounds a call where the options do not.
const defaultTimeout = 5 * time.Minute

// A Start runs in to its end and returns how it ended. It is [loop.Loop.Do] of some loop, or the Run of an engine with one.
// It is called from several goroutines at once.
type Start func(ctx context.Context, in *loop.Input) (*event.Result, error)

// Options describe an agent. They are copied.
type Options struct {
	// Instructions is the system text of the agent's runs; "": none.
	Instructions string
	// Tools names the tools that the agent may call, of those that the caller's run offers: nil or empty is none, and the
	// single entry [AllTools] is all of them. A name that the caller's run does not offer is left out.
	Tools []string
	// Limits narrow those of the caller's run; a zero field leaves what the caller has left.
	Limits lathe.Limits
	// Settings replace those of the loop that Start uses; nil: they stay.
	Settings *lathe.Settings
	// Effect is that of a call: [lathe.Writes] where it is undeclared. An agent that is declared [lathe.ReadOnly] or
	// [lathe.Idempotent] gets no tool with a stronger effect, so that its calls may be repeated.
	Effect lathe.Effect
	// Timeout bounds one call; 0: defaultTimeout. The deadline of the caller's run holds as well.
	Timeout time.Duration
	// Target is kept with the runs: the name of the model entry that answers.
	Target string
	// Labels are those of the tool, for policies. What the agent's own tools touch is added as they are called.
	Labels []string
}

// A Tool is an agent as a tool. It may be called from several goroutines at once.
type Tool struct {
	spec  lathe.ToolSpec
	start Start
	opts  Options
}

var (
	_ lathe.Tool      = (*Tool)(nil)
	_ tool.RunStarter = (*Tool)(nil)
)

var schema = json.RawMessage(`{"type":"object","properties":{"task":{"type":"string","minLength":1,` +
	`"description":"What the agent is to do, with everything it needs to know: it does not see this conversation."}},` +
	`"required":["task"],"additionalProperties":false}`)

// New makes a tool whose calls are runs. name and description are those that models see. Its one argument is task, a text.
func New(name, description string, start Start, opts *Options) (*Tool, error) {
	if start == nil {
		return nil, invalid(errors.New("no function to start runs with"))
	}
	t := &Tool{start: start}
	if opts != nil {
		t.opts = *opts
		t.opts.Tools = slices.Clone(opts.Tools)
	}
	if slices.Contains(t.opts.Tools, AllTools) && len(t.opts.Tools) > 1 {
		return nil, invalid(errors.New("the tools are either * or names, not both"))
	}
	if t.opts.Timeout < 0 {
		return nil, invalid(errors.New("the timeout is negative"))
	}
	if t.opts.Timeout == 0 {
		t.opts.Timeout = defaultTimeout
	}
	if t.opts.Settings != nil {
		s := *t.opts.Settings
		t.opts.Settings = &s
	}
	t.spec = lathe.ToolSpec{Name: name, Description: description, Schema: schema, Effect: t.opts.Effect, Allowlist: []string{"*"},
		Timeout: t.opts.Timeout, Origin: origin, Labels: slices.Clone(t.opts.Labels)}
	return t, nil
}

func invalid(err error) error {
	return &lathe.Error{Code: lathe.CodeInvalidConfig, Op: "agenttool: new", Err: err}
}

// Spec implements [lathe.Tool].
func (t *Tool) Spec() *lathe.ToolSpec { return &t.spec }

// StartsRun implements [tool.RunStarter].
func (t *Tool) StartsRun() bool { return true }

// Call implements [lathe.Tool]. The output is the answer, a string; where the run ended without one, it is an error with
// the reason, a detail that says what the caller can do, and the answer as far as there is one.
func (t *Tool) Call(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	var in struct {
		Task string `json:"task"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, err // the runner has checked args against the schema
	}
	scope := tool.ScopeFrom(ctx)
	if scope == nil {
		return nil, errors.New("agenttool: the call is not one of a runner")
	}
	if scope.Spent != "" {
		return failed(lathe.CodeToolCallLimit, nil, "Nothing is left of "+scope.Spent+" for another agent: answer from what is known."), nil
	}
	input := t.input(ctx, scope, in.Task)
	res, err := t.start(ctx, input)
	if res == nil {
		return nil, errors.Join(errors.New("agenttool: the run has no result"), err)
	}
	if ctx.Err() != nil && res.Reason == lathe.ReasonCancelled { // what it spent counts all the same
		return &lathe.Output{Run: child(input, res)}, ctx.Err()
	}
	if res.Reason != lathe.ReasonAnswered {
		out := failed(lathe.CodeExecutionFailed, res, advice(res.Reason))
		out.Run = child(input, res)
		return out, nil
	}
	return &lathe.Output{Data: rawjson.AppendQuote(nil, res.Answer), Run: child(input, res)}, nil
}

// input is what the run starts from.
func (t *Tool) input(ctx context.Context, scope *tool.Scope, task string) *loop.Input {
	in := &loop.Input{Allow: t.allowed(scope.Tools), Settings: t.opts.Settings, Target: t.opts.Target}
	if meta := lathe.CallMetaFrom(ctx); meta != nil { // always, for a call of a runner
		in.Run = lathe.RunInfo{RequestID: meta.RequestID, Principal: meta.Principal, Profile: meta.Profile}
	}
	if t.opts.Instructions != "" {
		in.Messages = append(in.Messages, lathe.System(t.opts.Instructions))
	}
	in.Messages = append(in.Messages, lathe.User(task))
	limits, _ := scope.Limits.Narrow(t.opts.Limits)
	in.Limits = &limits
	return in
}

// allowed returns the names of the caller's tools that the agent may call.
func (t *Tool) allowed(offered []*lathe.ToolSpec) []string {
	names := []string{} // not nil, which would be all
	all := slices.Equal(t.opts.Tools, []string{AllTools})
	for _, spec := range offered {
		if spec.Name != t.spec.Name && (all || slices.Contains(t.opts.Tools, spec.Name)) && weight(spec.Effect) <= weight(t.opts.Effect) {
			names = append(names, spec.Name)
		}
	}
	return names
}

// weight orders effects by what a repeated call may do.
func weight(e lathe.Effect) int {
	switch e {
	case lathe.ReadOnly:
		return 0
	case lathe.Idempotent:
		return 1
	default:
		return 2
	}
}

// child reports the run to the caller's.
func child(in *loop.Input, res *event.Result) *lathe.ChildRun {
	c := &lathe.ChildRun{RunID: in.Run.RunID, Usage: res.Usage, Cost: res.Cost}
	for i := range res.Trace {
		for _, call := range res.Trace[i].Calls {
			if call.Executed && !slices.Contains(c.Tools, call.Tool) {
				c.Tools = append(c.Tools, call.Tool)
			}
		}
	}
	return c
}

// advice says what the caller's model can do about a run that ended without a full answer.
func advice(reason lathe.Reason) string {
	switch reason {
	case lathe.ReasonMaxIterations, lathe.ReasonMaxToolCalls, lathe.ReasonRunTimeout, lathe.ReasonBudgetExceeded, lathe.ReasonToolLoop, lathe.ReasonLength:
		return "The agent reached a limit. Ask for less, or use what it found."
	case lathe.ReasonAwaitingApproval, lathe.ReasonAwaitingToolResults:
		return "The agent needs an approval that it cannot wait for. Make the call yourself."
	default:
		return "The agent failed. Try another way."
	}
}

func failed(code lathe.Code, res *event.Result, text string) *lathe.Output {
	return &lathe.Output{IsError: true, Code: code, Data: detail(res, text)}
}

// detail is the JSON object that the caller's model sees of a failure.
func detail(res *event.Result, text string) json.RawMessage {
	d := struct {
		Reason lathe.Reason `json:"reason,omitempty"`
		Detail string       `json:"detail,omitempty"`
		Answer string       `json:"answer,omitempty"`
	}{Detail: text}
	if res != nil {
		d.Reason, d.Answer = res.Reason, res.Answer
	}
	b, err := json.Marshal(d)
	if err != nil {
		panic(err) // strings marshal
	}
	return b
}

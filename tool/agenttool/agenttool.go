// Package agenttool makes an agent a tool: a call starts a run with its own model, instructions, a subset of the caller's tools and
// narrower limits. The answer of that run is the result of the call.
//
// The started run never has more than the calling run: only tools that the calling run offers, and only the remaining amounts of its limits
// on calls, tokens and cost. Its usage counts against the limits of the calling run. Its depth is 1 more than the caller's, and max_depth
// limits it. Events link the two runs: RunStarted contains the parent run and call, ToolCallExecuted the child run.
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
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/tool"
)

// origin is the origin of the tools of this package.
const origin = "run"

// AllTools, as the only entry of [Options].Tools, allows every tool of the caller's run.
const AllTools = "*"

// defaultTimeout is the default of Options.Timeout.
const defaultTimeout = 5 * time.Minute

// A Start executes the run that in describes to its end, and returns the result. [loop.Loop.Do] and the method Run of an engine are such
// functions. A Start must return a result or an error; if it returns both, the error is ignored. It may set in.Run.RunID, so that the
// events of the call contain the id of the run. It may be called from several goroutines at once.
type Start func(ctx context.Context, in *loop.Input) (*event.Result, error)

// Options configure an agent that is called as a tool. [New] copies them.
type Options struct {
	// Instructions is the system message of the agent's runs; "": none.
	Instructions string
	// Tools are the names of the tools that the agent may call, if the caller's run offers them; others are ignored, and so is this tool
	// itself. Empty: none; the single entry [AllTools]: all.
	Tools []string
	// Limits lower the limits that remain to the caller's run; a zero field lowers nothing.
	Limits lathe.Limits
	// Settings are the settings of the agent's runs; nil: those of the loop that Start uses.
	Settings *lathe.Settings
	// Effect is the effect of a call; undeclared counts as [lathe.Writes]. A [lathe.ReadOnly] or [lathe.Idempotent] agent gets no tool with
	// a stronger effect, so that its calls may be repeated.
	Effect lathe.Effect
	// Timeout is the timeout of one call; 0: 5 minutes. It replaces tool_timeout of the caller's run. The deadline of the caller's run
	// applies as well.
	Timeout time.Duration
	// Target is the model entry that answers, stored with the agent's runs; "": none.
	Target string
	// Labels are the labels of this tool for policies. Policies of the caller's run also see the tools that the agent has called.
	Labels []string
}

// A Tool is an agent that is called as a tool: each call starts a run with the task and returns its answer. It may be called from several
// goroutines at once.
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

// New returns a tool whose calls start runs. name and description are its definition for models; its only argument is task, a string. opts
// may be nil: an agent without tools that counts as one that writes. The error has the code invalid_config: start is nil, Tools contains
// [AllTools] beside names, or Timeout is negative. An invalid name is an error of [tool.Set.Add].
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
		t.opts.Settings = new(*t.opts.Settings)
	}
	t.spec = lathe.ToolSpec{Name: name, Description: description, Schema: schema, Effect: t.opts.Effect, Allowlist: []string{"*"},
		Timeout: t.opts.Timeout, Origin: origin, Labels: slices.Clone(t.opts.Labels)}
	return t, nil
}

func invalid(err error) error {
	return lathe.CodeInvalidConfig.Wrap("agenttool: new", err)
}

// Spec implements [lathe.Tool].
func (t *Tool) Spec() *lathe.ToolSpec { return &t.spec }

// StartsRun implements [tool.RunStarter]. It returns true.
func (t *Tool) StartsRun() bool { return true }

// Call implements [lathe.Tool]: it starts a run and waits for its end. The output is the answer as a JSON string. If the run ends without
// an answer, the output has IsError and contains the reason, what the caller's model can do next, and the partial answer, unless it is
// empty. Call returns an error if it is not called by a [tool.Runner].
func (t *Tool) Call(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	var in struct {
		Task string `json:"task"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, err // cannot happen: the runner has checked args against the schema
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
	if ctx.Err() != nil && res.Reason == lathe.ReasonCancelled { // its usage counts although the call was cancelled
		return &lathe.Output{Run: child(input, res)}, ctx.Err()
	}
	if res.Reason != lathe.ReasonAnswered {
		out := failed(lathe.CodeExecutionFailed, res, advice(res.Reason))
		out.Run = child(input, res)
		return out, nil
	}
	return &lathe.Output{Data: rawjson.AppendQuote(nil, res.Answer), Run: child(input, res)}, nil
}

// input returns the input of the run.
func (t *Tool) input(ctx context.Context, scope *tool.Scope, task string) *loop.Input {
	in := runinput.With(&loop.Input{Allow: t.allowed(scope.Tools), Settings: t.opts.Settings, Target: t.opts.Target}, runinput.Extra{AllowAbsent: true})
	if meta := lathe.CallMetaFrom(ctx); meta != nil { // always set in a call by a runner
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
	names := []string{} // not nil, which would mean all tools
	all := slices.Equal(t.opts.Tools, []string{AllTools})
	for _, spec := range offered {
		if spec.Name != t.spec.Name && (all || slices.Contains(t.opts.Tools, spec.Name)) && weight(spec.Effect) <= weight(t.opts.Effect) {
			names = append(names, spec.Name)
		}
	}
	return names
}

// weight returns the rank of an effect: higher if a repetition may change more.
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

// child returns the report on the run for the caller's run.
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

// advice returns the next step for the caller's model after a run without a full answer.
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

// failed returns the output for the caller's model of a run that failed; res is nil if none was started.
func failed(code lathe.Code, res *event.Result, text string) *lathe.Output {
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
		panic(err) // cannot happen: strings have a JSON form
	}
	return &lathe.Output{IsError: true, Code: code, Data: b}
}

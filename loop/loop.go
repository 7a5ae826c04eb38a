// Package loop calls a model and tools in turn until the model gives an answer. It yields events in order: RunStarted first, RunFinished
// last, each exactly once. It stores nothing and gives events no ids or times; package engine does.
//
// A limit ends a run with a reason, a trace and a history, never with an error. Unless the setting OnLimit is stop, the loop then makes one
// more model call, without tools and beyond the limit, for an answer from the results so far. After the time limit of the run it makes
// none.
//
// The result lists each tool of the runner that the model is not offered, with the reason, as [tool.Options] describes. Tools that the
// input excludes are not listed.
//
// However a run ends, each tool call in the history has exactly one result, in call order, except for the pending calls of a run that was
// parked or handed over. So the history can be sent to a model again.
package loop

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/internal/setting"
	"github.com/lathe-run/lathe/tool"
)

// ErrInterrupted is the cause with which a program that stops must cancel the contexts of its runs: these runs end with reason interrupted.
// A run whose context is cancelled with another cause ends with reason cancelled.
var ErrInterrupted = errors.New("the program is stopping")

// Options configure a loop. They are copied.
type Options struct {
	Settings lathe.Settings // all fields zero: the settings of the runner; else a zero field has its default
	Limits   lathe.Limits   // all fields zero: the limits of the runner; else a zero field has its default
	Sampling lathe.Sampling // zero: nothing is sent, so that the server's defaults apply
	// Overrides are additional members of each model request, as [lathe.Request].Overrides. They take precedence over those of an [Input].
	Overrides []lathe.Member
	// Model is the name of the model in requests; "": the default of the model.
	Model string
	// Agent is the name of the agent in ModelCallStarted and in the trace of the result; "": none.
	Agent string
	// Route, if not nil, selects the loop that makes the next model call, with its own runner, settings and limits, by the messages of the
	// conversation so far; nil: this loop makes all model calls. All loops that Route returns must have the same Route, and its result must
	// depend on messages alone, so that every process continues a stored run with the same loop. Limits count over the whole run; those of
	// the current loop apply.
	Route func(messages []lathe.Message) *Loop
	// Policy decides about each model call by its method Step; nil: all model calls are allowed. Any decision other than Allow ends the run
	// `budget_exceeded` at once, without another model call. The loop does not call Tool and Call of this policy: the policy of the runner
	// decides about tools.
	Policy lathe.Policy
	// Cost returns the price in US dollars of a model call with this usage. It takes precedence over a cost that the server reports, and is
	// not called if the server reports no usage. nil: the price is not known, and the cost that the server reports is used. Cost may be
	// called from several goroutines at once.
	Cost func(lathe.Usage) float64
	// Meter is called before each model call and may refuse the call; nil: no model call is refused.
	Meter Meter
	// Retention says what a store retains of the messages, texts and outputs of each run after its end; nil: all. The loop only records the
	// settings in RunStarted; the store applies them.
	Retention *Retention
	Now       func() time.Time // nil: time.Now
}

// A Loop runs conversations with one model and one runner. It may be used by several goroutines at once.
type Loop struct {
	model  lathe.Model
	runner *tool.Runner
	// counter, content and relays are the optional abilities of model.
	counter    TokenCounter   // nil: the model cannot count tokens
	content    ContentChecker // nil: the model accepts all content
	relays     lathe.Wire
	info       lathe.ModelInfo // in the form for events
	name       string          // the name of the model as configured or described; info.Model is its form for events
	opts       Options
	lastFormat atomic.Pointer[responseFormat] // the last parsed response format
	// retention is recorded in RunStarted; nil: none.
	retention *event.RunRetention
}

// New returns a loop. model and runner are required; opts may be nil. The error has the code invalid_config: model or runner is nil, or a
// setting or limit has an invalid value.
func New(model lathe.Model, runner *tool.Runner, opts *Options) (*Loop, error) {
	if model == nil || runner == nil {
		return nil, lathe.CodeInvalidConfig.Errorf("loop: new", "a model and a runner are required")
	}
	l := &Loop{model: model, runner: runner}
	if opts != nil {
		l.opts = *opts
	}
	if l.opts.Settings == (lathe.Settings{}) {
		l.opts.Settings = runner.Settings()
	}
	if l.opts.Limits == (lathe.Limits{}) {
		l.opts.Limits = runner.Limits()
	}
	if err := cmp.Or(checkSettings(&l.opts.Settings), setting.Check(&l.opts.Limits)); err != nil {
		return nil, lathe.CodeInvalidConfig.Wrap("loop: new", err)
	}
	if err := runner.Check(nil, &tool.RunOptions{Settings: &l.opts.Settings, Limits: &l.opts.Limits, Defer: true}); err != nil {
		return nil, lathe.CodeInvalidConfig.Wrap("loop: new", errors.Unwrap(err)) // the error within a *lathe.Error
	}
	if l.opts.Now == nil {
		l.opts.Now = time.Now
	}
	l.info = model.Describe()
	l.counter, _ = lathe.ModelAs[TokenCounter](model)
	l.content, _ = lathe.ModelAs[ContentChecker](model)
	if m, ok := lathe.ModelAs[Relayer](model); ok {
		l.relays = m.Relays()
	}
	if l.opts.Model != "" {
		l.info.Model = l.opts.Model
	}
	l.name = l.info.Model
	l.info.Model, l.info.Provider = label(l.info.Model), label(l.info.Provider)
	l.info.Dialect = dialectName(l.info.Dialect, "native")
	if l.opts.Retention != nil {
		l.retention = l.opts.Retention.RunRetention()
	}
	return l, nil
}

// Relays returns the wire whose bytes the loop's model passes to [lathe.Request].Relay, or "" if the model passes none.
func (l *Loop) Relays() lathe.Wire { return l.relays }

// Wire returns the wire of the model's server; [lathe.WireOpenAIChat] if the model names none.
func (l *Loop) Wire() lathe.Wire { return cmp.Or(l.info.Wire, lathe.WireOpenAIChat) }

// An Input is the start of one run. It must not change during the run.
type Input struct {
	// Run identifies the run. If the context belongs to a tool call, Depth is raised to at least 1 more than the depth of the calling run.
	// A run with more than [MaxLabels] labels, or with a label that is too long, ends at once with code invalid_request.
	Run lathe.RunInfo
	// Messages are the conversation so far, including system messages. At least one message is required. The loop does not change them.
	Messages []lathe.Message
	// ClientTools are tools that the caller will execute: a run that calls them ends with reason client_tool_calls, or is parked if Park is
	// set. A name that a tool of the runner has ends the run at once with code invalid_request.
	ClientTools []*lathe.ToolSpec
	// Allow names the tools of the runner that this run may use; nil: all tools. If the runner's set has no tool of such a name when the
	// run starts, the run ends with invalid_request. A resumed run accepts such names.
	Allow []string
	// Settings, Limits and Sampling, if not nil, replace those of the loop for this run as a whole: a zero field has its default, not the
	// value of the loop. An invalid value ends the run at once with code invalid_request.
	Settings *lathe.Settings
	Limits   *lathe.Limits
	Sampling *lathe.Sampling
	// Overrides are additional members of each model request. Those of the loop take precedence.
	Overrides []lathe.Member
	// Park makes the run resumable: its RunStarted then contains its input, as content (see package event). If the run waits for results of
	// client tools or for an approval, it is parked: its last event is a RunPaused with the Result, and there is no RunFinished. Without
	// Park, a run that waits for an approval ends with reason awaiting_approval: a RunFinished follows the RunPaused.
	Park bool
	// Target is stored with a resumable run. It is the name by which the caller finds the loop that can resume the run.
	Target string
	// Resume, if not nil, continues a run that was started with Park and is parked, or whose process stopped before its end. It is the
	// state after the stored events of that run. Of the other fields, only Answers is then used.
	Resume *State
	// Answers are the results of client tools, by call id, for a run with Resume. Calls without a result remain pending.
	Answers map[string]lathe.Output

	handedOver bool // Resume is the state of the same range of Run, in which another loop has executed the run so far

	extra runinput.Extra // of it, a run with Resume uses only Suspend, Suspended and Elapsed
}

func init() { runinput.Find = func(in any) *runinput.Extra { return &in.(*Input).extra } }

// Run executes a run and yields its events, of which only Turn and Data are set. The run is executed by the goroutine that ranges over the
// result; a second range starts a second run. If ctx is done, the run ends with reason cancelled, or interrupted if the cause is
// [ErrInterrupted]. If the caller stops the range early, the run is cancelled and no RunFinished is yielded. A panic of the model ends the
// run `internal`, with a [PanicError]. A panic in the body of the range is not recovered.
//
// The caller may retain the events, but must not change their data.
func (l *Loop) Run(ctx context.Context, in *Input) iter.Seq[event.Event] {
	return func(yield func(event.Event) bool) {
		if in == nil {
			in = &Input{}
		}
		for next := in; next != nil; {
			next = l.routed(next).newRun(next, yield).run(ctx)
		}
	}
}

// Do executes a run, as [Loop.Run] does, and returns its result. The error is [Failure] of the result: nil, unless the run failed or was
// cancelled. The result is nil only in a call by engine.Engine.Step, which executes a run in steps, if the run does not end in this step.
func (l *Loop) Do(ctx context.Context, in *Input) (*event.Result, error) {
	var res *event.Result
	for e := range l.Run(ctx, in) {
		if end := Ended(e.Data); end != nil {
			res = end
		}
	}
	return res, Failure(res)
}

// Ended returns the result of the run if d is the data of its last event: RunFinished, or the RunPaused of a parked run. It returns nil for
// other events, and for events that were decoded from JSON, because the JSON form does not contain the result.
func Ended(d event.Data) *event.Result {
	switch d := d.(type) {
	case *event.RunFinished:
		return d.Result
	case *event.RunPaused:
		return d.Result
	default: // not the last event
		return nil
	}
}

// Failure returns res.Err if the status of the run is "failed" or "cancelled", and nil otherwise: a run that was answered, limited or
// parked has no error. res may be nil.
func Failure(res *event.Result) error {
	if res == nil {
		return nil // suspended
	}
	switch res.Reason.Status() {
	case "failed", "cancelled":
		return res.Err
	}
	return nil
}

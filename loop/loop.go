// Package loop takes a model and tools in turn until the model is done. It yields what happened as
// events, in order: RunStarted first, RunFinished last, each exactly once. It stores nothing and
// stamps nothing; package engine does.
//
// A limit ends a run with a reason, a trace and a history, never with an error. Unless the setting
// OnLimit is stop, the loop makes one more model call, without tools and beyond the limit, for an
// answer from the results so far. It does not do so after the run's own time limit.
//
// However a run ends, each tool call in the history is answered exactly once, in call order, except
// the pending calls of a run that was parked or handed over. So the history can be sent to a model again.
package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/setting"
	"github.com/lathe-run/lathe/tool"
)

// ErrInterrupted, as the cause of a cancelled context, says that the program stops, and not that the caller cancelled the
// run. The run then ends `interrupted`.
var ErrInterrupted = errors.New("the program is stopping")

// Options say how a loop runs. They are copied.
type Options struct {
	Settings lathe.Settings // zero: those of the runner
	Limits   lathe.Limits   // zero: those of the runner
	Sampling lathe.Sampling
	// Overrides are further members of each model request.
	Overrides []lathe.Member
	// Model is the model name to ask for; empty: the model's own default.
	Model string
	// Policy is asked before each model call, through its Step method; nil: no step is denied.
	// Anything but Allow ends the run `budget_exceeded`, at once and without a closing call: what a
	// step's policy can see is what the run has spent. Tools are guarded by the runner's policy.
	Policy lathe.Policy
	// Cost returns what a model call with this usage costs, in US dollars; nil: the price of the model is not known, and a call
	// costs what its server reports. It is not called where a server reports no usage.
	Cost func(lathe.Usage) float64
	// Meter admits each model call; nil: all of them.
	Meter Meter
	// Retention is recorded with each run: what a store keeps of its content after it has ended. nil: all of it.
	Retention *Retention
	Now       func() time.Time // nil: time.Now
}

// A Loop runs conversations with one model and one runner. It may be used by several goroutines at once.
type Loop struct {
	model  lathe.Model
	runner *tool.Runner
	// counter, content and relays are the optional abilities of model.
	counter    TokenCounter   // nil: the model counts no tokens
	content    ContentChecker // nil: the model takes all content
	relays     lathe.Wire
	info       lathe.ModelInfo // as events say it
	name       string          // of the model, as it says it
	opts       Options
	lastFormat atomic.Pointer[responseFormat] // of the last run that had one
	// retention is what RunStarted says; nil: nothing.
	retention *event.RunRetention
}

// New returns a loop. opts may be nil. A setting or limit with a value that is not documented is an error of code
// invalid_config.
func New(model lathe.Model, runner *tool.Runner, opts *Options) (*Loop, error) {
	if model == nil || runner == nil {
		return nil, &lathe.Error{Code: lathe.CodeInvalidConfig, Op: "loop: new", Err: errors.New("a model and a runner are required")}
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
	if err := checkSettings(&l.opts.Settings); err != nil {
		return nil, &lathe.Error{Code: lathe.CodeInvalidConfig, Op: "loop: new", Err: err}
	}
	if err := setting.Check(&l.opts.Limits); err != nil {
		return nil, &lathe.Error{Code: lathe.CodeInvalidConfig, Op: "loop: new", Err: err}
	}
	if err := runner.Check(nil, &tool.RunOptions{Settings: &l.opts.Settings, Limits: &l.opts.Limits, Defer: true}); err != nil {
		return nil, &lathe.Error{Code: lathe.CodeInvalidConfig, Op: "loop: new", Err: errors.Unwrap(err)} // of a *lathe.Error
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

// Relays returns the wire whose bytes the loop's model passes to [Input].Relay, "" if it passes none.
func (l *Loop) Relays() lathe.Wire { return l.relays }

// Wire returns the wire of the model's server.
func (l *Loop) Wire() lathe.Wire { return cmp.Or(l.info.Wire, lathe.WireOpenAIChat) }

// An Input is what one run starts from. It must not change during the run.
type Input struct {
	// Run names the run. Its Depth is raised to one more than that of the run whose tool call the context belongs to. Its labels are bounded: a run
	// with more than [MaxLabels] of them, or with longer ones, ends at once as a bad request.
	Run lathe.RunInfo
	// Messages are the conversation so far, system text included, one message at least. They are not changed.
	Messages []lathe.Message
	// ClientTools are tools that the caller will execute.
	ClientTools []*lathe.ToolSpec
	// Allow names the tools of the runner that this run may use; nil: all of them.
	Allow []string
	// Settings, Limits and Sampling, when set, replace those of the loop for this run.
	Settings *lathe.Settings
	Limits   *lathe.Limits
	Sampling *lathe.Sampling
	// Overrides are further members of each model request. Those of the loop have precedence.
	Overrides []lathe.Member
	// HostedTools are tools that the model's server executes itself: see [lathe.Request].
	HostedTools []json.RawMessage
	// Betas and APIVersion are those of each model request: see [lathe.Request].
	Betas      []string
	APIVersion string
	// User is an opaque end-user id that the wire may carry.
	User string
	// Relay receives the model's answer as its server wrote it, if its Wire is that of [Loop.Relays]. Its caller has
	// seen the calls of the answer: all of them are the caller's to execute, whatever their names, and the run has one turn.
	Relay *lathe.Relay
	// Park makes a run that can be resumed. When it waits for results of client tools or for an
	// approval, RunPaused is its last event and has the Result; there is no RunFinished then. Its
	// RunStarted says in content what it was started from.
	Park bool
	// HandOver ends a run that can be resumed when nothing but results of the caller's tools is pending, as a run that
	// cannot be resumed ends. It has no effect once the run is resumed.
	HandOver bool
	// Continues names the run of which the last TakenOver messages are: what its model said and what its tools
	// returned, after the messages that both runs start from. The calls among them count as calls of this run
	// for everything but limits.
	Continues string
	TakenOver int
	// Replays names the run whose conversation this run repeats; it is recorded in RunStarted, and has no other effect.
	Replays string
	// Executor names the engine that executes the run step by step; it is recorded in RunStarted, and has no other effect here.
	// [engine.Engine.Accept] sets it.
	Executor string
	// Client is stored with a run that can be resumed, as content, for the caller: see [State.Client]. It must be JSON.
	Client json.RawMessage
	// Target is stored with a run that can be resumed: the name by which the caller finds the run's loop when it resumes it.
	Target string
	// Resume continues a run that was started with Park, from the state that its events fold to: a parked run, or one whose
	// process ended in the middle. The only other fields that are then read are Answers, Suspend, Suspended and Elapsed.
	Resume *State
	// Suspend, when set, is called before each model call, with nil, and before each tool call that may have an effect, with
	// the call and the definition of its tool, as of [tool.RunOptions].Suspend. If it returns true, the range ends there, without
	// a further event and without a result: the state that the events fold to can be resumed. The loop's own request for an
	// answer belongs to the step before it: Suspend is not called for it.
	Suspend func(call *lathe.ToolCall, spec *lathe.ToolSpec) bool
	// Suspended says that Resume is the state in which Suspend ended the run, and that nothing has happened since: no
	// RunResumed is then yielded.
	Suspended bool
	// Elapsed is how long the run was executed before it was suspended. It counts for the run's time limit and latency.
	Elapsed time.Duration
	// Answers are the results of calls that clients executed, by the id of the call. Calls without a result stay pending.
	Answers map[string]lathe.Output
}

// Run runs in to its end and yields its events, with Turn and Data filled. It works while it is
// ranged over, on the goroutine that ranges; each range is a run of its own. Stopping early
// cancels the run, and then no RunFinished is yielded. A model that panics ends the run `internal`, with a [PanicError];
// a panic of the range's body goes through.
//
// The caller may keep the events. Each delta costs one allocation; [Loop.RunReusing] saves it.
func (l *Loop) Run(ctx context.Context, in *Input) iter.Seq[event.Event] {
	return func(yield func(event.Event) bool) {
		l.RunReusing(ctx, in)(func(e event.Event) bool { return yield(e.Clone()) })
	}
}

// RunReusing is [Loop.Run] without an allocation per delta: the data of a delta event ([event.IsDelta]) is overwritten with
// the next one's. A caller must not keep it beyond the body of its range; [event.Event.Clone] returns one to keep.
func (l *Loop) RunReusing(ctx context.Context, in *Input) iter.Seq[event.Event] {
	return func(yield func(event.Event) bool) {
		l.newRun(in, yield).run(ctx)
	}
}

// Do runs in to its end. The result is nil only if Suspend has ended the run; the error is its Err when the run failed or
// was cancelled, and nil when it was answered, parked, handed over or limited.
func (l *Loop) Do(ctx context.Context, in *Input) (*event.Result, error) {
	var res *event.Result
	for e := range l.RunReusing(ctx, in) {
		if end := Ended(e.Data); end != nil {
			res = end
		}
	}
	return res, Failure(res)
}

// Ended returns the result of a run from its last event: its RunFinished, or the RunPaused of a run
// that can be resumed. Of other events it is nil.
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

// Failure returns the error of a run that failed or was cancelled, else nil. res may be nil.
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

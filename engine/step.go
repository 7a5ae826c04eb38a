package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/loop"
)

// StepOptions determine what [Engine.Step] does. The zero value executes the first step after [Engine.Accept]; for a later step, set After.
// If Cancel is true, Resume and Answers have no effect.
type StepOptions struct {
	// After is the LastID of the last [Step] of the run that the caller has received; 0: none. If the log contains later events, Step
	// assumes that a process stopped in the middle of a step: it resumes the run as [Engine.Resume] does, with a RunResumed event. After 5
	// such resumes without progress it parks the run with reason `interrupted`, unless Cancel is true.
	After int64
	// Settle makes the step start no model call and no tool call. The step only gives results to the calls that an earlier process may have
	// started, by the rules of [Engine.Resume], and suspends the run.
	Settle bool
	// Cancel ends the run, as [Engine.Cancel] does.
	Cancel bool
	// Elapsed is the time that the steps of the run have taken so far. It counts for the time limit of the run.
	Elapsed time.Duration
	// Resume resumes a run that was parked with reason `interrupted`; without it, Step changes nothing in such a run.
	Resume bool
	// Answers are the results of calls that clients executed, by call id; nil: none. Calls without a result remain pending.
	Answers map[string]lathe.Output
	// Sinks receive the events of this step after the sinks of the engine.
	Sinks []event.Sink
}

// A Step is what [Engine.Step] returns: the state of the run after the step, and the step that follows. It contains no content of the run.
type Step struct {
	LastID int64 // ID of the last event of the run
	// Reason is the reason why the run has ended or is parked; "": the run is suspended before the step Next. Status is the status that
	// belongs to Reason: `parked` for a parked run.
	Reason lathe.Reason
	Status string
	// Next is the step that follows; nil: the run has ended or is parked.
	Next *NextStep
	// Waiting are the calls that a parked run waits for; nil: the run is not parked, or waits for no call.
	Waiting []Waiting
}

// NextStep is the model call or the tool call that a run does next.
type NextStep struct {
	CallID string // id of the tool call; "": a model call
	// Tool is the name of the called tool, as in the loop's runner, and Effect is its effect. Tool is "" for a model call, and for a call
	// without effect, such as one of an unknown tool.
	Tool   string
	Effect lathe.Effect
}

// Writes reports whether the step may have an effect that must not be repeated.
func (n *NextStep) Writes() bool {
	return n.Tool != "" && n.Effect != lathe.ReadOnly && n.Effect != lathe.Idempotent
}

// Waiting is a call whose result or approval a parked run waits for.
type Waiting struct {
	CallID string
	// Digest identifies the requested approval; "": the call waits for the result of a client's tool, or for another call.
	Digest    string
	ExpiresAt time.Time // when the request for approval expires; zero if Digest is ""
}

// Accept stores the first event of a run that Step will execute, and nothing else. The run can be parked even if in.Park is false. Accept
// returns the id of the run, which it generates if in has none. If the store contains the run already, Accept changes nothing and returns
// no error, so that a caller may repeat it.
//
// The log records the executor of the run: the name of the server's Executor if a server has started the run, else `steps`. No [Supervisor]
// acquires such a run, and [Engine.Resume] and [Engine.Cancel] return an error for it.
func (e *Engine) Accept(ctx context.Context, l *loop.Loop, in *loop.Input, sinks ...event.Sink) (string, error) {
	own := *in
	own.Park = true
	extra := runinput.Of(&own)
	extra.Executor = cmp.Or(extra.Executor, "steps")
	extra.Suspend = func(*lathe.ToolCall, *lathe.ToolSpec) bool { return true }
	if own.Run.RunID == "" {
		own.Run.RunID = e.opts.NewID("run_")
	} else if _, err := e.State(ctx, own.Run.RunID); lathe.CodeOf(err) != lathe.CodeNotFound {
		return own.Run.RunID, err
	}
	_, err := e.Run(ctx, l, &own, &RunOptions{Sinks: sinks})
	if err == nil {
		return own.Run.RunID, nil
	}
	// The run was refused and its log contains the reason, or a concurrent call has accepted it.
	if s, found := e.State(ctx, own.Run.RunID); found == nil && s.LastID > 0 {
		return own.Run.RunID, nil
	}
	return own.Run.RunID, err
}

// Step executes one step of a run that Accept has stored, and blocks until the step is done. A step is a model call, or the next tool call
// of the turn. Concurrent calls of tools that only read are one step, and so are calls that waited for the same approval. When no model
// call or tool call follows a step, the same step also ends or parks the run. Step then releases the run. For a parked run without new
// input, and for a run that has ended, Step changes nothing and returns its state. opts may be nil.
//
// A step may be repeated after a failure: Step does not repeat what the log contains. A model call is repeated, and so is a call that only
// reads, with the same idempotency key. A call that writes gets the result `interrupted` if it may have been started.
//
// Unlike [Engine.Resume], Step returns no error for a run that has ended, nor for one that ends with a failure. Its errors have the codes
// of Resume, and invalid_request for a run that Accept has not stored. If the store failed or the cause of ctx is [lathe.ErrLeft], the
// error wraps [lathe.ErrLeft]; the result then has only LastID, and is nil if the store cannot be read.
func (e *Engine) Step(ctx context.Context, l *loop.Loop, runID string, opts *StepOptions) (*Step, error) {
	if opts == nil {
		opts = &StepOptions{}
	}
	tried := &attempts{}
	g, err := e.claimRun(ctx, runID, tried, stepByStep)
	if err != nil { // also if the run has ended, which is not an error of Step
		if s, serr := e.State(ctx, runID); serr == nil && s.Finished != nil {
			return stepOf(s), nil
		}
		return nil, err
	}
	suspended := g.state.LastID == opts.After || g.state.LastID == 1 // 1: Accept has stored the first event, and no step was executed
	hasInput := opts.Resume || opts.Cancel || len(opts.Answers) > 0
	switch {
	case !hasInput && !e.canContinue(g.state, g.signals): // it is parked, and there is nothing new
		g.owned.end(releaseClaim)
		return stepOf(g.state), nil
	case !suspended && tried.n >= maxAttempts && !opts.Cancel:
		return e.setAside(ctx, g, opts.Sinks)
	}
	g.step = &stepping{settle: opts.Settle, suspended: suspended, elapsed: opts.Elapsed}
	var res *event.Result
	if opts.Cancel {
		res, err = g.cancel(ctx, l, opts.Sinks)
	} else {
		res, err = g.resume(ctx, l, opts.Answers, opts.Sinks)
	}
	if res == nil && err != nil { // nothing was executed
		return nil, err
	}
	return g.afterStep(ctx, res)
}

// afterStep returns the Step after an executed step. res is its result; nil: the run is suspended. The error of a run that ended with a failure
// is not returned, since the state has its reason.
func (g *claimedRun) afterStep(ctx context.Context, res *event.Result) (*Step, error) {
	s, err := g.engine.State(context.WithoutCancel(ctx), g.state.Run.RunID)
	left := res != nil && errors.Is(res.Err, errLeft) // the store failed, or the process stops: the step is to be repeated
	switch {
	case left && err != nil:
		return nil, res.Err
	case left:
		return &Step{LastID: s.LastID}, res.Err
	case err != nil:
		return nil, err
	}
	out := stepOf(s)
	out.Next = g.step.next
	return out, nil
}

// stepping is the state that suspends a claimed run after one step.
type stepping struct {
	suspended bool          // value of [runinput.Extra].Suspended
	elapsed   time.Duration // value of [runinput.Extra].Elapsed
	settle    bool
	progress  bool // an event of the step was stored, other than RunStarted and RunResumed
	next      *NextStep
}

// suspend implements [runinput.Extra].Suspend: it returns true if the step has made progress, or settles.
func (s *stepping) suspend(call *lathe.ToolCall, spec *lathe.ToolSpec) bool {
	if !s.progress && !s.settle {
		return false
	}
	s.next = &NextStep{}
	if call != nil {
		s.next.CallID = call.ID
	}
	if spec != nil {
		s.next.Tool, s.next.Effect = spec.Name, spec.Effect
	}
	return true
}

// count sets progress if the event is progress of the step.
func (s *stepping) count(d event.Data) {
	switch d.(type) {
	case *event.RunStarted, *event.RunResumed:
	default:
		s.progress = true
	}
}

// setAside parks, with reason `interrupted`, a run that was resumed repeatedly without progress.
func (e *Engine) setAside(ctx context.Context, g *claimedRun, sinks []event.Sink) (*Step, error) {
	e.opts.Log.Error("a run is parked: it was resumed again and again without progress", "run_id", g.state.Run.RunID)
	s := &stamper{engine: e, own: sinks, log: e.opts.Store, owned: g.owned, last: g.state.LastID, cancel: func(error) {}, in: loop.Input{Run: g.state.Run}}
	s.run = &s.in.Run
	paused := &event.RunPaused{Reason: lathe.ReasonInterrupted, Pending: []string{}}
	s.emit(ctx, &event.Event{Turn: g.state.Turn, Data: paused})
	g.owned.end(releaseClaim)
	if s.lost != nil {
		return nil, s.lost
	}
	return &Step{LastID: s.last, Reason: paused.Reason, Status: "parked"}, nil
}

// stepOf returns the Step of a run that has ended or is parked.
func stepOf(s *loop.State) *Step {
	out := &Step{LastID: s.LastID, Reason: s.Paused}
	switch {
	case s.Finished != nil:
		out.Reason, out.Status = s.Finished.Reason, s.Finished.Status
		return out
	case s.Paused == "":
		return out
	}
	out.Status = "parked"
	for _, o := range s.Open {
		w := Waiting{CallID: o.ID}
		if o.Asked {
			w.Digest, w.ExpiresAt = o.Digest, o.ExpiresAt
		}
		out.Waiting = append(out.Waiting, w)
	}
	return out
}

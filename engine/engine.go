// Package engine executes runs. It gives the events of the loop ids and times, appends them to the store, and then publishes them to the
// sinks, so that stored and published events cannot differ. A run whose caller does not depend on the store may be stored after its events
// were published; see [Durability].
//
// A [Supervisor] executes runs in the background and acquires runs that no process executes.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// Options are the options of [New]. They are copied.
type Options struct {
	// Store stores the events; nil: they are not stored. If it is a [store.Shared], the engine claims each run that it executes. If it is a
	// [store.SignalStore], a resumed run reads its signals.
	Store store.Store
	// FlushBeforeEnd stores the events of a run of durability [Deferred] before the end of the run is published; false: they are stored in
	// the background. Use it with a store that appends without blocking, such as one in memory.
	FlushBeforeEnd bool
	// Node is the unique name of this process among those with the same shared store; "": a generated name. No two processes may use the
	// same name, even at different times.
	Node string
	// Lease is the time for which a claim on a run is valid after each renewal; 0: 10 s. A process that cannot renew its claims stops its
	// runs a fifth of the lease before the lease ends; then other processes acquire the runs.
	Lease time.Duration
	// StoreTimeout is the time limit of one append to the store, one call of Audit and one call of a [Recorder]; 0: 10 s. These calls are
	// not cancelled with the run, so that its end is stored too.
	StoreTimeout time.Duration
	// Audit, if set, is called with each event before the event is stored, so that nothing is done or published without an audit. It is not
	// called with deltas, nor with the end of a run whose store failed. If Audit returns an error, panics, or does not return within
	// StoreTimeout, the run ends as if the store had failed. Audit must not retain or change run or the data of e.
	Audit func(ctx context.Context, run *lathe.RunInfo, e event.Event) error
	// Sinks receive each event after it was stored, in the order of the slice. If a sink panics, the panic is logged and the other sinks
	// receive the event. If a sink is an [event.Tracer], the requests that models and tools send carry the trace and span ids of the first
	// one.
	Sinks []event.Sink
	Now   func() time.Time // the clock for the times of events; nil: time.Now
	// NewID returns a new id that begins with prefix and sorts by time; nil: prefix and a ULID.
	NewID func(prefix string) string
	Log   *slog.Logger // receives log records; nil: no logging
}

// An Engine executes the loops of runs and stores their events. Its methods may be called from several goroutines at once.
type Engine struct {
	opts    Options
	node    *node             // nil: the store is not shared
	signals store.SignalStore // nil: the store has no signals

	supervised atomic.Bool // a supervisor exists

	mu       sync.Mutex
	deferred map[string]*deferredRun  // runs of durability Deferred that are in progress, by id
	flushing map[string]chan struct{} // ended runs that are being stored, by id; each channel is closed when its run is stored
}

// New returns an engine. opts may be nil. It returns an error of code invalid_config for a negative duration or a nil sink.
func New(opts *Options) (*Engine, error) {
	e := &Engine{deferred: map[string]*deferredRun{}, flushing: map[string]chan struct{}{}}
	if opts != nil {
		e.opts = *opts
		e.opts.Sinks = slices.Clone(opts.Sinks)
	}
	if err := e.opts.check(); err != nil {
		return nil, lathe.CodeInvalidConfig.Wrap("engine: new", err)
	}
	e.opts.setDefaults()
	e.signals, _ = e.opts.Store.(store.SignalStore)
	if shared, ok := e.opts.Store.(store.Shared); ok {
		if e.opts.Node == "" {
			e.opts.Node = e.opts.NewID("node_")
		}
		e.node = newNode(&e.opts, shared)
	}
	return e, nil
}

// check returns an error for the first option that is not valid.
func (o *Options) check() error {
	switch {
	case o.Lease < 0:
		return fmt.Errorf("the lease is %v, want more than 0", o.Lease)
	case o.StoreTimeout < 0:
		return fmt.Errorf("the store timeout is %v, want more than 0", o.StoreTimeout)
	}
	if i := slices.Index(o.Sinks, nil); i >= 0 {
		return fmt.Errorf("sink %d is nil", i)
	}
	return nil
}

func (o *Options) setDefaults() {
	o.StoreTimeout, o.Lease = cmp.Or(o.StoreTimeout, 10*time.Second), cmp.Or(o.Lease, defaultLease)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = (&idSource{now: o.Now}).next
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
}

// Node returns the name of this process among those that share the store, or "" if the store is not shared.
func (e *Engine) Node() string {
	if e.node == nil {
		return ""
	}
	return e.node.name
}

// NewRunID returns an id for a new run (`run_…`). A caller that needs the id before the start of the run sets it as [lathe.RunInfo].RunID.
func (e *Engine) NewRunID() string { return e.opts.NewID("run_") }

// Run executes one run, and blocks until the run ends or is parked. opts may be nil. Run generates the run id (`run_…`) and the request id
// (`req_…`) if they are not set. The IDs of events are consecutive from 1. Each event is stored before any sink receives it, unless
// opts.Durability says otherwise.
//
// If the store fails or panics, or already contains a run with this id, Run cancels the run before any effect that depends on the missing
// event. The run ends with the reason `internal`. Its RunFinished is then published without an ID, because it is not stored.
//
// On a shared store, Run releases the run instead if another process has acquired it, or if the store is unavailable and the run can be
// resumed (in.Park). The result then has the reason `interrupted`, and the error wraps [lathe.ErrLeft].
//
// The result is never nil. The error is that of [loop.Loop.Do], or has the code invalid_request if options contradict each other.
func (e *Engine) Run(ctx context.Context, l *loop.Loop, in *loop.Input, opts *RunOptions) (*event.Result, error) {
	if opts == nil {
		opts = &RunOptions{}
	}
	if err := opts.check(in); err != nil {
		return &event.Result{Reason: lathe.ReasonInternal, Err: err}, err
	}
	s := &stamper{engine: e, own: opts.Sinks}
	if opts.Durability != None {
		s.log = e.opts.Store
	}
	if in != nil {
		s.in = *in
	}
	s.run = &s.in.Run
	if s.run.RunID == "" {
		s.run.RunID = e.opts.NewID("run_")
	}
	if s.run.RequestID == "" {
		s.run.RequestID = e.opts.NewID("req_")
	}
	if s.log == nil && e.opts.Audit == nil { // neither a store nor an audit can fail
		return s.execute(ctx, l)
	}
	s.cancel = opts.Cancel
	if s.cancel == nil {
		ctx, s.cancel = context.WithCancelCause(ctx)
		defer s.cancel(nil)
	}
	if s.log == nil {
		return s.execute(ctx, l)
	}
	s.owned = e.node.begin(s.run.RunID, s.cancel)
	defer s.owned.end(releaseClaim)
	if opts.Durability == Deferred {
		defer s.deferPersistence(opts.MustPersist)()
	}
	return s.execute(ctx, l)
}

// A Recorder is an [event.Sink] that stores its own record of an event before the event is stored. It must be a sink of one run, such as
// one of [RunOptions].Sinks: Record is not called for the sinks of [Options]. The goroutine of the run calls Record, after the audit, with
// each event that is to be stored. The context of Record ends after StoreTimeout. If Record returns an error or panics, the event is not
// stored and the run ends, as if the store had failed. An engine without a store and without an audit does not call Record.
//
// An error that wraps [ErrSuperseded] ends the run, too, but is logged as information.
type Recorder interface {
	event.Sink
	Record(ctx context.Context, e event.Event) error
}

// ErrSuperseded is returned by the Record method of a [Recorder] to end a run whose work another run does.
var ErrSuperseded = errors.New("another run takes the place of this one")

// A stamper gives the events of one run their ids and times, and stores and publishes them. Run and its other creators set the fields up to
// step; emit changes the rest for each event, on the goroutine of the run.
type stamper struct {
	engine   *Engine
	in       loop.Input
	run      *lathe.RunInfo // points to in.Run
	cancel   context.CancelCauseFunc
	own      []event.Sink
	log      store.Store  // nil: the events of the run are not stored
	owned    *claimHandle // nil: the store is not shared
	deferred *deferredRun // nil: each event is stored at once
	step     *stepping    // nil: the run is not executed in steps

	last   int64 // the ID of the last stored event
	deltas int64 // number of deltas since the start of the model call
	lost   error // the error after which no event is stored; nil: all events are stored
	result *event.Result
}

// owner returns the description of the run for sinks.
func (s *stamper) owner() event.RunOwner {
	run, target := s.run, s.in.Target
	if r := s.in.Resume; r != nil {
		run, target = &r.Run, r.Target
	}
	return event.RunOwner{Principal: run.Principal, Profile: run.Profile, Target: target}
}

func (s *stamper) execute(ctx context.Context, l *loop.Loop) (*event.Result, error) {
	ctx = event.WithTracer(ctx, s.run.RunID, s.engine.opts.Sinks)
	ctx = event.WithRunOwner(ctx, s.owner())
	l.Run(ctx, &s.in)(func(ev event.Event) bool {
		s.emit(ctx, &ev)
		return true
	})
	return s.result, loop.Failure(s.result)
}

// emit stores and publishes an event.
func (s *stamper) emit(ctx context.Context, ev *event.Event) {
	ev.RunID, ev.RequestID, ev.SessionID, ev.Time = s.run.RunID, s.run.RequestID, s.run.SessionID, s.engine.opts.Now()
	if event.IsDelta(ev.Data) {
		s.deltas++
		ev.After, ev.N = s.last, s.deltas
		s.publish(ctx, ev)
		return
	}
	if s.lost == nil && errors.Is(context.Cause(ctx), lathe.ErrLeft) {
		s.lost = lathe.CodeInterrupted.Wrap("engine: run", errLeft)
	}
	if s.lost == nil {
		ev.ID = s.last + 1
		s.store(ctx, ev)
	}
	if _, ok := ev.Data.(*event.ModelCallStarted); ok {
		s.deltas = 0
	}
	if res := loop.Ended(ev.Data); res != nil {
		s.result = res
		switch {
		case errors.Is(s.lost, errLeft): // the run continues in another process or step
			res.Reason, res.Err = lathe.ReasonInterrupted, s.lost
		case s.lost != nil:
			ev.Data = s.failed(ev.Data)
			ev.ID, ev.After = 0, s.last
			s.publish(ctx, ev)
		}
	}
	if s.lost != nil {
		return // events that are not stored are not published
	}
	s.last = ev.ID
	if s.step != nil {
		s.step.count(ev.Data)
	}
	s.publish(ctx, ev)
}

// store audits ev and appends it. The first failure cancels the run, and nothing is stored after it, since the log would have a gap.
func (s *stamper) store(ctx context.Context, ev *event.Event) {
	if s.log == nil && s.engine.opts.Audit == nil {
		return
	}
	err := s.append(ctx, ev)
	if err == nil {
		return
	}
	code := storeCode(err)
	log := s.engine.opts.Log.With("run_id", s.run.RunID, "type", ev.Data.EventType())
	switch {
	case s.step != nil: // the step will be repeated
		err = errors.Join(errLeft, err)
	case s.leaves(err):
		log.Warn("a run is released to another process", "code", code)
		code, err = lathe.CodeInterrupted, errLeft
	case errors.Is(err, ErrSuperseded):
		log.Info("a run ends: another run takes its place")
	default:
		log.Error("an event could not be stored", "code", code, "cause", storeCause(err))
	}
	s.lost = code.Wrap("engine: append "+ev.Data.EventType(), err)
	s.cancel(s.lost)
}

// within returns a context for one call of the store, the audit or a recorder: it ends after StoreTimeout, not when the run is cancelled.
func (o *Options) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), o.StoreTimeout)
}

// append audits ev, passes it to the recorders, and appends it. A panic of one of them is returned as an error.
func (s *stamper) append(ctx context.Context, ev *event.Event) (err error) {
	callee := "the audit" // at each point of append, for the error after a panic
	defer func() {
		if recover() != nil { // the value of the panic may contain content
			err = errors.New(callee + " panicked")
		}
	}()
	if audit := s.engine.opts.Audit; audit != nil {
		ctx, cancel := s.engine.opts.within(ctx)
		defer cancel()
		if err := audit(ctx, s.run, *ev); err != nil {
			return err
		}
	}
	callee = "a recorder"
	for _, sink := range s.own {
		if r, ok := sink.(Recorder); ok {
			ctx, cancel := s.engine.opts.within(ctx)
			err := r.Record(ctx, *ev)
			cancel()
			if err != nil {
				return err
			}
		}
	}
	callee = "the store"
	switch {
	case s.log == nil:
		return nil
	case s.deferred != nil:
		return s.deferred.add(ctx, ev)
	}
	return s.engine.put(ctx, s.owned, s.run.RunID, s.last, []event.Event{*ev})
}

// put appends events to the log, under the claim h if it is not nil. It continues after ctx is done, because the run must know whether its
// events are stored. A panic of the store is returned as an error.
func (e *Engine) put(ctx context.Context, h *claimHandle, runID string, last int64, events []event.Event) (err error) {
	defer recovered(&err, errStorePanicked)
	ctx, cancel := e.opts.within(ctx)
	defer cancel()
	if h != nil {
		return h.append(ctx, last, events)
	}
	_, err = e.opts.Store.Append(ctx, runID, last, events...)
	return err
}

// leaves reports whether a run whose event could not be stored has not ended: another process owns it or may resume it.
func (s *stamper) leaves(err error) bool {
	if s.owned == nil || s.last == 0 || s.deferred != nil && s.deferred.untouched() { // nothing is claimed or stored
		return false
	}
	switch storeCode(err) {
	case lathe.CodeConflict:
		return true
	case lathe.CodeUnavailable, lathe.CodeTimeout, lathe.CodeCancelled:
		return s.in.Park || s.in.Resume != nil
	default: // a repetition would fail, too
		return false
	}
}

func storeCode(err error) lathe.Code {
	if errors.Is(err, lathe.ErrConflict) {
		return lathe.CodeConflict
	}
	return lathe.CodeOf(err)
}

// storeCause returns the text of a known cause of an error of the store, and "" for any other, because its text may contain content.
func storeCause(err error) string {
	for _, known := range []error{lathe.ErrStoreFull, lathe.ErrStoreDisk, lathe.ErrStoreReplaced} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return ""
}

// failed returns the data of the last event of a run whose store failed: a RunFinished with reason `internal`.
func (s *stamper) failed(end event.Data) *event.RunFinished {
	res := s.result
	res.Reason, res.Err = lathe.ReasonInternal, s.lost
	f, ok := end.(*event.RunFinished)
	if !ok { // end is a RunPaused
		f = &event.RunFinished{Turns: len(res.Trace), ToolCalls: res.ToolCalls, Usage: res.Usage, Result: res}
	}
	f.Reason, f.Status, f.ErrorCode = lathe.ReasonInternal, lathe.ReasonInternal.Status(), string(lathe.CodeOf(s.lost))
	f.Limit = ""
	return f
}

func (s *stamper) publish(ctx context.Context, ev *event.Event) {
	for _, sink := range s.engine.opts.Sinks {
		s.publishTo(ctx, sink, ev)
	}
	for _, sink := range s.own {
		s.publishTo(ctx, sink, ev)
	}
}

// publishTo passes the event to a sink. If the sink panics, the others still get the event.
func (s *stamper) publishTo(ctx context.Context, sink event.Sink, ev *event.Event) {
	defer func() {
		if recover() != nil { // the value of the panic may contain content
			s.engine.opts.Log.Error("a sink panicked", "run_id", s.run.RunID, "sink", fmt.Sprintf("%T", sink), "type", ev.Data.EventType())
		}
	}()
	sink.Emit(ctx, *ev)
}

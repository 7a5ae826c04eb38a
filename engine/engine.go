// Package engine carries runs: it stamps what the loop says with ids and times, appends it to the
// store, and then tells the sinks. What is stored and what is shown cannot differ; only a run that nobody asked
// to survive the process may be stored after it was told, see [Engine.RunLazily].
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
)

// Options say where events go. They are copied.
type Options struct {
	// Store keeps the events; nil: nobody does. Where it is a [lathe.SharedStore] each run is claimed
	// while it is carried here; where it is a [lathe.FactStore] what is kept there of a run is taken up
	// when the run is gone on with.
	Store lathe.Store
	// StoreAtOnce says that the store takes a run in no time, as one in memory does: those of RunLazily are
	// stored before their end is told, not beside it.
	StoreAtOnce bool
	// Node is the name of this process among those that use a shared store; "": one that is made here.
	// No two processes may have the same, not even one after the other.
	Node string
	// Lease is for how long the claims on runs hold without being renewed; 0: 10 s. A process that cannot
	// renew them stops its runs a fifth of that earlier, and others go on with them.
	Lease time.Duration
	// StoreTimeout bounds one append; 0: 10 s. A run that was cancelled is still recorded to its end.
	StoreTimeout time.Duration
	// Audit, when set, is called with each event before it is stored, so that whatever is done or shown
	// was audited; deltas and the ends of runs whose store failed are left out. An error, a panic, or
	// no return within StoreTimeout is that of a store that failed. Neither run nor what e holds may be kept or changed.
	Audit func(ctx context.Context, run *lathe.RunInfo, e lathe.Event) error
	// Sinks are told each event in this order, after it was stored. A sink that panics is logged,
	// and the others are told. One that is a [lathe.Tracer] names the spans of runs for models and tools.
	Sinks []lathe.Sink
	Now   func() time.Time // nil: time.Now
	// NewID makes an id that begins with prefix and sorts by time; nil: a ULID after the prefix.
	NewID func(prefix string) string
	Log   *slog.Logger // nil: nothing is logged
}

// An Engine runs loops. It may be used by several goroutines at once.
type Engine struct {
	opts     Options
	stampers sync.Pool       // of *stamper
	ownClock bool            // Options.Now is the caller's
	node     *node           // nil: the store is not shared
	kept     lathe.FactStore // nil: the store keeps no facts

	mu   sync.Mutex
	lazy map[string]*reserve      // of the runs of RunLazily that go on
	late map[string]chan struct{} // runs that have ended and are being stored; closed when they are
}

// New makes an engine.
func New(opts *Options) *Engine {
	e := &Engine{lazy: map[string]*reserve{}, late: map[string]chan struct{}{}}
	if opts != nil {
		e.opts = *opts
		e.opts.Sinks = append([]lathe.Sink(nil), opts.Sinks...)
	}
	if e.opts.StoreTimeout == 0 {
		e.opts.StoreTimeout = 10 * time.Second
	}
	e.ownClock = e.opts.Now != nil
	if !e.ownClock {
		e.opts.Now = time.Now
	}
	if e.opts.NewID == nil {
		e.opts.NewID = (&idSource{now: e.opts.Now}).next
	}
	if e.opts.Log == nil {
		e.opts.Log = slog.New(slog.DiscardHandler)
	}
	if e.opts.Lease <= 0 {
		e.opts.Lease = defaultLease
	}
	e.kept, _ = e.opts.Store.(lathe.FactStore)
	if shared, ok := e.opts.Store.(lathe.SharedStore); ok {
		if e.opts.Node == "" {
			e.opts.Node = e.opts.NewID("node_")
		}
		e.node = newNode(&e.opts, shared)
	}
	return e
}

// Node is the name of this process among those that use a shared store, "" where it is not shared.
func (e *Engine) Node() string {
	if e.node == nil {
		return ""
	}
	return e.node.name
}

// since returns the time now, for deltas: there are many of them, and what has passed since then is
// read faster than the time of day.
func (e *Engine) since(then time.Time) time.Time {
	if e.ownClock {
		return e.opts.Now()
	}
	return then.Add(time.Since(then))
}

// NewRunID returns an id for a run that is about to begin, for callers who want to know it before.
func (e *Engine) NewRunID() string { return e.opts.NewID("run_") }

// Run carries one run to its end. A run without an id gets one (`run_…`), and one without a
// request id too (`req_…`). Events have IDs dense from 1; each is stored before any sink is told.
//
// When the store fails or panics, the run is cancelled before it does anything that was not stored,
// and it ends `internal`. Its RunFinished is then told without an ID, as it is the one event that no log has.
//
// Sinks given here are told this run only, after those of the engine.
//
// The result is never nil; the error is as of [loop.Loop.Do].
func (e *Engine) Run(ctx context.Context, l *loop.Loop, in *loop.Input, sinks ...lathe.Sink) (*lathe.Result, error) {
	return e.run(ctx, l, in, nil, sinks)
}

func (e *Engine) run(ctx context.Context, l *loop.Loop, in *loop.Input, due func(lathe.EventData) bool, sinks []lathe.Sink) (*lathe.Result, error) {
	s, _ := e.stampers.Get().(*stamper)
	if s == nil {
		s = &stamper{}
	}
	s.engine, s.own = e, sinks
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
	if e.opts.Store == nil && e.opts.Audit == nil { // nothing here can end the run
		return s.carry(ctx, l)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.cancel = cancel
	if h := e.node.begin(s.run.RunID, cancel); h != nil {
		s.hold = h
		defer func() { h.end(false) }()
	}
	if due != nil && e.opts.Store != nil {
		defer s.keepBack(due)()
	}
	return s.carry(ctx, l)
}

// A Recorder is a [lathe.Sink] of one run that records something of its own before an event of the run is
// stored. Record is called after the audit, with each event that is stored, by the goroutine of the run. Its
// context ends after StoreTimeout. An error, or a panic, is that of a store that failed: the event is not
// stored, and nothing follows from it. An engine without a store and without an audit does not call Record.
type Recorder interface {
	lathe.Sink
	Record(ctx context.Context, e lathe.Event) error
}

// A stamper numbers the events of one run.
type stamper struct {
	engine  *Engine
	in      loop.Input
	run     *lathe.RunInfo // of in
	cancel  context.CancelCauseFunc
	own     []lathe.Sink
	hold    *hold     // nil: nobody else could carry the run
	last    int64     // the ID of the last stored event
	n       int64     // of the last delta within the model call
	told    time.Time // when the last event that is no delta was
	lost    error     // why the store no longer takes events
	reserve *reserve  // nil: each event is stored at once
	result  *lathe.Result
}

func (s *stamper) carry(ctx context.Context, l *loop.Loop) (*lathe.Result, error) {
	ctx = lathe.WithTracer(ctx, s.run.RunID, s.engine.opts.Sinks)
	l.Run(ctx, &s.in)(func(ev lathe.Event) bool {
		s.take(ctx, &ev)
		return true
	})
	e, res := s.engine, s.result
	*s = stamper{}
	e.stampers.Put(s) // not deferred: what panicked in the caller's code is not used again
	return res, loop.Failure(res)
}

func (s *stamper) take(ctx context.Context, ev *lathe.Event) {
	ev.RunID, ev.RequestID, ev.SessionID = s.run.RunID, s.run.RequestID, s.run.SessionID
	if lathe.IsDelta(ev.Data) {
		s.n++
		ev.After, ev.N = s.last, s.n
		ev.Time = s.engine.since(s.told)
		s.tell(ctx, ev)
		return
	}
	s.told = s.engine.opts.Now()
	ev.Time = s.told
	if s.lost == nil && errors.Is(context.Cause(ctx), errLeft) {
		s.lost = &lathe.Error{Code: lathe.CodeInterrupted, Op: "engine: run", Err: errLeft}
	}
	if s.lost == nil {
		ev.ID = s.last + 1
		s.store(ctx, ev)
	}
	if _, ok := ev.Data.(*lathe.ModelCallStarted); ok {
		s.n = 0
	}
	if res := loop.Ended(ev.Data); res != nil {
		s.result = res
		switch {
		case errors.Is(s.lost, errLeft): // it is not over
			res.Reason, res.Err = lathe.ReasonInterrupted, s.lost
		case s.lost != nil:
			ev.Data = s.failed(ev.Data)
			ev.ID, ev.After = 0, s.last
			s.tell(ctx, ev)
		}
	}
	if s.lost != nil {
		return // what was not stored is not shown
	}
	s.last = ev.ID
	s.tell(ctx, ev)
}

// store has ev audited and appends it. The first failure cancels the run; nothing is stored after it,
// since the log would have a gap.
func (s *stamper) store(ctx context.Context, ev *lathe.Event) {
	if s.engine.opts.Store == nil && s.engine.opts.Audit == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.engine.opts.StoreTimeout)
	defer cancel()
	if err := s.append(ctx, ev); err != nil {
		if s.leaves(err) {
			s.engine.opts.Log.Warn("a run is left for another process", "run_id", s.run.RunID, "type", ev.Data.EventType(), "code", storeCode(err))
			s.lost = &lathe.Error{Code: lathe.CodeInterrupted, Op: "engine: append " + ev.Data.EventType(), Err: errLeft}
			s.cancel(s.lost)
			return
		}
		s.lost = &lathe.Error{Code: storeCode(err), Op: "engine: append " + ev.Data.EventType(), Err: err}
		s.engine.opts.Log.Error("an event could not be stored", "run_id", s.run.RunID, "type", ev.Data.EventType(), "code", storeCode(err), "cause", storeCause(err))
		s.cancel(s.lost)
	}
}

// append has ev audited and appends it. A store that panics has not kept it.
func (s *stamper) append(ctx context.Context, ev *lathe.Event) (err error) {
	who := "the audit"
	defer func() {
		if recover() != nil { // its value may hold content
			err = errors.New(who + " panicked")
		}
	}()
	if audit := s.engine.opts.Audit; audit != nil {
		if err := audit(ctx, s.run, *ev); err != nil {
			return err
		}
	}
	who = "a recorder"
	for _, sink := range s.own {
		if r, ok := sink.(Recorder); ok {
			if err := r.Record(ctx, *ev); err != nil {
				return err
			}
		}
	}
	switch who = "the store"; {
	case s.engine.opts.Store == nil:
		return nil
	case s.reserve != nil:
		return s.reserve.take(ctx, ev)
	}
	return s.engine.put(ctx, s.hold, s.run.RunID, s.last, []lathe.Event{*ev})
}

// put appends events to the log, as the holder of the claim where there is one.
func (e *Engine) put(ctx context.Context, h *hold, runID string, last int64, events []lathe.Event) error {
	if h != nil {
		return h.append(ctx, last, events)
	}
	_, err := e.opts.Store.Append(ctx, runID, last, events...)
	return err
}

// leaves reports whether a run whose event could not be stored is not over: another process carries it, or
// may go on with it.
func (s *stamper) leaves(err error) bool {
	if s.hold == nil || s.last == 0 || s.reserve != nil && s.reserve.untouched() {
		return false
	}
	switch storeCode(err) {
	case lathe.CodeConflict:
		return true
	case lathe.CodeUnavailable, lathe.CodeTimeout, lathe.CodeCancelled:
		return s.in.Park || s.in.Resume != nil
	default: // it would fail again
		return false
	}
}

func storeCode(err error) lathe.Code {
	if errors.Is(err, lathe.ErrConflict) {
		return lathe.CodeConflict
	}
	return lathe.CodeOf(err)
}

// storeCause returns the known cause of an error of the store, "" for any other: its text may hold content.
func storeCause(err error) string {
	for _, known := range []error{lathe.ErrStoreFull, lathe.ErrStoreDisk, lathe.ErrStoreReplaced} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return ""
}

// failed returns the end of a run whose store failed: `internal`, whatever it would have been.
func (s *stamper) failed(end lathe.EventData) *lathe.RunFinished {
	res := s.result
	res.Reason, res.Err = lathe.ReasonInternal, s.lost
	f, ok := end.(*lathe.RunFinished)
	if !ok { // it would have waited
		f = &lathe.RunFinished{Turns: len(res.Trace), ToolCalls: res.ToolCalls, Usage: res.Usage, Result: res}
	}
	f.Reason, f.Status, f.ErrorCode = lathe.ReasonInternal, lathe.ReasonInternal.Status(), string(lathe.CodeOf(s.lost))
	f.Limit = ""
	return f
}

func (s *stamper) tell(ctx context.Context, ev *lathe.Event) {
	for _, sink := range s.engine.opts.Sinks {
		s.tellOne(ctx, sink, ev)
	}
	for _, sink := range s.own {
		s.tellOne(ctx, sink, ev)
	}
}

func (s *stamper) tellOne(ctx context.Context, sink lathe.Sink, ev *lathe.Event) {
	defer func() {
		if recover() != nil { // its value may hold content
			s.engine.opts.Log.Error("a sink panicked", "run_id", s.run.RunID, "sink", fmt.Sprintf("%T", sink), "type", ev.Data.EventType())
		}
	}()
	sink.Emit(ctx, *ev)
}

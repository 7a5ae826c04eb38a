package enginetest

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

// A Point is a step of a run before and after which the simulation may kill the process. At the eleven numbered points a
// durable step is taken.
type Point uint8

// The points.
const (
	PointOther    Point = iota
	PointAccept         // 1: the start of the run is stored
	PointClaim          // 2: a process resumes the run
	PointAsk            // 3: before a model call
	PointMessage        // 4: the model's message is stored
	PointRequest        // 5: an approval is requested, and the run parks
	PointDecision       // 6: the approver's decision is stored
	PointPropose        // 7: a call that the model asked for is stored
	PointIntent         // 8: before the tool is called
	PointEffect         // 9: the effect of the tool
	PointResult         // 10: the result of the call is stored
	PointEnd            // 11: the end of the run is stored
	PointModel          // during a model call
	PointReturn         // the tool returns
	PointRead           // a log is read
	PointAcquire        // a process claims runs
	PointSignal         // a signal is stored
	PointNotify         // a notification of the store arrives
)

// pointOf returns the step that an append takes.
func pointOf(events []event.Event) Point {
	if len(events) == 0 {
		return PointOther
	}
	switch events[0].Data.(type) {
	case *event.RunStarted:
		return PointAccept
	case *event.RunResumed:
		return PointClaim
	case *event.ModelCallStarted:
		return PointAsk
	case *event.ModelCallFinished:
		return PointMessage
	case *event.ApprovalRequested, *event.RunPaused:
		return PointRequest
	case *event.ApprovalResolved:
		return PointDecision
	case *event.ToolCallProposed, *event.ToolCallParseError:
		return PointPropose
	case *event.ToolCallPlanned:
		return PointIntent
	case *event.ToolCallExecuted, *event.ToolsLoaded, *event.ToolCallResult:
		return PointResult
	case *event.RunFinished:
		return PointEnd
	default:
		return PointOther
	}
}

// callOf returns the id of the call that an event is about.
func callOf(d event.Data) string {
	switch d := d.(type) {
	case *event.ToolCallProposed:
		return d.ToolCallID
	case *event.ToolCallPlanned:
		return d.ToolCallID
	case *event.ApprovalRequested:
		return d.ToolCallID
	case *event.ApprovalResolved:
		return d.ToolCallID
	case *event.ToolCallExecuted:
		return d.ToolCallID
	case *event.ToolsLoaded:
		return d.ToolCallID
	case *event.ToolCallResult:
		return d.ToolCallID
	default:
		return ""
	}
}

// An Append is an append that succeeded.
type Append struct {
	RunID   string
	Process string
	Epoch   int64  // of the claim it was made under; 0: without one
	Newest  int64  // the epoch of the run's last claim when it was made
	First   string // the type of its first event
	From    int64  // the id of its first event
}

// A simStore is the store of a process, with a stop at each step: there the step may fail, or the process be killed.
type simStore struct {
	inner store.RunIndex
	p     *Process
}

var _ store.RunIndex = (*simStore)(nil)

// Append implements [store.Store].
func (s *simStore) Append(ctx context.Context, runID string, last int64, events ...event.Event) (int64, error) {
	return s.append(ctx, runID, last, events, 0, func(ctx context.Context) (int64, error) { return s.inner.Append(ctx, runID, last, events...) })
}

// append appends the events with do, under a claim of that epoch.
func (s *simStore) append(ctx context.Context, runID string, last int64, events []event.Event, epoch int64, do func(context.Context) (int64, error)) (end int64, err error) {
	what := "append of nothing"
	if len(events) > 0 {
		what = strings.TrimSpace("append " + events[0].Data.EventType() + " " + callOf(events[0].Data))
	}
	sim := s.p.sim
	fault := sim.act(ctx, s.p, pointOf(events), runID, what, func() {
		newest := sim.newest(runID) // now: a store that has lost a connection may answer much later
		end, err = do(context.WithoutCancel(ctx))
		if err == nil && len(events) > 0 {
			sim.addAppend(Append{RunID: runID, Process: s.p.name, First: events[0].Data.EventType(), From: last + 1, Epoch: epoch, Newest: newest})
		}
	})
	if fault != nil {
		return 0, unreachable(fault)
	}
	return end, err
}

// addAppend records an append that succeeded.
func (s *Sim) addAppend(a Append) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.appends = append(s.appends, a)
}

// newest returns the epoch of a run's last claim.
func (s *Sim) newest(runID string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epochs[runID]
}

// unreachable is the error of a store that has not answered.
func unreachable(err error) error {
	var known *lathe.Error
	if errors.As(err, &known) {
		return err
	}
	return lathe.CodeUnavailable.Wrap("enginetest: store", err)
}

// Read implements [store.Store].
func (s *simStore) Read(ctx context.Context, runID string, after int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if err := s.p.sim.halt(ctx, s.p, PointRead, runID, "read"); err != nil {
			yield(event.Event{}, unreachable(err))
			return
		}
		s.inner.Read(ctx, runID, after)(yield)
	}
}

// Delete implements [store.Store].
func (s *simStore) Delete(ctx context.Context, runID string) (err error) {
	fault := s.p.sim.act(ctx, s.p, PointOther, runID, "delete", func() { err = s.inner.Delete(context.WithoutCancel(ctx), runID) })
	return errors.Join(fault, err)
}

// Runs implements [store.RunIndex].
func (s *simStore) Runs(ctx context.Context, f *store.RunFilter) ([]store.RunSummary, string, error) {
	if err := s.p.sim.halt(ctx, s.p, PointRead, "", "list of runs"); err != nil {
		return nil, "", unreachable(err)
	}
	return s.inner.Runs(ctx, f)
}

// ModelCalls implements [store.RunIndex].
func (s *simStore) ModelCalls(ctx context.Context, f *store.RunFilter) ([]store.CallSummary, string, error) {
	if err := s.p.sim.halt(ctx, s.p, PointRead, "", "list of model calls"); err != nil {
		return nil, "", unreachable(err)
	}
	return s.inner.ModelCalls(ctx, f)
}

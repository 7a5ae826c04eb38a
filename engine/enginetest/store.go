package enginetest

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/lathe-run/lathe"
)

// A Point is a place in the life of a run at which a process may end. The eleven are those at which
// a durable step is taken.
type Point uint8

// The points.
const (
	PointOther    Point = iota
	PointAccept         // 1: the run is begun
	PointClaim          // 2: a process goes on with it
	PointAsk            // 3: before the model is asked
	PointSaid           // 4: what the model said
	PointRequest        // 5: somebody is asked, and the run waits
	PointDecision       // 6: what he decided
	PointPropose        // 7: a call is taken up
	PointIntent         // 8: before the tool is called
	PointEffect         // 9: what the tool does
	PointResult         // 10: what came of it
	PointEnd            // 11: the run has ended
	PointModel          // the model is at work
	PointReturn         // the tool is on its way back
	PointRead           // the log is read
	PointTake           // a process claims runs
	PointFact           // what somebody says is kept
	PointHint           // the store says that something is new
)

// pointOf says which step an append takes.
func pointOf(events []lathe.Event) Point {
	if len(events) == 0 {
		return PointOther
	}
	switch events[0].Data.(type) {
	case *lathe.RunStarted:
		return PointAccept
	case *lathe.RunResumed:
		return PointClaim
	case *lathe.ModelCallStarted:
		return PointAsk
	case *lathe.ModelCallFinished:
		return PointSaid
	case *lathe.ApprovalRequested, *lathe.RunPaused:
		return PointRequest
	case *lathe.ApprovalResolved:
		return PointDecision
	case *lathe.ToolCallProposed, *lathe.ToolCallParseError:
		return PointPropose
	case *lathe.ToolCallPlanned:
		return PointIntent
	case *lathe.ToolCallExecuted, *lathe.ToolCallResult:
		return PointResult
	case *lathe.RunFinished:
		return PointEnd
	default:
		return PointOther
	}
}

// callOf returns the id of the call that an event is about.
func callOf(d lathe.EventData) string {
	switch d := d.(type) {
	case *lathe.ToolCallProposed:
		return d.ToolCallID
	case *lathe.ToolCallPlanned:
		return d.ToolCallID
	case *lathe.ApprovalRequested:
		return d.ToolCallID
	case *lathe.ApprovalResolved:
		return d.ToolCallID
	case *lathe.ToolCallExecuted:
		return d.ToolCallID
	case *lathe.ToolCallResult:
		return d.ToolCallID
	default:
		return ""
	}
}

// An Append is one that a store has taken.
type Append struct {
	RunID   string
	Process string
	Epoch   int64 // of the claim it was made under; 0: without one
	Newest  int64 // the epoch of the run's last claim when it was made
	First   string
	From    int64 // the id of its first event
}

// A store is the one that a process has: each step of it may fail, and is the last of a process that
// is killed at it.
type store struct {
	inner lathe.RunIndex
	p     *Process
}

var _ lathe.RunIndex = (*store)(nil)

// Append implements [lathe.Store].
func (s *store) Append(ctx context.Context, runID string, last int64, events ...lathe.Event) (int64, error) {
	return s.append(ctx, runID, last, events, 0, func(ctx context.Context) (int64, error) { return s.inner.Append(ctx, runID, last, events...) })
}

// append appends under a claim of that epoch.
func (s *store) append(ctx context.Context, runID string, last int64, events []lathe.Event, epoch int64, do func(context.Context) (int64, error)) (end int64, err error) {
	what := "append of nothing"
	if len(events) > 0 {
		what = strings.TrimSpace("append " + events[0].Data.EventType() + " " + callOf(events[0].Data))
	}
	sim := s.p.sim
	fault := sim.act(ctx, s.p, runID, what, func() {
		newest := sim.newest(runID) // now: a store that has lost a connection may answer much later
		if end, err = do(context.WithoutCancel(ctx)); err == nil && len(events) > 0 {
			sim.note(Append{RunID: runID, Process: s.p.name, First: events[0].Data.EventType(), From: last + 1, Epoch: epoch, Newest: newest})
		}
	}, pointOf(events))
	if fault != nil {
		return 0, unreachable(fault)
	}
	return end, err
}

func (s *Sim) note(a Append) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, a)
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
	return &lathe.Error{Code: lathe.CodeUnavailable, Op: "enginetest: store", Err: err}
}

// Read implements [lathe.Store].
func (s *store) Read(ctx context.Context, runID string, after int64) iter.Seq2[lathe.Event, error] {
	return func(yield func(lathe.Event, error) bool) {
		if err := s.p.sim.halt(ctx, s.p, PointRead, runID, "read"); err != nil {
			yield(lathe.Event{}, unreachable(err))
			return
		}
		s.inner.Read(ctx, runID, after)(yield)
	}
}

// Delete implements [lathe.Store].
func (s *store) Delete(ctx context.Context, runID string) (err error) {
	fault := s.p.sim.act(ctx, s.p, runID, "delete", func() { err = s.inner.Delete(context.WithoutCancel(ctx), runID) }, PointOther)
	return errors.Join(fault, err)
}

// Runs implements [lathe.RunIndex].
func (s *store) Runs(ctx context.Context, f *lathe.RunFilter) ([]lathe.RunSummary, string, error) {
	if err := s.p.sim.halt(ctx, s.p, PointRead, "", "list of runs"); err != nil {
		return nil, "", unreachable(err)
	}
	return s.inner.Runs(ctx, f)
}

// ModelCalls implements [lathe.RunIndex].
func (s *store) ModelCalls(ctx context.Context, f *lathe.RunFilter) ([]lathe.CallSummary, string, error) {
	if err := s.p.sim.halt(ctx, s.p, PointRead, "", "list of model calls"); err != nil {
		return nil, "", unreachable(err)
	}
	return s.inner.ModelCalls(ctx, f)
}

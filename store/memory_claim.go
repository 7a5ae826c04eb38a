package store

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

var _ Shared = (*Memory)(nil)

// A claim says which node owns a run of a [Memory]. The zero value is no claim.
type claim struct {
	node  string // "": it was released
	epoch int64
	until time.Time
	// seen and signals count the events and signals that a holder had read when it released the claim.
	seen    int64
	signals int
}

// accepts reports whether the journal takes events from the holder of the claim. j is nil where the run
// is to begin.
func (j *journal) accepts(by *Claim) bool {
	if j == nil {
		return by.Epoch == 0 && by.Node != "" && by.Lease > 0
	}
	return by.Epoch > 0 && by.Epoch == j.claim.epoch && by.Node == j.claim.node
}

// owner returns the node whose lease has not ended, or "" if no node has one.
func (j *journal) owner(now time.Time) string {
	if j.over() || !now.Before(j.claim.until) {
		return ""
	}
	return j.claim.node
}

// over reports whether the run has ended.
func (j *journal) over() bool { return j.finished != nil }

// wants reports whether a node should resume the run.
func (j *journal) wants(now time.Time) bool {
	r := &j.sum.Run
	switch {
	case !r.Resumable, r.Executor != "", j.over(), j.owner(now) != "":
		return false
	case r.Status != "parked":
		return true
	}
	return int64(len(j.events)) > j.claim.seen || len(j.signals) > j.claim.signals || !r.WakeAt.IsZero() && !now.Before(r.WakeAt)
}

// hasUnreadSignals reports whether the run is suspended and has signals that no holder of a claim has seen.
func (j *journal) hasUnreadSignals() bool {
	return j.sum.Run.Status == "parked" && len(j.signals) > j.claim.signals
}

// give makes the run's next claim, with the next epoch.
func (j *journal) give(runID, node string, lease time.Duration, now time.Time) Claim {
	j.claim.node, j.claim.until = node, now.Add(lease)
	j.claim.epoch++
	return Claim{RunID: runID, Node: node, Epoch: j.claim.epoch, Lease: lease, Signals: len(j.signals)}
}

// AppendAs implements [Shared].
func (s *Memory) AppendAs(ctx context.Context, c Claim, last int64, events ...event.Event) (int64, error) {
	return s.append(ctx, c.RunID, last, events, &c)
}

// Claim implements [Shared].
func (s *Memory) Claim(ctx context.Context, node string, lease time.Duration, limit int) ([]Claim, error) {
	const op = "store: claim"
	if err := mayClaim(ctx, op, node, lease); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var out []Claim
	for id, j := range s.kept.runs {
		if len(out) >= limit {
			break
		}
		if j.wants(now) {
			out = append(out, j.give(id, node, lease, now))
		}
	}
	return out, nil
}

// ClaimRun implements [Shared].
func (s *Memory) ClaimRun(ctx context.Context, node, runID string, lease time.Duration) (Claim, error) {
	const op = "store: claim run"
	if err := mayClaim(ctx, op, node, lease); err != nil {
		return Claim{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	j, err := s.kept.going(op, runID)
	if err != nil {
		return Claim{}, err
	}
	if owner := j.owner(now); owner != "" && owner != node {
		return Claim{}, &lathe.Error{Code: lathe.CodeConflict, Op: op, Err: lathe.ErrConflict}
	}
	return j.give(runID, node, lease, now), nil
}

// Renew implements [Shared].
func (s *Memory) Renew(ctx context.Context, node string, lease time.Duration) ([]Claim, error) {
	const op = "store: renew"
	if err := mayClaim(ctx, op, node, lease); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var out []Claim
	for id, j := range s.kept.runs {
		if j.owner(now) == node {
			j.claim.until = now.Add(lease)
			out = append(out, Claim{RunID: id, Node: node, Epoch: j.claim.epoch, Lease: lease, Signals: len(j.signals)})
		}
	}
	return out, nil
}

// mayClaim returns an error if a node may not claim runs.
func mayClaim(ctx context.Context, op, node string, lease time.Duration) error {
	if node == "" || lease <= 0 {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: errors.New("a claim wants the name of a node and a lease")}
	}
	return ended(ctx, op)
}

// Release implements [Shared].
func (s *Memory) Release(ctx context.Context, c Claim, seen int64) error {
	if err := ended(ctx, "store: release"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.kept.runs[c.RunID]; j != nil && j.accepts(&c) {
		j.claim = claim{epoch: c.Epoch, seen: seen, signals: c.Signals}
		s.watchers.notify(c.RunID)
	}
	return nil
}

// Owner implements [Shared].
func (s *Memory) Owner(ctx context.Context, runID string) (string, error) {
	if err := ended(ctx, "store: owner"); err != nil {
		return "", err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	j := s.kept.runs[runID]
	if j == nil {
		return "", nil
	}
	return j.owner(s.now()), nil
}

// PutSignal implements [SignalStore].
func (s *Memory) PutSignal(ctx context.Context, f Signal) error {
	const op = "store: put signal"
	if err := ended(ctx, op); err != nil {
		return err
	}
	if err := CheckSignal(&f); err != nil {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j, err := s.kept.going(op, f.RunID)
	if err != nil {
		return err
	}
	for i := range j.signals {
		if j.signals[i].Kind == f.Kind && j.signals[i].Key == f.Key {
			return &lathe.Error{Code: lathe.CodeConflict, Op: op, Err: lathe.ErrConflict}
		}
	}
	f.Body, f.Time = bytes.Clone(f.Body), s.now()
	j.signals = append(j.signals, f)
	s.watchers.notify(f.RunID)
	return nil
}

// Signals implements [SignalStore].
func (s *Memory) Signals(ctx context.Context, runID string) ([]Signal, error) {
	if err := ended(ctx, "store: signals"); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	j := s.kept.runs[runID]
	if j == nil {
		return nil, nil
	}
	out := make([]Signal, len(j.signals))
	for i, f := range j.signals {
		f.Body = bytes.Clone(f.Body)
		out[i] = f
	}
	return out, nil
}

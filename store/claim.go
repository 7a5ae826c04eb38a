package store

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
)

var _ lathe.SharedStore = (*Memory)(nil)

// A claim says which node carries a run of a [Memory]. The zero value is none.
type claim struct {
	node  string // "": it was given back
	epoch int64
	until time.Time
	// seen and facts are the events and facts that a holder had looked at when it gave a claim back.
	seen  int64
	facts int
}

// takes reports whether the journal takes events from the holder of the claim. j is nil where the run
// is to begin.
func (j *journal) takes(by *lathe.Claim) bool {
	if j == nil {
		return by.Epoch == 0 && by.Node != "" && by.Lease > 0
	}
	return by.Epoch > 0 && by.Epoch == j.claim.epoch && by.Node == j.claim.node
}

// holder is the node whose claim holds, "" where there is none.
func (j *journal) holder(now time.Time) string {
	if j.over() || !now.Before(j.claim.until) {
		return ""
	}
	return j.claim.node
}

// over reports whether the run has ended.
func (j *journal) over() bool { return j.finished != nil }

// wants reports whether somebody should go on with the run.
func (j *journal) wants(now time.Time) bool {
	r := &j.sum.Run
	switch {
	case !r.Resumable, j.over(), j.holder(now) != "":
		return false
	case r.Status != "parked":
		return true
	}
	return int64(len(j.events)) > j.claim.seen || len(j.facts) > j.claim.facts || !r.WakeAt.IsZero() && !now.Before(r.WakeAt)
}

// told reports whether the run waits and has facts that no holder of a claim has looked at.
func (j *journal) told() bool { return j.sum.Run.Status == "parked" && len(j.facts) > j.claim.facts }

// give makes the next claim of the run.
func (j *journal) give(runID, node string, lease time.Duration, now time.Time) lathe.Claim {
	j.claim.node, j.claim.until = node, now.Add(lease)
	j.claim.epoch++
	return lathe.Claim{RunID: runID, Node: node, Epoch: j.claim.epoch, Lease: lease, Facts: len(j.facts)}
}

// AppendAs implements [lathe.SharedStore].
func (s *Memory) AppendAs(ctx context.Context, c lathe.Claim, last int64, events ...lathe.Event) (int64, error) {
	return s.append(ctx, c.RunID, last, events, &c)
}

// Claim implements [lathe.SharedStore].
func (s *Memory) Claim(ctx context.Context, node string, lease time.Duration, limit int) ([]lathe.Claim, error) {
	const op = "store: claim"
	if err := mayClaim(ctx, op, node, lease); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var out []lathe.Claim
	for id, j := range s.runs {
		if len(out) >= limit {
			break
		}
		if j.wants(now) {
			out = append(out, j.give(id, node, lease, now))
		}
	}
	return out, nil
}

// Take implements [lathe.SharedStore].
func (s *Memory) Take(ctx context.Context, node, runID string, lease time.Duration) (lathe.Claim, error) {
	const op = "store: take"
	if err := mayClaim(ctx, op, node, lease); err != nil {
		return lathe.Claim{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	j, err := s.going(op, runID)
	if err != nil {
		return lathe.Claim{}, err
	}
	if held := j.holder(now); held != "" && held != node {
		return lathe.Claim{}, &lathe.Error{Code: lathe.CodeConflict, Op: op, Err: lathe.ErrConflict}
	}
	return j.give(runID, node, lease, now), nil
}

// going returns the journal of a run that has not ended.
func (s *Memory) going(op, runID string) (*journal, error) {
	j := s.runs[runID]
	switch {
	case j == nil:
		return nil, &lathe.Error{Code: lathe.CodeNotFound, Op: op, Err: lathe.ErrNotFound}
	case j.over():
		return nil, &lathe.Error{Code: lathe.CodeConflict, Op: op, Err: lathe.ErrConflict}
	}
	return j, nil
}

// Renew implements [lathe.SharedStore].
func (s *Memory) Renew(ctx context.Context, node string, lease time.Duration) ([]lathe.Claim, error) {
	const op = "store: renew"
	if err := mayClaim(ctx, op, node, lease); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var out []lathe.Claim
	for id, j := range s.runs {
		if j.holder(now) == node {
			j.claim.until = now.Add(lease)
			out = append(out, lathe.Claim{RunID: id, Node: node, Epoch: j.claim.epoch, Lease: lease, Facts: len(j.facts)})
		}
	}
	return out, nil
}

// mayClaim says what is wrong with who asks for claims.
func mayClaim(ctx context.Context, op, node string, lease time.Duration) error {
	if node == "" || lease <= 0 {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: errors.New("a claim wants the name of a node and a lease")}
	}
	return ended(ctx, op)
}

// Release implements [lathe.SharedStore].
func (s *Memory) Release(ctx context.Context, c lathe.Claim, seen int64) error {
	if err := ended(ctx, "store: release"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.runs[c.RunID]; j != nil && j.takes(&c) {
		j.claim = claim{epoch: c.Epoch, seen: seen, facts: c.Facts}
		s.hint(c.RunID)
	}
	return nil
}

// Owner implements [lathe.SharedStore].
func (s *Memory) Owner(ctx context.Context, runID string) (string, error) {
	if err := ended(ctx, "store: owner"); err != nil {
		return "", err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	j := s.runs[runID]
	if j == nil {
		return "", nil
	}
	return j.holder(s.now()), nil
}

// PutFact implements [lathe.FactStore].
func (s *Memory) PutFact(ctx context.Context, f lathe.Fact) error {
	const op = "store: keep a fact"
	if err := ended(ctx, op); err != nil {
		return err
	}
	if err := FitsFact(&f); err != nil {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j, err := s.going(op, f.RunID)
	if err != nil {
		return err
	}
	for i := range j.facts {
		if j.facts[i].Kind == f.Kind && j.facts[i].Key == f.Key {
			return &lathe.Error{Code: lathe.CodeConflict, Op: op, Err: lathe.ErrConflict}
		}
	}
	f.Body, f.Time = bytes.Clone(f.Body), s.now()
	j.facts = append(j.facts, f)
	s.hint(f.RunID)
	return nil
}

// Facts implements [lathe.FactStore].
func (s *Memory) Facts(ctx context.Context, runID string) ([]lathe.Fact, error) {
	if err := ended(ctx, "store: facts"); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	j := s.runs[runID]
	if j == nil {
		return nil, nil
	}
	out := make([]lathe.Fact, len(j.facts))
	for i, f := range j.facts {
		f.Body = bytes.Clone(f.Body)
		out[i] = f
	}
	return out, nil
}

// FitsFact says why no store keeps the fact.
func FitsFact(f *lathe.Fact) error {
	switch {
	case f.RunID == "":
		return errors.New("the fact is of no run")
	case f.Kind == "":
		return errors.New("the fact has no kind")
	}
	return nil
}

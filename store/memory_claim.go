package store

import (
	"context"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

var _ Shared = (*Memory)(nil)

// A claim is the right of a node to append to a run of a [Memory]. The zero value is no claim.
type claim struct {
	node  string // "": released
	epoch int64
	until time.Time
	// seen and signals are the numbers of events and signals that the owner had read when it released the claim.
	seen    int64
	signals int
}

// accepts reports whether events may be appended under the claim. j is nil if the append creates the run.
func (j *journal) accepts(by *Claim) bool {
	if j == nil {
		return by.Epoch == 0 && by.Node != "" && by.Lease > 0
	}
	return by.Epoch > 0 && by.Epoch == j.claim.epoch && by.Node == j.claim.node
}

// owner returns the node whose lease is valid, or "".
func (j *journal) owner(now time.Time) string {
	if j.over != nil || !now.Before(j.claim.until) {
		return ""
	}
	return j.claim.node
}

// wants reports whether Claim returns the run: it is resumable, has no executor, has not ended, no node owns it, and it is running, or has
// input that no owner has read, or its WakeAt has passed.
func (j *journal) wants(now time.Time) bool {
	r := &j.sum.Run
	switch {
	case !r.Resumable, r.Executor != "", j.over != nil, j.owner(now) != "":
		return false
	case r.Status != "parked":
		return true
	}
	return int64(len(j.events)) > j.claim.seen || len(j.signals) > j.claim.signals || !r.WakeAt.IsZero() && !now.Before(r.WakeAt)
}

// hasUnreadSignals reports whether the run is parked and has signals that no owner has read.
func (j *journal) hasUnreadSignals() bool {
	return j.sum.Run.Status == "parked" && len(j.signals) > j.claim.signals
}

// give sets the owner of the run and the end of its lease, and returns the claim.
func (j *journal) give(node string, lease time.Duration, now time.Time) Claim {
	j.claim.node, j.claim.until = node, now.Add(lease)
	return Claim{RunID: j.id, Node: node, Epoch: j.claim.epoch, Lease: lease, Signals: len(j.signals)}
}

// AppendAs implements [Shared].
func (s *Memory) AppendAs(ctx context.Context, c Claim, last int64, events ...event.Event) (int64, error) {
	return s.append(ctx, c.RunID, last, events, &c)
}

// claim executes fn under the lock. If the node or the lease is not set, it returns an error of code invalid_request.
func (c *core) claim(ctx context.Context, op, node string, lease time.Duration, fn func(now time.Time) error) error {
	if node == "" || lease <= 0 {
		return invalid(op, errors.New("a claim wants the name of a node and a lease"))
	}
	return c.do(ctx, op, fn)
}

// Claim implements [Shared].
func (s *Memory) Claim(ctx context.Context, node string, lease time.Duration, limit int) (out []Claim, err error) {
	err = s.claim(ctx, "claim", node, lease, func(now time.Time) error {
		for _, j := range s.kept.runs {
			if len(out) < limit && j.wants(now) {
				j.claim.epoch++
				out = append(out, j.give(node, lease, now))
			}
		}
		return nil
	})
	return out, err
}

// ClaimRun implements [Shared].
func (s *Memory) ClaimRun(ctx context.Context, node, runID string, lease time.Duration) (c Claim, err error) {
	err = s.claim(ctx, "claim run", node, lease, func(now time.Time) error {
		j, err := s.kept.going(runID)
		if err != nil {
			return err
		}
		if owner := j.owner(now); owner != "" && owner != node {
			return lathe.ErrConflict
		}
		j.claim.epoch++
		c = j.give(node, lease, now)
		return nil
	})
	return c, err
}

// Renew implements [Shared].
func (s *Memory) Renew(ctx context.Context, node string, lease time.Duration) (out []Claim, err error) {
	err = s.claim(ctx, "renew", node, lease, func(now time.Time) error {
		for _, j := range s.kept.runs {
			if j.owner(now) == node {
				out = append(out, j.give(node, lease, now))
			}
		}
		return nil
	})
	return out, err
}

// Release implements [Shared].
func (s *Memory) Release(ctx context.Context, c Claim, seen int64) error {
	return s.do(ctx, "release", func(time.Time) error {
		if j := s.kept.runs[c.RunID]; j != nil && j.accepts(&c) {
			j.claim = claim{epoch: c.Epoch, seen: seen, signals: c.Signals}
			s.watchers.notify(c.RunID)
		}
		return nil
	})
}

// Owner implements [Shared].
func (s *Memory) Owner(ctx context.Context, runID string) (node string, err error) {
	err = s.do(ctx, "owner", func(now time.Time) error {
		if j := s.kept.runs[runID]; j != nil {
			node = j.owner(now)
		}
		return nil
	})
	return node, err
}

// advertised is the address of a node until it expires.
type advertised struct {
	address string
	until   time.Time
}

// Advertise implements [Shared].
func (s *Memory) Advertise(ctx context.Context, node, address string, ttl time.Duration) error {
	return s.claim(ctx, "advertise", node, ttl, func(now time.Time) error {
		for name, a := range s.nodes { // removes expired addresses
			if !now.Before(a.until) {
				delete(s.nodes, name)
			}
		}
		s.nodes[node] = advertised{address, now.Add(ttl)}
		return nil
	})
}

// Address implements [Shared].
func (s *Memory) Address(ctx context.Context, node string) (address string, err error) {
	err = s.do(ctx, "address", func(now time.Time) error {
		if a := s.nodes[node]; now.Before(a.until) {
			address = a.address
		}
		return nil
	})
	return address, err
}

// Watch implements [Shared]. If several notifications of one run arrive while fn executes, fn is called once for all of them.
func (s *Memory) Watch(ctx context.Context, fn func(runID string)) error {
	s.watchers.watch(ctx, fn)
	return failure("watch", ctx.Err())
}

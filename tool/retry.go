package tool

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/lathe-run/lathe"
)

// A Retry says how often a call is tried again that was answered unavailable. Only tools that read
// or are idempotent are, under the same idempotency key and within the call's one deadline.
type Retry struct {
	Attempts   int           // the first one included; 1
	Backoff    time.Duration // before the second attempt, doubled before each further one, less up to half at random; 200 ms
	MaxBackoff time.Duration // 5 s
}

func (r Retry) withDefaults() Retry {
	if r.Attempts <= 0 {
		r.Attempts = 1
	}
	if r.Backoff <= 0 {
		r.Backoff = 200 * time.Millisecond
	}
	if r.MaxBackoff <= 0 {
		r.MaxBackoff = 5 * time.Second
	}
	return r
}

// pause is the time before the attempt that follows n others.
func (r Retry) pause(n int) time.Duration {
	d := r.Backoff
	for range n - 1 {
		if d >= r.MaxBackoff {
			break
		}
		d *= 2
	}
	d = min(d, r.MaxBackoff)
	return d - time.Duration(rand.Int64N(int64(d/2)+1))
}

// again waits for another attempt of a call that was answered unavailable, and takes its places. Where there is
// none to be, the answer stays.
func (w *Work) again(ctx context.Context, c *call) bool {
	e := c.entry
	if c.outcome() != lathe.CodeUnavailable || c.fault || c.attempts >= w.r.opts.Retry.Attempts ||
		e.spec.Effect != lathe.ReadOnly && e.spec.Effect != lathe.Idempotent {
		return false
	}
	pause := w.r.opts.Retry.pause(c.attempts)
	if time.Until(c.deadline) <= pause {
		return false
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return false
	}
	c.code, c.detail, c.limitKey, c.rc, c.out = "", c.detail[:0], "", 0, nil
	w.lookAgain(c)
	return !w.takePlaces(ctx, c)
}

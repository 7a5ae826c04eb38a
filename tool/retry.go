package tool

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/lathe-run/lathe"
)

// A Retry configures how often the runner repeats a call that ended with unavailable. It repeats only calls of tools that are read-only or
// idempotent. All attempts have the same idempotency key and share the deadline of the call.
type Retry struct {
	Attempts   int           // the maximum number of attempts; 0: 1
	Backoff    time.Duration // the pause before the second attempt, doubled before each further one, less up to half at random; 0: 200 ms
	MaxBackoff time.Duration // the maximum pause; 0: 5 s
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

// pause returns the time before the attempt that follows n others.
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

// mayRetry reports whether a call whose attempt ended with this code may be repeated.
func (c *call) mayRetry(code lathe.Code) bool {
	effect := c.entry.spec.Effect
	return code == lathe.CodeUnavailable && !c.fault && c.attempts < c.w.r.opts.Retry.Attempts &&
		(effect == lathe.ReadOnly || effect == lathe.Idempotent)
}

// pauseBeforeRetry waits until the next attempt. It returns false if the deadline would pass before it, or ctx is done.
func pauseBeforeRetry(ctx context.Context, c *call) bool {
	pause := c.w.r.opts.Retry.pause(c.attempts)
	if time.Until(c.deadline) <= pause {
		return false
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

package tool

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/lathe-run/lathe"
)

// A Retry configures how calls that ended with unavailable are repeated. Only calls of read-only and idempotent tools are repeated. All
// attempts have the same idempotency key and share the deadline of the call; no attempt begins after it.
type Retry struct {
	Attempts int // maximum number of attempts, the first included; 0: 1
	// Backoff is the pause before the second attempt; 0: 200 ms. It doubles before each further one, up to MaxBackoff (0: 5 s). Each pause
	// is shortened by a random part of up to half.
	Backoff    time.Duration
	MaxBackoff time.Duration
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
	return code == lathe.CodeUnavailable && !c.fault && c.attempts < c.w.r.opts.Retry.Attempts && mayRepeat(c.entry.spec.Effect)
}

// mayRepeat reports whether a tool with this effect may be called twice for one call.
func mayRepeat(effect lathe.Effect) bool {
	return effect == lathe.ReadOnly || effect == lathe.Idempotent
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

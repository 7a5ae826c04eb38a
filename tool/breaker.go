package tool

import (
	"sync"
	"time"

	"github.com/lathe-run/lathe"
)

// A Circuit configures the circuit breakers of backends. A backend is a system that tools depend on: tools with the same
// [lathe.ToolSpec].Backend share a circuit breaker, and a tool without Backend has none. When a number of consecutive calls of a backend's
// tools has failed, the circuit opens: further calls end with the code unavailable and the tools are not called, until one call that is let
// through as a probe succeeds.
type Circuit struct {
	// Failures is the number of consecutive failures that opens the circuit; 0: 5; negative: the circuit never opens. Failures are calls that
	// end with the code timeout or unavailable, panics, and errors that are neither a [Failure] nor a *[lathe.Error]. A cancelled call does
	// not count.
	Failures int
	OpenFor  time.Duration // time after which an open circuit allows one call as a probe; 0 or less: 30 s
}

func (c Circuit) withDefaults() Circuit {
	if c.Failures == 0 {
		c.Failures = 5
	}
	if c.OpenFor <= 0 {
		c.OpenFor = 30 * time.Second
	}
	return c
}

// keyCircuit is the config key of the circuits' limit.
const keyCircuit = "circuit"

// A breaker is the circuit of one backend. Runners with the same set share it.
type breaker struct {
	mu       sync.Mutex
	failures int // number of consecutive failures
	open     bool
	until    time.Time // if open: when a call may be the probe
	probing  bool      // a probe is in progress
}

// wait returns the time for which calls are refused; 0 if a call is allowed.
func (b *breaker) wait(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left(now)
}

func (b *breaker) left(now time.Time) time.Duration {
	switch {
	case !b.open:
		return 0
	case now.Before(b.until):
		return b.until.Sub(now)
	case b.probing:
		return time.Second // the probe returns at an unknown time
	}
	return 0
}

// admit allows a call, as the probe if the circuit is open, or returns the time to wait. The caller must call report after each allowed
// call.
func (b *breaker) admit(now time.Time) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if wait = b.left(now); wait == 0 && b.open {
		b.probing = true
	}
	return wait
}

// A health is what the end of a call means for the circuit of its backend.
type health uint8

const (
	unclear health = iota // the call was cancelled, or the tool was not called
	healthy
	failing
)

// report counts the end of a call that admit has allowed.
func (b *breaker) report(h health, now time.Time, limits Circuit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	probe := b.probing
	b.probing = false
	switch h {
	case healthy:
		b.failures, b.open = 0, false
	case failing:
		b.failures++
		if limits.Failures > 0 && (probe || b.failures >= limits.Failures) {
			b.open, b.until = true, now.Add(limits.OpenFor)
		}
	case unclear: // the count does not change
	}
}

// checkCircuit ends the call if wait, the time for which its backend refuses calls, is not 0.
func checkCircuit(c *call, wait time.Duration) ending {
	if wait == 0 {
		return proceed
	}
	c.limitKey = keyCircuit
	c.detailString("limit", keyCircuit)
	c.detailInt("retry_after_ms", (wait + time.Millisecond - 1).Milliseconds())
	return fail(lathe.CodeUnavailable)
}

// reportBackend reports the result of an attempt to the circuit of the tool's backend.
func reportBackend(c *call, code lathe.Code) {
	b := c.entry.backend
	if b == nil {
		return
	}
	h := healthy
	switch {
	case code == lathe.CodeCancelled:
		h = unclear
	case c.broke, code == lathe.CodeTimeout, code == lathe.CodeUnavailable:
		h = failing
	}
	b.breaker.report(h, c.now, c.w.r.opts.Circuit)
}

// releasePlaces releases the places of a call without a call of its tool.
func releasePlaces(c *call) {
	e, r := c.entry, c.w.r
	if e.backend != nil {
		e.backend.breaker.report(unclear, r.now(), r.opts.Circuit)
	}
	e.leave()
}

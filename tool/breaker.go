package tool

import (
	"sync"
	"time"

	"github.com/lathe-run/lathe"
)

// A Circuit configures the circuit breaker of a backend: while it is open, calls are refused without calling the tool.
type Circuit struct {
	// Failures is the number of consecutive failures that opens the circuit; 5. If it is negative the circuit never opens. A
	// timeout, the code unavailable, a panic and any error that is not a [Failure] count as failures.
	Failures int
	OpenFor  time.Duration // after which one call is let through as a probe; 30 s
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

// breaker is the circuit of one backend. Runners that share the set share it.
type breaker struct {
	mu       sync.Mutex
	failures int // in a row
	open     bool
	until    time.Time // while open: when a call may probe
	probing  bool      // one does
}

// wait returns how long calls are refused from now on; 0 if a call may go through.
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
		return time.Second // until the probe returns, at an unknown time
	}
	return 0
}

// admit lets a call through, as the probe where the circuit is open. Each is followed by report.
func (b *breaker) admit(now time.Time) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if wait = b.left(now); wait == 0 && b.open {
		b.probing = true
	}
	return wait
}

// verdict is what a call says of its backend.
type verdict uint8

const (
	nothing verdict = iota // it was cancelled
	healthy
	failing
)

func (b *breaker) report(v verdict, now time.Time, limits Circuit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	probe := b.probing
	b.probing = false
	switch v {
	case healthy:
		b.failures, b.open = 0, false
	case failing:
		b.failures++
		if limits.Failures > 0 && (probe || b.failures >= limits.Failures) {
			b.open, b.until = true, now.Add(limits.OpenFor)
		}
	case nothing:
	}
}

// checkCircuit ends a call whose backend refuses calls for another wait; 0 proceeds.
func checkCircuit(c *call, wait time.Duration) ending {
	if wait == 0 {
		return proceed
	}
	c.limitKey = keyCircuit
	c.detailString("limit", keyCircuit)
	c.detailInt("retry_after_ms", (wait + time.Millisecond - 1).Milliseconds())
	return fail(lathe.CodeUnavailable)
}

// reportBackend reports to the circuit of the tool's backend how an attempt ended.
func reportBackend(c *call, code lathe.Code) {
	b := c.entry.backend
	if b == nil {
		return
	}
	v := healthy
	switch {
	case code == lathe.CodeCancelled:
		v = nothing
	case c.broke, code == lathe.CodeTimeout, code == lathe.CodeUnavailable:
		v = failing
	}
	b.breaker.report(v, c.now, c.w.r.opts.Circuit)
}

// releasePlaces releases the places of a call whose tool was not called.
func releasePlaces(c *call) {
	e, r := c.entry, c.w.r
	if e.backend != nil {
		e.backend.breaker.report(nothing, r.now(), r.opts.Circuit)
	}
	e.leave()
}

package tool

import (
	"sync"
	"time"

	"github.com/lathe-run/lathe"
)

// A Circuit says when the calls to a backend that fails are refused without asking it.
type Circuit struct {
	// Failures in a row open the circuit; 5. Negative: it never opens. A timeout, an answer
	// unavailable, a panic and an error that is no [Failure] count.
	Failures int
	OpenFor  time.Duration // then one call is let through to see; 30 s
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

// wait says how long calls are refused; 0 where one may go through.
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
		return time.Second // until the probe is back; nobody knows when
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

// circuitOpen ends a call whose backend is not to be asked now.
func (w *Work) circuitOpen(c *call, wait time.Duration) (ended bool) {
	if wait == 0 {
		return false
	}
	c.limitKey = keyCircuit
	c.detailString("limit", keyCircuit)
	c.detailInt("retry_after_ms", (wait + time.Millisecond - 1).Milliseconds())
	return c.end(lathe.CodeUnavailable)
}

// reportBackend tells the circuit of the tool's backend how an attempt went.
func (w *Work) reportBackend(c *call) {
	b := c.entry.backend
	if b == nil {
		return
	}
	v := healthy
	switch code := c.outcome(); {
	case code == lathe.CodeCancelled:
		v = nothing
	case c.broke, code == lathe.CodeTimeout, code == lathe.CodeUnavailable:
		v = failing
	}
	b.breaker.report(v, c.now, w.r.opts.Circuit)
}

// standBack gives back the places of a call whose tool was not called after all.
func (w *Work) standBack(e *entry) {
	if e.backend != nil {
		e.backend.breaker.report(nothing, w.r.now(), w.r.opts.Circuit)
	}
	e.leave()
}

// outcome is the code of an attempt, that of the tool's own error included.
func (c *call) outcome() lathe.Code {
	if c.code == "" && c.out != nil && c.out.IsError {
		return c.out.Code
	}
	return c.code
}

package tool

import (
	"context"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
)

// keyMaxToolCalls is the config key of the limit on the calls of a run.
const keyMaxToolCalls = "max_total_tool_calls"

// reserve is stage 9: it checks the limits on calls, depth and rate and the circuit of the backend, and takes places under the limits on
// concurrency. The call's deadline starts here. The call waits for a place until its deadline at most, and is rate_limited if it gets none.
// It does not wait for a rate. The places are released when the tool returns.
func reserve(ctx context.Context, c *call) ending {
	w, e := c.w, c.entry
	if c.seq >= w.limits.MaxToolCalls {
		c.hit(keyMaxToolCalls, w.limits.MaxToolCalls)
		return fail(lathe.CodeToolCallLimit)
	}
	if w.tools.tooDeep(e) {
		c.hit("max_depth", w.tools.maxDepth)
		return fail(lathe.CodeMaxDepth)
	}
	c.timeout = w.limits.ToolTimeout
	if e.spec.Timeout > 0 {
		c.timeout = e.spec.Timeout
	}
	c.deadline, c.now = time.Now().Add(c.timeout), w.r.now() // the deadline is in the time of the machine, not of the runner's clock
	if e.rate != nil {
		if wait := e.rate.next(c.now); wait > 0 {
			c.limitKey = "rate"
			c.detailInt("retry_after_ms", (wait + time.Millisecond - 1).Milliseconds())
			return fail(lathe.CodeRateLimited)
		}
	}
	return acquirePlaces(ctx, c)
}

// acquirePlaces takes the places for one attempt, which starts at c.now. It checks the circuit of the tool's backend before and after it
// waits. If it ends the call, the call has no place.
func acquirePlaces(ctx context.Context, c *call) ending {
	e := c.entry
	if e.backend != nil {
		if end := checkCircuit(c, e.backend.breaker.wait(c.now)); end != proceed {
			return end
		}
	}
	if end := enter(ctx, c, e.slots, "concurrency"); end != proceed {
		return end
	}
	if e.backend == nil {
		return proceed
	}
	if end := enter(ctx, c, e.backend.slots, "backend_concurrency"); end != proceed {
		leave(e.slots)
		return end
	}
	if end := checkCircuit(c, e.backend.breaker.admit(c.now)); end != proceed {
		e.leave()
		return end
	}
	return proceed
}

// enter takes a place, and waits for it until the call's deadline.
func enter(ctx context.Context, c *call, slots chan struct{}, key string) ending {
	if slots == nil {
		return proceed
	}
	select {
	case slots <- struct{}{}:
		return proceed
	default:
	}
	t := time.NewTimer(time.Until(c.deadline))
	defer t.Stop()
	select {
	case slots <- struct{}{}:
		c.now = c.w.r.now()
		return proceed
	case <-t.C:
		c.hit(key, cap(slots))
		return fail(lathe.CodeRateLimited)
	case <-ctx.Done():
		return fail(lathe.CodeCancelled)
	}
}

// leave releases a place.
func leave(slots chan struct{}) {
	if slots != nil {
		<-slots
	}
}

// leave releases all places of a call of the tool.
func (e *entry) leave() {
	if e.backend != nil {
		leave(e.backend.slots)
	}
	leave(e.slots)
}

// A bucket admits rate calls per second, with bursts of the calls of one second, at least one. It is full at the start.
type bucket struct {
	mu     sync.Mutex
	rate   float64
	burst  float64
	tokens float64
	last   time.Time
}

func newBucket(rate float64) *bucket {
	burst := max(1, rate)
	return &bucket{rate: rate, burst: burst, tokens: burst}
}

// next takes a token, or returns the time to wait for one. If the clock goes back, no tokens are added.
func (b *bucket) next(now time.Time) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last.IsZero() {
		b.last = now
	}
	if since := now.Sub(b.last); since > 0 {
		b.tokens = min(b.burst, b.tokens+since.Seconds()*b.rate)
		b.last = now
	}
	if b.tokens >= 1 {
		b.tokens--
		return 0
	}
	need := min((1-b.tokens)/b.rate, 3600)
	return max(time.Duration(need*float64(time.Second)), 1)
}

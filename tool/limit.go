package tool

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
)

// keyMaxToolCalls is the config key of the limit on the calls of a run.
const keyMaxToolCalls = "max_total_tool_calls"

// limit is stage 9: remaining calls, depth, rate, the circuit of the backend, and a place to run in. The call's deadline starts
// here: it waits for a place until then at most and is rate_limited when there is none. Rates do
// not wait. Not ending the call takes its places; execute gives them back when the tool returns.
func (w *Work) limit(ctx context.Context, c *call) (ended bool) {
	if c.seq >= w.limits.MaxToolCalls {
		c.hit(keyMaxToolCalls, w.limits.MaxToolCalls)
		return c.end(lathe.CodeToolCallLimit)
	}
	e := c.entry
	if w.tooDeep(e) {
		c.hit("max_depth", max(w.limits.MaxDepth, 0))
		return c.end(lathe.CodeMaxDepth)
	}
	c.timeout = w.limits.ToolTimeout
	if e.spec.Timeout > 0 {
		c.timeout = e.spec.Timeout
	}
	c.deadline = w.look(c).Add(c.timeout)
	if e.rate != nil {
		if wait := e.rate.take(c.now); wait > 0 {
			c.limitKey = "rate"
			c.detailInt("retry_after_ms", (wait + time.Millisecond - 1).Milliseconds())
			return c.end(lathe.CodeRateLimited)
		}
	}
	return w.takePlaces(ctx, c)
}

// look reads the runner's clock for the call, and returns what the machine's says.
func (w *Work) look(c *call) (real time.Time) {
	real = time.Now()
	c.now = real
	if w.r.ownClock {
		c.now = w.r.now()
	}
	return real
}

// lookAgain brings c.now up to date, at half the cost where the machine's clock is the runner's.
func (w *Work) lookAgain(c *call) {
	if w.r.ownClock {
		c.now = w.r.now()
		return
	}
	c.now = c.now.Add(time.Since(c.now))
}

// takePlaces takes the places of one attempt, which begins at c.now, and asks the circuit of the tool's backend before and
// after it waits.
func (w *Work) takePlaces(ctx context.Context, c *call) (ended bool) {
	e := c.entry
	if e.backend != nil && w.circuitOpen(c, e.backend.breaker.wait(c.now)) {
		return true
	}
	if w.enter(ctx, c, e.slots, "concurrency") {
		return true
	}
	if e.backend == nil {
		return false
	}
	if w.enter(ctx, c, e.backend.slots, "backend_concurrency") {
		leave(e.slots)
		return true
	}
	if w.circuitOpen(c, e.backend.breaker.admit(c.now)) {
		e.leave()
		return true
	}
	return false
}

// tooDeep reports whether the tool would start a run where none may be started.
func (w *Work) tooDeep(e *entry) bool {
	return e.startsRun && w.info.Depth >= max(w.limits.MaxDepth, 0)
}

// enter takes a place, waiting until the call's deadline.
func (w *Work) enter(ctx context.Context, c *call, slots chan struct{}, key string) (ended bool) {
	if slots == nil {
		return false
	}
	select {
	case slots <- struct{}{}:
		return false
	default:
	}
	t := time.NewTimer(time.Until(c.deadline))
	defer t.Stop()
	select {
	case slots <- struct{}{}:
		w.lookAgain(c)
		return false
	case <-t.C:
		c.hit(key, cap(slots))
		return c.end(lathe.CodeRateLimited)
	case <-ctx.Done():
		return c.end(lathe.CodeCancelled)
	}
}

// leave gives a place back.
func leave(slots chan struct{}) {
	if slots != nil {
		<-slots
	}
}

// leave gives back all places that limit took for a call of the tool.
func (e *entry) leave() {
	if e.backend != nil {
		leave(e.backend.slots)
	}
	leave(e.slots)
}

// A bucket lets through rate calls a second, and as many at once as come in one second, one at
// least. It is full at first.
type bucket struct {
	mu     sync.Mutex
	rate   float64
	burst  float64
	tokens float64
	last   time.Time
}

func newBucket(rate float64) *bucket {
	burst := math.Max(1, rate)
	return &bucket{rate: rate, burst: burst, tokens: burst}
}

// take takes a token, or says how long until there is one. A clock that goes back adds nothing.
func (b *bucket) take(now time.Time) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if since := now.Sub(b.last); b.last.IsZero() || since > 0 {
		if !b.last.IsZero() {
			b.tokens = math.Min(b.burst, b.tokens+since.Seconds()*b.rate)
		}
		b.last = now
	}
	if b.tokens >= 1 {
		b.tokens--
		return 0
	}
	need := (1 - b.tokens) / b.rate
	if need > 3600 {
		need = 3600
	}
	return max(time.Duration(need*float64(time.Second)), 1)
}

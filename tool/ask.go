package tool

import (
	"context"
	"time"
)

// pausingAsker is the Asker of a call. The timeout of the tool does not run while it asks.
type pausingAsker struct {
	Asker
	call *callContext
}

// Ask implements Asker.
func (p pausingAsker) Ask(ctx context.Context, questions map[string]Question) (map[string]Answer, error) {
	p.call.pause()
	defer p.call.resume()
	return p.Asker.Ask(ctx, questions)
}

// asking is how long a tool has waited for answers. Few tools ask.
type asking struct {
	open  int           // questions that wait for their answer
	since time.Time     // when the first of them was asked
	took  time.Duration // that earlier ones took
}

func (c *callContext) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking == nil {
		c.asking = &asking{}
	}
	if c.asking.open == 0 {
		c.asking.since = time.Now()
	}
	c.asking.open++
}

func (c *callContext) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking.open--
	if c.asking.open == 0 {
		c.asking.took += time.Since(c.asking.since)
	}
}

// askingLook is how soon, at least, the deadline of a tool that asks is looked at again.
const askingLook = time.Second

// left is how much of its time the tool still has.
func (c *callContext) left() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := time.Until(c.deadline)
	if a := c.asking; a != nil {
		left += a.took
		if a.open > 0 {
			left = max(left+time.Since(a.since), askingLook)
		}
	}
	return left
}

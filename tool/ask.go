package tool

import (
	"context"
	"time"
)

// pausingAsker is the Asker of a call. The timeout of the tool is paused during Ask.
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

// asking measures the time for which a tool has waited for answers.
type asking struct {
	open  int           // number of questions without an answer
	since time.Time     // when the first of the open questions was asked
	took  time.Duration // total time of earlier questions
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

// askingLook is the minimum time until the deadline of a tool with an open question is checked again.
const askingLook = time.Second

// left returns the remaining time of the tool.
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

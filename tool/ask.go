package tool

import (
	"context"
	"time"

	"github.com/lathe-run/lathe"
)

// patient is the Asker of a call: while it asks, the time of the tool stands still.
type patient struct {
	lathe.Asker
	call *callContext
}

// Ask implements lathe.Asker.
func (p patient) Ask(ctx context.Context, questions map[string]lathe.Question) (map[string]lathe.Answer, error) {
	p.call.pause()
	defer p.call.resume()
	return p.Asker.Ask(ctx, questions)
}

func (c *callContext) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking == 0 {
		c.askedAt = time.Now()
	}
	c.asking++
}

func (c *callContext) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking--
	if c.asking == 0 {
		c.extra += time.Since(c.askedAt)
	}
}

// askingLook is how soon, at least, the deadline of a tool that asks is looked at again.
const askingLook = time.Second

// left is how much of its time the tool still has.
func (c *callContext) left() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := time.Until(c.deadline) + c.extra
	if c.asking > 0 {
		left = max(left+time.Since(c.askedAt), askingLook)
	}
	return left
}

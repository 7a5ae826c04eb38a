package lazy

import (
	"context"
	"sync"
	"time"
)

// A Deadline is a [context.Context] that ends at a time or when Cancel is called. It makes its timer and its channel when Done
// is first called: a function that only asks for Err costs neither.
type Deadline struct {
	parent context.Context // which never ends
	at     time.Time

	mu       sync.Mutex
	made     context.Context // nil: nothing has needed it
	stop     context.CancelFunc
	canceled bool
}

var _ context.Context = (*Deadline)(nil)

// Timeout returns a context that ends after d. It has the values of parent. parent must never end: see [context.WithoutCancel].
// The caller must call Cancel, as for [context.WithTimeout].
func Timeout(parent context.Context, d time.Duration) *Deadline {
	return &Deadline{parent: parent, at: time.Now().Add(d)}
}

// Cancel ends the context. Further calls do nothing.
func (c *Deadline) Cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.canceled = true; c.stop != nil {
		c.stop()
	}
}

// Deadline implements [context.Context].
func (c *Deadline) Deadline() (time.Time, bool) { return c.at, true }

// Done implements [context.Context].
func (c *Deadline) Done() <-chan struct{} { return c.make().Done() }

// Err implements [context.Context].
func (c *Deadline) Err() error {
	c.mu.Lock()
	made, canceled := c.made, c.canceled
	c.mu.Unlock()
	switch {
	case made != nil:
		return made.Err()
	case canceled:
		return context.Canceled
	case time.Now().Before(c.at):
		return nil
	}
	return c.make().Err() // so that no later Cancel changes it
}

// Value implements [context.Context].
func (c *Deadline) Value(key any) any {
	c.mu.Lock()
	made := c.made
	c.mu.Unlock()
	if made != nil { // with which package context finds what it has to cancel
		return made.Value(key)
	}
	return c.parent.Value(key)
}

// make returns the context of the standard library that this one stands for.
func (c *Deadline) make() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made != nil {
		return c.made
	}
	if c.canceled { // it ended so, even if its time has passed since then
		c.made, c.stop = context.WithCancel(c.parent)
		c.stop()
		return c.made
	}
	c.made, c.stop = context.WithDeadline(c.parent, c.at)
	return c.made
}

package tool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
)

// callContext is the context of one tool call. It is what context.WithDeadline would give, less the
// timer, the cancel functions and the entry in the parent's table of children: the goroutine that
// waits for the tool watches the deadline and the parent, and ends the context itself.
type callContext struct {
	parent   context.Context // has the CallMeta
	deadline time.Time
	scope    *Scope // of a call that may start a run
	done     chan struct{}

	mu     sync.Mutex
	err    error
	after  map[*func()]struct{}
	asking *asking // nil: it never asked
}

var _ context.Context = (*callContext)(nil)

// Deadline returns the earlier of the call's deadline and the parent's. The time in which the tool
// waited for answers is added to it.
func (c *callContext) Deadline() (time.Time, bool) {
	own := c.deadline
	c.mu.Lock()
	if c.asking != nil {
		own = own.Add(c.asking.took)
	}
	c.mu.Unlock()
	if d, ok := c.parent.Deadline(); ok && d.Before(own) {
		return d, true
	}
	return own, true
}

// Done returns the channel that is closed when the call ends.
func (c *callContext) Done() <-chan struct{} { return c.done }

// Err says why the call ended, nil while it runs.
func (c *callContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Value returns the Scope for its key, and else the parent's value. An Asker becomes one that pauses the timeout of the call.
func (c *callContext) Value(key any) any {
	if _, ok := key.(scopeKey); ok {
		return c.scope
	}
	v := c.parent.Value(key)
	if a, ok := v.(Asker); ok {
		return pausingAsker{a, c}
	}
	return v
}

// meta returns what the tool gets to know about the call.
func (c *call) meta() *lathe.CallMeta {
	run := c.w.info
	return &lathe.CallMeta{RunID: run.RunID, RequestID: run.RequestID, SessionID: run.SessionID, CallID: c.ID, Tool: c.entry.spec.Name,
		IdempotencyKey: idempotencyKey(run.RunID, c.ID), Depth: run.Depth, Principal: run.Principal, Profile: run.Profile}
}

// idempotencyKey is the same for every attempt of one call: hex of half of a SHA-256.
func idempotencyKey(runID, callID string) string {
	sum := sha256.Sum256([]byte("lathe/call/1\x00" + runID + "\x00" + callID))
	return hex.EncodeToString(sum[:16])
}

// AfterFunc runs f in a goroutine of its own once the context is done. Contexts derived from this
// one use it: without it each of them would cost a goroutine that waits.
func (c *callContext) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	if c.after == nil {
		c.after = map[*func()]struct{}{}
	}
	key := &f
	c.after[key] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, pending := c.after[key]
		delete(c.after, key)
		return pending
	}
}

// end ends the context; only the first call counts.
func (c *callContext) end(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	close(c.done)
	after := c.after
	c.after = nil
	c.mu.Unlock()
	for f := range after {
		go (*f)()
	}
}

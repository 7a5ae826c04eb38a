package tool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// callContext is the context of one tool call. It has the same effect as context.WithDeadline, but without a timer, cancel functions and an
// entry in the parent: the goroutine that waits for the tool observes the deadline and the parent, and ends the context.
type callContext struct {
	parent   context.Context // has the CallMeta
	deadline time.Time
	scope    *Scope // nil unless the tool may start runs
	done     chan struct{}
	back     chan *event.ToolCallProgress // newest report of the tool; closed when the tool has returned

	mu       sync.Mutex
	err      error
	after    map[*func()]struct{}
	asking   *asking   // nil: the tool asked no questions
	reported time.Time // of the last report
}

var _ context.Context = (*callContext)(nil)

// Deadline returns the earlier of the call's and the parent's deadline. The call's deadline is extended by the time for which the tool
// waited for answers.
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

// Err returns why the call ended, or nil while it is in progress.
func (c *callContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Value implements [context.Context]. It returns the [Scope] of the call for the key of [ScopeFrom], c itself for the key of
// [ReportProgress], and the value of the parent context for any other key. It wraps an [Asker] of the parent in one that pauses the timeout
// of the call.
func (c *callContext) Value(key any) any {
	if _, ok := key.(scopeKey); ok {
		return c.scope
	}
	if _, ok := key.(progressKey); ok {
		return c
	}
	v := c.parent.Value(key)
	if a, ok := v.(Asker); ok {
		return pausingAsker{a, c}
	}
	return v
}

// meta returns the CallMeta for the tool.
func (c *call) meta() *lathe.CallMeta {
	run := c.w.info
	return &lathe.CallMeta{RunID: run.RunID, RequestID: run.RequestID, SessionID: run.SessionID, CallID: c.ID, Tool: c.entry.spec.Name,
		IdempotencyKey: idempotencyKey(run.RunID, c.ID), Depth: run.Depth, Principal: run.Principal, Profile: run.Profile}
}

// idempotencyKey returns the same key for every attempt of one call: the first half of a SHA-256 in hexadecimal.
func idempotencyKey(runID, callID string) string {
	sum := sha256.Sum256([]byte("lathe/call/1\x00" + runID + "\x00" + callID))
	return hex.EncodeToString(sum[:16])
}

// AfterFunc calls f in its own goroutine after the context is done. Derived contexts use it; without it, each of them would need a
// goroutine.
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

// end ends the context. Only the first call has an effect.
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

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
	parent   context.Context
	deadline time.Time
	run      *lathe.RunInfo
	entry    *entry
	id       string // of the call
	scope    *Scope // of a call that may start a run

	mu     sync.Mutex
	meta   *lathe.CallMeta // made when first asked for, as done is
	done   chan struct{}
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
func (c *callContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		}
	}
	return c.done
}

// Err says why the call ended, nil while it runs.
func (c *callContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// unmade stands for the CallMeta of a call until it is asked for.
var unmade = &lathe.CallMeta{}

// Value returns the CallMeta and the Scope for their keys, and else the parent's value. An Asker becomes one that
// pauses the timeout of the call.
func (c *callContext) Value(key any) any {
	if _, ok := key.(scopeKey); ok {
		return c.scope
	}
	v := lathe.WithCallMeta(c.parent, unmade).Value(key)
	if v == any(unmade) {
		return c.makeMeta()
	}
	if a, ok := v.(Asker); ok {
		return pausingAsker{a, c}
	}
	return v
}

func (c *callContext) makeMeta() *lathe.CallMeta {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.meta == nil {
		c.meta = &lathe.CallMeta{RunID: c.run.RunID, RequestID: c.run.RequestID, SessionID: c.run.SessionID, CallID: c.id,
			Tool: c.entry.spec.Name, IdempotencyKey: idempotencyKey(c.run.RunID, c.id), Depth: c.run.Depth, Principal: c.run.Principal, Profile: c.run.Profile}
	}
	return c.meta
}

// idempotencyKey is the same for every attempt of one call: hex of half of a SHA-256.
func idempotencyKey(runID, callID string) string {
	var buf [128]byte
	b := append(buf[:0], "lathe/call/1\x00"...)
	b = append(append(b, runID...), 0)
	sum := sha256.Sum256(append(b, callID...))
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
	if c.done != nil {
		close(c.done)
	}
	after := c.after
	c.after = nil
	c.mu.Unlock()
	for f := range after {
		go (*f)()
	}
}

package remotetool

import (
	"context"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/remote"
)

// This file queues the call of a run and waits for its end, by notifications and, as these may be lost, by polling.

// watch returns a channel that receives a value when the row with this key may have changed.
func (c *Catalogue) watch(key string) (woken <-chan struct{}, stop func()) {
	w := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[key] == nil {
		c.waiting[key] = map[chan struct{}]struct{}{}
	}
	c.waiting[key][w] = struct{}{}
	return w, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting[key], w)
		if len(c.waiting[key]) == 0 {
			delete(c.waiting, key)
		}
	}
}

func (c *Catalogue) wake(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.waiting[key] {
		select {
		case w <- struct{}{}:
		default: // the channel has a value already
		}
	}
}

// await waits until the call or ctx has ended. If ctx ends first, it cancels the call, unless another process resumes the run. A call with
// an unknown outcome remains unknown until no late result is accepted any more.
func (c *Catalogue) await(ctx context.Context, row *remote.Call, woken <-chan struct{}) (*remote.Call, error) {
	key, wait := row.Key, c.opts.Poll
	var unknown time.Time // when the state became unknown
	for {
		mayGetLateResult := row.State == remote.Unknown && !row.Decided
		if !mayGetLateResult && row.State.Ended() {
			return row, nil
		}
		if mayGetLateResult && unknown.IsZero() {
			unknown = time.Now()
		}
		if mayGetLateResult && time.Since(unknown) >= c.opts.Late {
			return c.queue.DecideCall(ctx, key)
		}
		select {
		case <-woken:
			wait = c.opts.Poll
		case <-time.After(wait):
			wait = min(2*wait, 8*c.opts.Poll)
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return c.leave(ctx, key)
		}
		next, err := c.queue.FindCall(ctx, key)
		switch {
		case errors.Is(err, lathe.ErrNotFound):
			return nil, lathe.CodeInterrupted.Wrap("remote: wait", err) // the run was deleted
		case err == nil:
			row = next
		}
	}
}

// defaultTime is the time to start of a call whose context has no deadline.
const defaultTime = 30 * time.Second

// put queues a call. It retries while the store cannot be reached: a PutCall that returned an error may have queued the call, so the call
// must not be reported as not queued.
func (c *Catalogue) put(ctx context.Context, call *remote.Call, woken <-chan struct{}) (*remote.Call, error) {
	for {
		within := defaultTime
		if d, ok := ctx.Deadline(); ok {
			within = time.Until(d)
		}
		row, err := c.queue.PutCall(ctx, call, within)
		if err == nil {
			return row, nil
		}
		if ctx.Err() == nil {
			if lathe.CodeOf(err) != lathe.CodeUnavailable {
				return nil, err
			}
			c.pause(ctx, woken)
		}
		if ctx.Err() != nil {
			return c.leave(ctx, call.Key)
		}
	}
}

// find returns the row with this key. It retries while the store cannot be reached.
func (c *Catalogue) find(ctx context.Context, key string, woken <-chan struct{}) (*remote.Call, error) {
	for {
		row, err := c.queue.FindCall(ctx, key)
		if err == nil || ctx.Err() != nil || lathe.CodeOf(err) != lathe.CodeUnavailable {
			return row, err
		}
		c.pause(ctx, woken)
	}
}

// pause blocks for Options.Poll, until the row may have changed, or until ctx is done.
func (c *Catalogue) pause(ctx context.Context, woken <-chan struct{}) {
	select {
	case <-woken:
	case <-time.After(c.opts.Poll):
	case <-ctx.Done():
	}
}

// cancelTime is the timeout for the cancellation of a call whose run has ended.
const cancelTime = 5 * time.Second

// leave ends the wait for a call whose context is done.
func (c *Catalogue) leave(ctx context.Context, key string) (*remote.Call, error) {
	cause := ctx.Err()
	if errors.Is(context.Cause(ctx), lathe.ErrLeft) {
		return nil, cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer cancel()
	row, err := c.queue.CancelCall(ctx, key)
	if err == nil && row.State == remote.Done {
		return row, nil // the result arrived before the cancellation
	}
	return nil, cause
}

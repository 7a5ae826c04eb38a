package workers

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire/workers"
	"github.com/lathe-run/lathe/remote"
)

const (
	// maxClaims bounds the calls of one ClaimCalls.
	maxClaims = 32
	// maxOutbox bounds the frames that are queued for a worker.
	maxOutbox = 2 * workers.MaxHeld
	// maxStoring bounds the results of one worker that are being stored at the same time.
	maxStoring = 64
	// refusedPause is the time for which a worker gets no calls after it has reported that it did not run a call.
	refusedPause = time.Second
	// returnTime is the time limit for returning claimed calls at the end of a connection.
	returnTime = 5 * time.Second
)

// nudge wakes the dispatch loop to look for calls. It returns false if the loop has already been woken.
func (c *conn) nudge() bool {
	select {
	case c.kick <- struct{}{}:
		return true
	default:
		return false
	}
}

// wakeFor wakes dispatch to claim a call of that definition, if the worker serves it and has free capacity. It returns whether it did; if
// dispatch has already been woken, it returns false.
func (c *conn) wakeFor(definition string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.free() > 0 && slices.Contains(c.serves, definition) && c.nudge()
}

// free returns how many more calls the worker may get. c.mu is held.
func (c *conn) free() int {
	if c.draining || c.id == "" || time.Now().Before(c.pause) {
		return 0
	}
	return c.credit - len(c.held)
}

// wantCancelled requests that dispatch sends a cancel frame for a call, if the worker has been assigned the call.
func (c *conn) wantCancelled(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.held {
		if r.Key == key {
			c.unwanted = append(c.unwanted, key)
			c.nudge()
		}
	}
}

// dispatch claims calls for the worker and sends cancel requests, until the connection ends.
func (c *conn) dispatch() {
	for c.ctx.Err() == nil {
		c.sendCancels()
		c.mu.Lock()
		free, serves := min(c.free(), maxClaims), c.serves
		c.mu.Unlock()
		if free > 0 && len(serves) > 0 && c.claim(serves, free) == free {
			continue // there may be more calls
		}
		select {
		case <-c.kick:
		case <-time.After(c.opts.Poll):
		case <-c.ctx.Done():
		}
	}
}

func (c *conn) sendCancels() {
	c.mu.Lock()
	var refs []remote.Ref
	for r := range c.held {
		if slices.Contains(c.unwanted, r.Key) {
			refs = append(refs, c.ref(r))
		}
	}
	c.unwanted = nil
	c.mu.Unlock()
	c.postCancel(refs)
}

// claim claims up to limit calls from the queue and sends them. It returns their number.
func (c *conn) claim(serves []string, limit int) int {
	calls, err := c.opts.Queue.ClaimCalls(c.ctx, c.id, serves, c.opts.Lease, limit)
	if err != nil {
		if c.ctx.Err() == nil {
			c.opts.Log.Warn("calls cannot be claimed for the moment", "worker", c.id, "code", lathe.CodeOf(err))
		}
		return 0
	}
	c.mu.Lock()
	for i := range calls {
		c.held[refOf(&calls[i])] = time.Now() // from here on, a cancel request finds the call
	}
	c.mu.Unlock()
	for i := range calls {
		c.work.Go(func() { c.send(&calls[i]) }) // in parallel: stores commit concurrent writes together
	}
	return len(calls)
}

func refOf(call *remote.Call) workers.Ref {
	return workers.Ref{Key: call.Key, Attempt: call.Attempt}
}

// send records the start of the call in the queue and then sends it to the worker. A call whose start was not recorded is not sent. After
// the start was recorded, the call belongs to the worker, even if the frame does not arrive.
func (c *conn) send(call *remote.Call) {
	deadline := time.Now().Add(call.Left)
	ref := refOf(call)
	if err := c.opts.Queue.StartCall(c.ctx, call.Ref(), c.opts.Lease); err != nil {
		c.forget(ref)
		switch {
		case c.ctx.Err() != nil:
			c.handler.returnCall(c.ctx, call)
		case !errors.Is(err, lathe.ErrConflict):
			c.opts.Log.Warn("a call cannot be started for the moment", "worker", c.id, "code", lathe.CodeOf(err))
		}
		return
	}
	c.write(&workers.Frame{Type: workers.Call, Ref: ref, AtMS: c.at(), Invoke: &workers.Invoke{Tool: call.Tool, Arguments: call.Arguments,
		RunID: call.RunID, CallID: call.CallID, RequestID: call.RequestID, SessionID: call.SessionID, Depth: call.Depth, Traceparent: call.Trace.Parent, Tracestate: call.Trace.State,
		DeadlineMS: deadline.Sub(c.began).Milliseconds()}})
}

// returnCall returns a call that was not sent to the queue.
func (h *Handler) returnCall(ctx context.Context, call *remote.Call) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnTime)
	defer cancel()
	_ = h.opts.Queue.ReturnCall(ctx, call.Ref()) // on failure, the lease expires
}

// forget removes the call from those assigned to the worker.
func (c *conn) forget(ref workers.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, ref)
}

// settle stores the result of a call and acknowledges it to the worker. If the store cannot be reached, it closes the connection: the
// worker reconnects and sends the result again.
func (c *conn) settle(f *workers.Frame) {
	err := c.handler.store(c.ctx, c.ref(f.Ref), f)
	if isNotRun(f) {
		c.mu.Lock()
		c.pause = time.Now().Add(refusedPause)
		c.mu.Unlock()
	}
	refused := errors.Is(err, lathe.ErrConflict) || errors.Is(err, lathe.ErrNotFound) || lathe.CodeOf(err) == lathe.CodeInvalidRequest
	if err != nil && !refused {
		if c.ctx.Err() == nil {
			c.cancel(c.unavailable("keep the result of", err))
		}
		return
	}
	if refused {
		c.opts.Log.Warn("a result does not count: the call is not this worker's any more", "worker", c.id, "attempt", f.Attempt)
	}
	c.forget(f.Ref)
	c.handler.settled(c.pool.Name, f, !refused)
	c.write(&workers.Frame{Type: workers.Ack, Ref: f.Ref, Taken: !refused})
	c.nudge()
}

// isNotRun reports whether a frame says that the worker did not run the call.
func isNotRun(f *workers.Frame) bool { return f.Type == workers.Error && f.NotRun }

// store stores the result that a frame reports, or returns the call to the queue if the worker did not run it.
func (h *Handler) store(ctx context.Context, ref remote.Ref, f *workers.Frame) error {
	switch queue := h.opts.Queue; {
	case isNotRun(f):
		return queue.ReturnCall(ctx, ref)
	case f.Type == workers.Error:
		return queue.FinishCall(ctx, ref, &remote.Result{IsError: true, Code: f.Code, Detail: f.Detail})
	case f.Output == nil:
		return queue.FinishCall(ctx, ref, &remote.Result{IsError: true, Code: lathe.CodeInvalidOutput})
	default:
		return queue.FinishCall(ctx, ref, f.Output)
	}
}

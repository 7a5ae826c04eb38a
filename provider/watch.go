package provider

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Causes with which a watch cancels an attempt.
var (
	errClientTimeout = errors.New("client_timeout: no answer in time")
	errOpenTimeout   = errors.New("open_timeout: no connection in time")
	errReadTimeout   = errors.New("read_timeout: the server was silent for too long")
	errDrained       = errors.New("the response did not end in time")
)

// A watch cancels an attempt when it takes too long. It has one timer and no goroutine: the timer
// is set for the next moment at which something could be due, and when it fires it looks whether
// something is. A timer that fires late, into a later attempt, therefore does no harm.
type watch struct {
	client, open, read time.Duration // 0: off

	mu       sync.Mutex
	timer    *time.Timer
	fires    time.Time               // when the timer fires; zero: it is not set
	cancel   context.CancelCauseFunc // of the attempt; nil between attempts
	body     *payloadReader          // tells whether the attempt has a connection
	idle     bool                    // silence is counted, not the consumer's own time
	deadline time.Time               // of the call's first delta; zero: none
	started  time.Time               // the attempt
	last     time.Time               // when the silence began
	drain    time.Time               // zero until the rest of the response is waited for
}

// begin starts the clock of a call.
func (w *watch) begin(now time.Time) {
	w.deadline = time.Time{}
	if w.client > 0 {
		w.deadline = now.Add(w.client)
	}
}

// begun notes that the first delta arrived: from now on only read_timeout ends the call.
func (w *watch) begun() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deadline = time.Time{}
}

// remaining returns the time left to the call, and false where it has no limit.
func (w *watch) remaining() (time.Duration, bool) {
	if w.deadline.IsZero() {
		return 0, false
	}
	return time.Until(w.deadline), true
}

// arm watches an attempt that starts now until disarm.
func (w *watch) arm(now time.Time, cancel context.CancelCauseFunc, body *payloadReader) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel, w.body, w.idle = cancel, body, true
	w.started, w.last, w.drain = now, now, time.Time{}
	w.schedule(now)
}

// quiet reports whether bytes need not be noticed, because silence has no limit.
func (w *watch) quiet() bool { return w.read == 0 }

// silence says that bytes are waited for from now on, or that some came.
func (w *watch) silence(on bool) {
	if w.quiet() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle = on
	if on {
		w.last = w.started.Add(time.Since(w.started)) // by the monotonic clock alone
	}
}

// draining gives the rest of the response d from now.
func (w *watch) draining(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel != nil {
		now := time.Now()
		w.drain = now.Add(d)
		w.set(now, w.drain)
	}
}

// disarm ends the watching of the attempt.
func (w *watch) disarm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel, w.body, w.fires = nil, nil, time.Time{}
	if w.timer != nil {
		w.timer.Stop()
	}
}

// schedule looks what is due, cancels the attempt for it, or sets the timer for what is due next.
// w.mu is held.
func (w *watch) schedule(now time.Time) {
	sent, ok := w.body.lastRead()
	var next time.Time
	due := func(at time.Time, cause error) bool {
		if !at.After(now) {
			w.cancel(cause)
			w.cancel = nil
			return true
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
		return false
	}
	if !w.drain.IsZero() && due(w.drain, errDrained) {
		return
	}
	if !w.deadline.IsZero() && due(w.deadline, errClientTimeout) {
		return
	}
	if !ok && w.open > 0 && due(w.started.Add(w.open), errOpenTimeout) {
		return
	}
	if !w.quiet() {
		last := w.last
		if last.Before(sent) {
			last = sent
		}
		if !ok || !w.idle {
			last = now // nothing is waited for: look again a whole read timeout later
		}
		if due(last.Add(w.read), errReadTimeout) {
			return
		}
	}
	if !next.IsZero() {
		w.set(now, next)
	}
}

// set makes the timer fire at next or earlier. The caller holds w.mu.
func (w *watch) set(now, next time.Time) {
	switch {
	case !w.fires.IsZero() && !w.fires.After(next):
		return
	case w.timer == nil:
		w.timer = time.AfterFunc(next.Sub(now), w.fire)
	default:
		w.timer.Reset(next.Sub(now))
	}
	w.fires = next
}

func (w *watch) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fires = time.Time{}
	if w.cancel != nil {
		w.schedule(time.Now())
	}
}

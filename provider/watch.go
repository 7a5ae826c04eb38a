package provider

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Causes with which a watch cancels the context of an attempt.
var (
	errClientTimeout = errors.New("client_timeout: no answer in time")
	errOpenTimeout   = errors.New("open_timeout: no connection in time")
	errReadTimeout   = errors.New("read_timeout: the server was silent for too long")
	errNoEnd         = errors.New("the server sent no end mark after its finish reason")
	errDrained       = errors.New("the response did not end in time")
)

// A watch cancels an attempt that exceeds a timeout. Each timeout has a timer, which is nil if the timeout is disabled.
type watch struct {
	cancel context.CancelCauseFunc
	read   time.Duration

	client, open, drain *time.Timer

	mu        sync.Mutex
	deadline  time.Time   // of the call's first delta; zero if none exists
	silent    *time.Timer // of read_timeout
	waiting   bool        // a read of the server is blocked: time that the consumer takes does not count
	connected bool        // the transport has read from the body of the request
	ends      bool        // the answer has its finish reason
}

// newWatch starts the timers of an attempt, which run until stop. A zero deadline disables client_timeout.
func newWatch(cancel context.CancelCauseFunc, deadline time.Time, o *Options) *watch {
	w := &watch{cancel: cancel, deadline: deadline, read: o.Timeouts.Read, waiting: true}
	if !deadline.IsZero() {
		w.client = time.AfterFunc(time.Until(deadline), func() { cancel(errClientTimeout) })
	}
	if o.Timeouts.Open > 0 {
		w.open = time.AfterFunc(o.Timeouts.Open, func() { w.expire(errOpenTimeout) })
	}
	return w
}

// expire cancels the attempt with cause, or with errClientTimeout if the deadline of the call has passed, too.
func (w *watch) expire(cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.deadline.IsZero() && !time.Now().Before(w.deadline) {
		cause = errClientTimeout
	}
	w.cancel(cause)
}

// begun records the first delta: from now on only read_timeout applies.
func (w *watch) begun() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deadline = time.Time{}
	stop(w.client)
}

// connect records that the transport reads the body of the request, so that it has a connection. It restarts the timer of read_timeout.
func (w *watch) connect() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.connected = true
	stop(w.open)
	w.restart()
}

// sent reports whether connect was called.
func (w *watch) sent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.connected
}

// readBegins records that a read of the server begins.
func (w *watch) readBegins() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = true
	w.restart()
}

// readEnds records that a read of the server has returned.
func (w *watch) readEnds() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = false
	w.restart()
}

// restart restarts or stops the timer of read_timeout. The caller must hold w.mu.
func (w *watch) restart() {
	switch {
	case w.read <= 0:
	case !w.waiting || !w.connected:
		stop(w.silent)
	case w.silent == nil:
		w.silent = time.AfterFunc(w.read, w.silenced)
	default:
		w.silent.Reset(w.read)
	}
}

// silenced cancels the attempt after a silence of the server.
func (w *watch) silenced() {
	w.mu.Lock()
	ends := w.ends
	w.mu.Unlock()
	if ends {
		w.cancel(errNoEnd)
		return
	}
	w.expire(errReadTimeout)
}

// finished records that the answer has its finish reason, so that only its usage and its end mark can follow. From the next read on, the
// server may be silent for endTime only.
func (w *watch) finished() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = true
	if w.read <= 0 || w.read > endTime {
		w.read = endTime
	}
}

// draining sets the timeout of reading the rest of the response, from now.
func (w *watch) draining(d time.Duration) {
	w.drain = time.AfterFunc(d, func() { w.cancel(errDrained) })
}

// stop stops all timers.
func (w *watch) stop() {
	w.readEnds()
	for _, t := range [...]*time.Timer{w.client, w.open, w.drain} {
		stop(t)
	}
}

func stop(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}

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

// A watch cancels an attempt when it takes too long. Each limit has a timer, which is nil if the limit is off.
type watch struct {
	cancel context.CancelCauseFunc
	read   time.Duration

	client, open, drain *time.Timer

	mu        sync.Mutex
	deadline  time.Time // of the call's first delta; zero: none
	silent    *time.Timer
	waiting   bool // for the server: its silence counts, and not the consumer's own time
	connected bool // a transport was at work on the body of the request
}

// newWatch watches an attempt that starts now until stop. A zero deadline is none.
func newWatch(cancel context.CancelCauseFunc, deadline time.Time, o *Options) *watch {
	w := &watch{cancel: cancel, deadline: deadline, read: o.ReadTimeout, waiting: true}
	if !deadline.IsZero() {
		w.client = time.AfterFunc(time.Until(deadline), func() { cancel(errClientTimeout) })
	}
	if o.OpenTimeout > 0 {
		w.open = time.AfterFunc(o.OpenTimeout, func() { w.expire(errOpenTimeout) })
	}
	return w
}

// expire cancels the attempt. If the time of the call is over, too, that is the cause.
func (w *watch) expire(cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.deadline.IsZero() && !time.Now().Before(w.deadline) {
		cause = errClientTimeout
	}
	w.cancel(cause)
}

// begun notes that the first delta arrived: from now on only read_timeout ends the call.
func (w *watch) begun() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deadline = time.Time{}
	stop(w.client)
}

// connect notes that a transport is at work on the body of the request: it has a connection, and is not silent.
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

// silence says that bytes are waited for from now on, or that some came.
func (w *watch) silence(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = on
	w.restart()
}

// restart begins to count silence, or ends it. The caller holds w.mu.
func (w *watch) restart() {
	switch {
	case w.read <= 0:
	case !w.waiting || !w.connected:
		stop(w.silent)
	case w.silent == nil:
		w.silent = time.AfterFunc(w.read, func() { w.expire(errReadTimeout) })
	default:
		w.silent.Reset(w.read)
	}
}

// draining gives the rest of the response d from now.
func (w *watch) draining(d time.Duration) {
	w.drain = time.AfterFunc(d, func() { w.cancel(errDrained) })
}

// stop ends the watching.
func (w *watch) stop() {
	w.silence(false)
	for _, t := range [...]*time.Timer{w.client, w.open, w.drain} {
		stop(t)
	}
}

func stop(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}

package mcptool

import (
	"sync"
	"time"
)

// An idleTimer calls a function after a given time without reset.
type idleTimer struct {
	mu      sync.Mutex
	timer   *time.Timer
	after   time.Duration
	stopped bool
}

// newIdleTimer returns a timer that calls expired after the time after without reset. If expired returns false, the timer starts again.
func newIdleTimer(after time.Duration, expired func() bool) *idleTimer {
	t := &idleTimer{after: after}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(after, func() {
		if !expired() {
			t.reset()
		}
	})
	return t
}

func (t *idleTimer) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stopped {
		t.timer.Reset(t.after)
	}
}

func (t *idleTimer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.timer.Stop()
}

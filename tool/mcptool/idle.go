package mcptool

import (
	"sync"
	"time"
)

// An idleTimer fires when nothing was received for a given time.
type idleTimer struct {
	mu      sync.Mutex
	timer   *time.Timer
	after   time.Duration
	stopped bool
}

// newIdleTimer calls expired after a while without reset. Where that returns false, it is called again
// after the next while.
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

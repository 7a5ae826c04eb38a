package store

import (
	"context"
	"sync"

	"github.com/lathe-run/lathe/remote"
)

// maxNotifications bounds the notifications that are buffered for one watcher. Those beyond it are dropped.
const maxNotifications = 1_024

// CallNotifier delivers the notifications of a [remote.Queue] within a process. The zero value has no watchers.
type CallNotifier struct {
	mu       sync.Mutex
	watchers map[chan remote.Notification]struct{}
}

// Notify delivers a notification to all current watchers. It does not wait for them.
func (h *CallNotifier) Notify(n remote.Notification) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		select {
		case w <- n:
		default:
		}
	}
}

// Watch calls fn with each notification until ctx is done.
func (h *CallNotifier) Watch(ctx context.Context, fn func(remote.Notification)) {
	w := make(chan remote.Notification, maxNotifications)
	h.mu.Lock()
	if h.watchers == nil {
		h.watchers = map[chan remote.Notification]struct{}{}
	}
	h.watchers[w] = struct{}{}
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers, w)
	}()
	for {
		select {
		case n := <-w:
			fn(n)
		case <-ctx.Done():
			return
		}
	}
}

package store

import (
	"context"
	"sync"

	"github.com/lathe-run/lathe/remote"
)

// A CallNotifier delivers notifications of a [remote.Queue] within this process. The zero value has no watchers. Its methods may be called
// from several goroutines at once.
type CallNotifier struct{ all watchers[remote.Notification] }

// Notify passes n to all watchers, without blocking on them. A watcher does not get n if n is already in its queue, or if its queue has
// 10,000 notifications.
func (h *CallNotifier) Notify(n remote.Notification) { h.all.notify(n) }

// Watch calls fn with each notification that arrives after the start of Watch. It calls fn on the goroutine of the caller, in the order of
// arrival, and blocks until ctx is done. Several concurrent calls of Watch each get all notifications.
func (h *CallNotifier) Watch(ctx context.Context, fn func(remote.Notification)) { h.all.watch(ctx, fn) }

// maxNotifications is the maximum number of queued notifications of one watcher. Further ones are dropped.
const maxNotifications = 10_000

// watchers are the active calls of watch. The zero value has none.
type watchers[T comparable] struct {
	mu  sync.Mutex
	all map[*watcher[T]]struct{}
}

// A watcher is one call of watch. waits is the queue of notifications, in the order of their arrival.
type watcher[T comparable] struct {
	waits []T
	in    map[T]bool // the set of values in waits
	ready chan struct{}
}

// notify queues n for all watchers. It does not block.
func (all *watchers[T]) notify(n T) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for w := range all.all {
		if !w.in[n] && len(w.waits) < maxNotifications {
			w.waits, w.in[n] = append(w.waits, n), true
		}
		select {
		case w.ready <- struct{}{}:
		default: // the watcher is already notified
		}
	}
}

// watch calls fn with each notification until ctx is done.
func (all *watchers[T]) watch(ctx context.Context, fn func(T)) {
	w := &watcher[T]{in: map[T]bool{}, ready: make(chan struct{}, 1)}
	all.mu.Lock()
	if all.all == nil {
		all.all = map[*watcher[T]]struct{}{}
	}
	all.all[w] = struct{}{}
	all.mu.Unlock()
	defer func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		delete(all.all, w)
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.ready:
		}
		all.mu.Lock()
		waits := w.waits
		w.waits, w.in = nil, map[T]bool{}
		all.mu.Unlock()
		for _, n := range waits {
			fn(n)
		}
	}
}

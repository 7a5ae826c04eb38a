package store

import (
	"context"
	"sync"

	"github.com/lathe-run/lathe/remote"
)

// A CallNotifier delivers notifications of a [remote.Queue] within this process. The zero value has no watchers. Its methods may be called
// from several goroutines at once.
type CallNotifier struct{ watchers watchers[remote.Notification] }

// Notify passes n to all watchers, without blocking on them. A watcher does not get n if n is already in its queue, or if its queue has
// 10,000 notifications.
func (c *CallNotifier) Notify(n remote.Notification) { c.watchers.notify(n) }

// Watch calls fn with each notification that arrives after the start of Watch. It calls fn on the goroutine of the caller, in the order of
// arrival, and blocks until ctx is done. Several concurrent calls of Watch each get all notifications.
func (c *CallNotifier) Watch(ctx context.Context, fn func(remote.Notification)) {
	c.watchers.watch(ctx, fn)
}

// maxNotifications is the maximum number of queued notifications of one watcher. Further ones are dropped.
const maxNotifications = 10_000

// watchers are the active calls of watch. The zero value has none.
type watchers[T comparable] struct {
	mu     sync.Mutex
	active map[*watcher[T]]struct{}
}

// A watcher is one call of watch.
type watcher[T comparable] struct {
	queue  []T           // notifications in the order of their arrival
	queued map[T]bool    // the set of values in queue
	ready  chan struct{} // buffers one signal: queue may have changed
}

// notify queues n for all watchers. It does not block.
func (ws *watchers[T]) notify(n T) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for w := range ws.active {
		if !w.queued[n] && len(w.queue) < maxNotifications {
			w.queue, w.queued[n] = append(w.queue, n), true
		}
		select {
		case w.ready <- struct{}{}:
		default: // the watcher is already notified
		}
	}
}

// watch calls fn with each notification until ctx is done.
func (ws *watchers[T]) watch(ctx context.Context, fn func(T)) {
	w := &watcher[T]{queued: map[T]bool{}, ready: make(chan struct{}, 1)}
	ws.mu.Lock()
	if ws.active == nil {
		ws.active = map[*watcher[T]]struct{}{}
	}
	ws.active[w] = struct{}{}
	ws.mu.Unlock()
	defer func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		delete(ws.active, w)
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.ready:
		}
		ws.mu.Lock()
		queue := w.queue
		w.queue, w.queued = nil, map[T]bool{}
		ws.mu.Unlock()
		for _, n := range queue {
			fn(n)
		}
	}
}

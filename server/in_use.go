package server

import (
	"context"
	"sync"
)

// inUse contains one value for each key that has users. The zero value is ready for use.
type inUse[K comparable, V any] struct {
	mu sync.Mutex
	of map[K]*used[V]
}

type used[V any] struct {
	value V
	users int
}

// acquire returns the value of the key, which create makes for the first user. The caller must call release exactly once.
// release removes the value and returns true if no other user is left.
func (m *inUse[K, V]) acquire(key K, create func() V) (value V, release func() (last bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[K]*used[V]{}
	}
	u := m.of[key]
	if u == nil {
		u = &used[V]{value: create()}
		m.of[key] = u
	}
	u.users++
	return u.value, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		if u.users--; u.users > 0 {
			return false
		}
		delete(m.of, key)
		return true
	}
}

// get returns the value of the key, or the zero value if the key has no users.
func (m *inUse[K, V]) get(key K) (value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if u := m.of[key]; u != nil {
		value = u.value
	}
	return value
}

// runLocks is a set of locks by name. The value of a name is a channel of capacity 1; an element in it means that the lock is
// acquired.
type runLocks struct{ turns inUse[string, chan struct{}] }

// lock acquires the lock of the name. If ctx is done first, it returns a problem and the lock is not acquired.
func (l *runLocks) lock(ctx context.Context, name string) (unlock func(), p *problem) {
	turn, release := l.turns.acquire(name, func() chan struct{} { return make(chan struct{}, 1) })
	select {
	case turn <- struct{}{}:
		return func() {
			<-turn
			release()
		}, nil
	case <-ctx.Done():
		release()
		return nil, clientGone()
	}
}

// scan acquires the lock for requests that read many runs (statistics and searches). Each key has one lock, because several
// such requests at once would leave no processor for others. It also flushes events in memory to the store. The caller must call
// unlock.
func (co *core) scan(ctx context.Context, c *caller) (unlock func(), p *problem) {
	unlock, p = co.locks.lock(ctx, "scan of "+c.key.Name) // run ids have no blanks, so the name is not that of a run
	if p == nil {
		_ = co.opts.Engine.Flush(ctx, "") // if the store fails, the next read reports it
	}
	return unlock, p
}

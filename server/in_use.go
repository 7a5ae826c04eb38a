package server

import "sync"

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

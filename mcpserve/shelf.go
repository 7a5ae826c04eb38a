package mcpserve

import (
	"slices"
	"sync"
	"time"
)

// A shelf keeps the tasks of all callers, within their bounds. Its zero value is empty.
type shelf struct {
	mu    sync.Mutex
	tasks []*task // in the order in which they began
}

// find returns the task of that id and owner, nil where there is none. What else the owner may do can have
// changed since it began.
func (s *shelf) find(id, owner string) *task {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.tasks {
		if k.id == id && k.owner == owner {
			return k
		}
	}
	return nil
}

// put keeps a task until its time is up, or one that begins later needs its place; false where there is none.
func (s *shelf) put(k *task, o *Tasks) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ofOwner := 0
	for _, other := range s.tasks {
		if other.owner == k.owner {
			ofOwner++
		}
	}
	switch {
	case ofOwner >= o.MaxOfCaller:
		if !s.makeRoom(func(other *task) bool { return other.owner == k.owner && other.over() }) {
			return false
		}
	case len(s.tasks) >= o.Max:
		if !s.makeRoom((*task).over) {
			return false
		}
	}
	s.tasks = append(s.tasks, k)
	k.timer = time.AfterFunc(o.TTL, func() { s.drop(k) })
	return true
}

// makeRoom forgets the oldest of the tasks that may go. It is called with the lock held.
func (s *shelf) makeRoom(may func(*task) bool) bool {
	i := slices.IndexFunc(s.tasks, may)
	if i < 0 {
		return false
	}
	s.tasks[i].timer.Stop()
	s.tasks = slices.Delete(s.tasks, i, i+1)
	return true
}

// drop forgets a task, and cancels what of it still runs.
func (s *shelf) drop(k *task) {
	s.mu.Lock()
	s.tasks = slices.DeleteFunc(s.tasks, func(other *task) bool { return other == k })
	s.mu.Unlock()
	k.x.cancel()
}

// over reports whether nothing more comes of the task, whether or not its client knows that.
func (k *task) over() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.status.final() || len(k.x.done) > 0
}

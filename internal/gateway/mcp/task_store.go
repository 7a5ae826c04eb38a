package mcp

import (
	"slices"
	"sync"
	"time"
)

// A taskStore keeps the tasks of all callers, within their bounds. Its zero value is empty.
type taskStore struct {
	mu    sync.Mutex
	tasks []*task // in the order in which they began
}

// find returns the task with that id and owner, or nil. The rights of the owner may have changed since the task began.
func (s *taskStore) find(id, owner string) *task {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.tasks {
		if k.id == id && k.owner == owner {
			return k
		}
	}
	return nil
}

// put keeps a task until its TTL has passed or a later one needs its place. It returns false if there is no place.
func (s *taskStore) put(k *task, o *Tasks) bool {
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

// makeRoom removes the oldest of the tasks that may go. The caller holds the lock.
func (s *taskStore) makeRoom(may func(*task) bool) bool {
	i := slices.IndexFunc(s.tasks, may)
	if i < 0 {
		return false
	}
	s.tasks[i].timer.Stop()
	s.tasks = slices.Delete(s.tasks, i, i+1)
	return true
}

// drop removes a task and cancels its call.
func (s *taskStore) drop(k *task) {
	s.mu.Lock()
	s.tasks = slices.DeleteFunc(s.tasks, func(other *task) bool { return other == k })
	s.mu.Unlock()
	k.x.cancel()
}

// over reports whether the task has ended, whether or not its client has read that.
func (k *task) over() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.status.final() || len(k.x.done) > 0
}

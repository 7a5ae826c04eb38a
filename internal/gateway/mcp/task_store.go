package mcp

import (
	"slices"
	"sync"
	"time"
)

// A taskStore contains the tasks of all callers, within the limits of Tasks. Its zero value is empty.
type taskStore struct {
	mu    sync.Mutex
	tasks []*task // ordered by their start
}

// find returns the task with that id and owner, or nil. The owner may find a task even if its rights have changed.
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

// put stores a task until its TTL has passed or a later task replaces it. It returns false if a limit is reached and no task can be
// replaced.
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

// makeRoom removes the oldest task for which may returns true, and reports whether there was one. s.mu is held.
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

// over reports whether the call of the task has ended, even if no request has yet updated the status.
func (k *task) over() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.status.final() || len(k.x.done) > 0
}

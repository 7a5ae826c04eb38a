package enginetest

import (
	"context"
	"slices"
	"sync"
)

// An Environment is what surrounds the processes of one scenario of [Conform], and outlives them: the script of the model, the executions of
// tools, and the events that sinks have received. An [Engine] obtains the parts of each of its processes from [Environment.Host].
type Environment struct {
	scenario *scenario
	world    *World

	mu        sync.Mutex
	processes int              // number of processes so far
	holds     map[string]*hold // by the name of a tool, or "model"
	tails     map[string]*Tail // by run
}

func newEnvironment(sc *scenario) *Environment {
	return &Environment{scenario: sc, world: newWorld(), holds: map[string]*hold{}, tails: map[string]*Tail{}}
}

// A hold blocks the calls of a tool, or of the model, until the call is cancelled or its process is killed.
type hold struct {
	begun chan struct{} // receives once for each blocked call
	over  chan struct{} // closed: the calls return
}

// hold makes the calls of a tool block from now on. release ends that for calls that follow.
func (s *Environment) hold(name string) *hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &hold{begun: make(chan struct{}, 100), over: make(chan struct{})}
	s.holds[name] = h
	return h
}

func (s *Environment) release(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holds, name)
}

// block blocks if calls of that name are held. It then returns the error with which the call ends.
func (s *Environment) block(ctx context.Context, h *Host, name string) error {
	s.mu.Lock()
	held := s.holds[name]
	s.mu.Unlock()
	if held != nil {
		held.begun <- struct{}{}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-h.killed:
		case <-held.over:
		}
	}
	if h.Killed() {
		return errDead
	}
	return nil
}

// tail returns what the sinks of all processes received of a run.
func (s *Environment) tail(runID string) Tail {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := Tail{RunID: runID, Whole: true}
	if got := s.tails[runID]; got != nil {
		t.IDs, t.Lines = slices.Clone(got.IDs), slices.Clone(got.Lines)
	}
	return t
}

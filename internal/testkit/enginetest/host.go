package enginetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// A Host contains the parts with which a process of an [Engine] executes runs. After Kill, nothing that the process does reaches the
// store, a tool or a sink.
type Host struct {
	Name      string
	Loop      *loop.Loop
	Store     HostStore // it also is a [store.Shared] if the store that it was made of is one
	Approvals *approval.Queue

	environment *Environment
	killed      chan struct{} // closed by Kill
	once        sync.Once     // of Kill
}

// A HostStore is the store of a process: it stores runs with their index and their signals.
type HostStore interface {
	store.RunIndex
	store.SignalStore
}

// Host returns the parts of a new process over a store, which must be a [store.SignalStore]. now is its clock; nil: time.Now.
func (s *Environment) Host(runs store.RunIndex, now func() time.Time) (*Host, error) {
	signals, ok := runs.(store.SignalStore)
	if !ok {
		return nil, errors.New("enginetest: the store keeps no signals")
	}
	s.mu.Lock()
	s.processes++
	h := &Host{Name: fmt.Sprintf("p%d", s.processes), environment: s, killed: make(chan struct{})}
	s.mu.Unlock()
	if shared, ok := runs.(store.Shared); ok {
		h.Store = &killableShared{shared, h}
	} else {
		h.Store = &killableStore{runs, signals, h}
	}
	h.Approvals = approval.NewQueue(&approval.QueueOptions{Now: now, Signals: h.Store})
	set, err := tool.NewSet(hostTools(h)...)
	if err != nil {
		return nil, err
	}
	secrets := &tool.Secrets{Known: map[string]secret.Secret{"KEY": secret.New(environmentSecret)}}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: environmentPolicy{}, Approver: h.Approvals, Now: now, Secrets: secrets})
	if err != nil {
		return nil, err
	}
	h.Loop, err = loop.New(&environmentModel{host: h}, runner, &loop.Options{Now: now})
	return h, err
}

// Kill ends the process: its calls return, and what it does afterwards has no effect.
func (h *Host) Kill() { h.once.Do(func() { close(h.killed) }) }

// Killed reports whether Kill was called.
func (h *Host) Killed() bool {
	select {
	case <-h.killed:
		return true
	default:
		return false
	}
}

// Emit implements [event.Sink].
func (h *Host) Emit(_ context.Context, e event.Event) {
	if h.Killed() || event.IsDelta(e.Data) {
		return
	}
	line, err := e.MarshalJSON()
	if err != nil {
		line = []byte(err.Error()) // the check finds it
	}
	s := h.environment
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tails[e.RunID]
	if t == nil {
		t = &Tail{}
		s.tails[e.RunID] = t
	}
	t.IDs, t.Lines = append(t.IDs, e.ID), append(t.Lines, string(line))
}

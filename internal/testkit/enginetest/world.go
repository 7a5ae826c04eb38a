// Package enginetest tests that runs survive faults. It simulates the environment of the engine: processes are killed,
// stores fail and approvers answer late. [History.Check] holds the checks that every history of a simulation must pass.
//
// A simulation is a function of its seed. Each step of it passes a stop, at which the simulation decides which goroutine runs
// next and which fault it meets: one goroutine runs at a time.
// Time is that of [testing/synctest].
package enginetest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
)

// A Deed is one execution of a tool.
type Deed struct {
	RunID, CallID string
	Tool          string
	Key           string // the idempotency key it was done under
	Args          json.RawMessage
	Process       string // that executed it
}

// A World holds the state outside of all processes, which survives when they are killed: the executions of tools, the
// decisions of approvers, and the counts of model calls.
type World struct {
	mu       sync.Mutex
	deeds    []Deed
	scripts  map[string]Script
	asks     map[string]int // model calls that were made, by run
	requests []*question
}

// A question is a request for approval that a process has made.
type question struct {
	runID, callID, digest string
	expires               time.Time
	answer                *lathe.Approval // the first; nil: none yet, or the store keeps it
}

func newWorld() *World { return &World{scripts: map[string]Script{}, asks: map[string]int{}} }

// do records an execution of a tool.
func (w *World) do(d *Deed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deeds = append(w.deeds, *d)
}

// asked counts a model call of a run.
func (w *World) asked(runID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asks[runID]++
}

func (w *World) script(runID string) Script {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.scripts[runID]
}

// Approve implements [lathe.Approver]. It returns the first decision each time, so that a decision is not lost with the
// process that received it.
func (w *World) Approve(_ context.Context, req *lathe.ApprovalRequest) (lathe.Approval, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.question(req.Digest)
	if q == nil {
		q = &question{runID: req.Run.RunID, callID: req.Call.ID, digest: req.Digest, expires: req.ExpiresAt}
		w.requests = append(w.requests, q)
	}
	if q.answer == nil {
		return lathe.Approval{}, lathe.ErrPending
	}
	return *q.answer, nil
}

// question returns the question with a digest, or nil.
func (w *World) question(digest string) *question {
	i := slices.IndexFunc(w.requests, func(q *question) bool { return q.digest == digest })
	if i < 0 {
		return nil
	}
	return w.requests[i]
}

// open returns the questions without an answer.
func (w *World) open() []*question {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.requests), func(q *question) bool { return q.answer != nil })
}

// decide answers a question, and reports whether the answer was the first.
func (w *World) decide(q *question, a lathe.Approval) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if q.answer != nil {
		return false
	}
	q.answer = &a
	return true
}

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

// A World is the state outside of all processes, which survives when they are killed. In a simulation it also is the approver of processes
// whose store has no signals.
type World struct {
	mu         sync.Mutex
	deeds      []Deed
	scripts    map[string]Script // by run; set before the first process starts
	modelCalls map[string]int    // number of model calls that were made, by run
	requests   []*question
}

// A question is a request for approval that a process has made.
type question struct {
	runID, callID, digest string
	expires               time.Time
	answer                *lathe.Approval // the first answer; nil: not answered, or the store has the answer
}

func newWorld() *World { return &World{scripts: map[string]Script{}, modelCalls: map[string]int{}} }

// addDeed records an execution of a tool.
func (w *World) addDeed(d *Deed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deeds = append(w.deeds, *d)
}

// allDeeds returns the executions of tools so far.
func (w *World) allDeeds() []Deed {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.deeds)
}

// deedsOf returns the executions of the tools of a run.
func (w *World) deedsOf(runID string) []Deed {
	return slices.DeleteFunc(w.allDeeds(), func(d Deed) bool { return d.RunID != runID })
}

// countModelCall counts a model call of a run.
func (w *World) countModelCall(runID string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.modelCalls[runID]++
}

func (w *World) script(runID string) Script {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.scripts[runID]
}

// Approve implements [lathe.Approver]. It records the request. It returns the first decision each time, so that a decision is not lost with
// the process that received it.
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

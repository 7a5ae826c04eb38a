package server

import (
	"maps"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/memory"
)

// results contains the results of runs of tracked requests, if the server has no store of runs. It removes the oldest when
// there are more than max or they are larger than maxBytes. The zero value stores none.
type results struct {
	max, maxBytes int

	mu    sync.Mutex
	of    map[string]*runResult // by run id
	order []string              // run ids, oldest first
	bytes int
}

// A runResult is the result of one run.
type runResult struct {
	res      *event.Result
	start    int // number of messages that the run began with, without those that it took over
	updated  time.Time
	executed map[string]bool
	bytes    int
}

// put stores the result of a run and replaces an earlier one. start is that of [runResult].
func (r *results) put(runID string, res *event.Result, start int, now time.Time, executed map[string]bool) {
	if r.max == 0 {
		return
	}
	one := &runResult{res: res, start: start, updated: now, executed: maps.Clone(executed), bytes: int(memory.SizeOf(res.History))}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[string]*runResult{}
	}
	if before := r.of[runID]; before != nil {
		r.bytes -= before.bytes
	} else {
		r.order = append(r.order, runID)
	}
	r.of[runID] = one
	r.bytes += one.bytes
	for len(r.order) > r.max || r.bytes > r.maxBytes {
		r.bytes -= r.of[r.order[0]].bytes
		delete(r.of, r.order[0])
		r.order = r.order[1:]
	}
}

func (r *results) find(runID string) *runResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[runID]
}

// earlier returns the result as an earlierRun. request has the messages of the repetition.
func (r *runResult) earlier(id string, request []lathe.Message) *earlierRun {
	return &earlierRun{id: id, over: true, res: r.res, base: requestEnd(r.res.History, r.start, request), updated: r.updated,
		ran: func(callID string) bool { return r.executed[callID] }}
}

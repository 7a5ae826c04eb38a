package store

import (
	"container/list"
	"fmt"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// journals are the runs of a [Memory], within its limits. The caller of its methods holds the Memory's lock.
type journals struct {
	maxRuns, maxFinished int
	maxBytes             int64 // 0: no limit
	share                int   // each principal may take 1/share of the limits; at least 1
	now                  func() time.Time
	removed              func(runID string) // called for each run that is removed

	runs     map[string]*journal
	bytes    int64             // of all runs
	usages   map[string]*usage // by principal; of those that have runs
	finished *list.List        // of *journal, in the order in which they finished
	ends     int64             // how often a run has finished
	gone     goneRuns
}

// A holding counts the runs of one principal.
type usage struct {
	principal   string
	runs        int
	finished    *list.List // of *journal, in the order in which they finished; they are some of the runs
	bytes, done int64      // of the runs, and of those that have finished
}

func newUsage(principal string) *usage { return &usage{principal: principal, finished: list.New()} }

// principalOf returns the principal of the run that begins with the events.
func principalOf(events []event.Event) string {
	for i := range events {
		if d, ok := events[i].Data.(*event.RunStarted); ok {
			return d.Principal
		}
	}
	return ""
}

// usageOf returns the holding of a principal, and creates it if the principal has no run yet.
func (k *journals) usageOf(principal string) *usage {
	h := k.usages[principal]
	if h == nil {
		h = newUsage(principal)
		k.usages[principal] = h
	}
	return h
}

// bounded reports whether the principal may take only a part of the store.
func (k *journals) bounded(h *usage) bool { return k.share > 1 && h.principal != "" }

// part is what one principal may take, in bytes.
func (k *journals) part() int64 { return k.maxBytes / int64(k.share) }

// evictFor removes finished runs until one more run of the principal, of size bytes, is within the limits. If removing all
// finished runs would not be enough, it removes none and returns an error that names the limit.
func (k *journals) evictFor(principal string, size int64) error {
	h := k.usages[principal]
	if h == nil {
		h = newUsage(principal)
	}
	if err := k.checkQuota(h, size); err != nil {
		return err
	}
	k.trimPart(h, size, nil)
	for len(k.runs) >= k.maxRuns {
		k.retire(k.victim((*usage).count))
	}
	for k.maxBytes > 0 && k.bytes > k.maxBytes-size && k.total((*usage).all) > k.maxBytes-size {
		k.retire(k.victim((*usage).weight))
	}
	return nil
}

// checkQuota returns an error if a run of size bytes would exceed a limit even after all finished runs were removed.
func (k *journals) checkQuota(h *usage, size int64) error {
	going, own := len(k.runs)-k.finished.Len(), h.runs-h.finished.Len()
	switch {
	case going >= k.maxRuns:
		return fmt.Errorf("max_runs: %d runs are kept and none has finished", going)
	case k.bounded(h) && own >= max(1, k.maxRuns/k.share):
		return fmt.Errorf("max_runs: %d runs of the principal have not finished, which is its part of %d", own, k.maxRuns)
	case k.maxBytes == 0:
		return nil
	case k.bounded(h) && h.open() > k.part()-size:
		return fmt.Errorf("max_bytes: the runs of the principal that have not finished take %d bytes of %d, its part of %d", h.open(), k.part(), k.maxBytes)
	case k.bytes <= k.maxBytes-size:
		return nil
	}
	if open := k.total((*usage).open); open > k.maxBytes-size {
		return fmt.Errorf("max_bytes: the runs that have not finished take %d bytes of %d", open, k.maxBytes)
	}
	return nil
}

// total returns the sum of has over all principals. A principal counts for at most its part, so that what it has beyond
// its part takes nothing from the others.
func (k *journals) total(has func(*usage) int64) (n int64) {
	for _, h := range k.usages {
		if b := has(h); k.bounded(h) {
			n += min(b, k.part())
		} else {
			n += b
		}
	}
	return n
}

// trimPart removes finished runs of a principal, except keep, until size bytes more are within its part.
func (k *journals) trimPart(h *usage, size int64, keep *journal) {
	if k.maxBytes == 0 || !k.bounded(h) {
		return
	}
	for e := h.finished.Front(); e != nil && h.bytes > k.part()-size; {
		j := e.Value.(*journal)
		e = e.Next()
		if j != keep {
			k.retire(j.id)
		}
	}
}

func (h *usage) all() int64    { return h.bytes }
func (h *usage) open() int64   { return h.bytes - h.done }
func (h *usage) weight() int64 { return h.done }
func (h *usage) count() int64  { return int64(h.finished.Len()) }

// victim returns the finished run to remove next: the one that finished first. If principals share the store, it is the
// first one of the principal for which has is largest, and of several such principals the one that finished first. Its cost
// grows with the principals that have runs, and not with the runs.
func (k *journals) victim(has func(*usage) int64) string {
	first := k.finished.Front().Value.(*journal)
	if k.share == 1 {
		return first.id
	}
	most := first
	for _, h := range k.usages {
		e := h.finished.Front()
		if e == nil {
			continue
		}
		j := e.Value.(*journal)
		if n, m := has(h), has(most.of); n > m || n == m && j.ended < most.ended {
			most = j
		}
	}
	return most.id
}

// weigh adds size bytes to what the run takes.
func (k *journals) weigh(j *journal, size int64) {
	j.bytes += size
	j.of.bytes += size
	k.bytes += size
	if j.finished != nil {
		j.of.done += size
	}
}

// forget removes a run.
func (k *journals) forget(runID string) {
	j := k.runs[runID]
	if j == nil {
		return
	}
	k.goesOn(j)
	k.weigh(j, -j.bytes)
	if j.of.runs--; j.of.runs == 0 {
		delete(k.usages, j.of.principal)
	}
	delete(k.runs, runID)
	k.removed(runID)
}

// noteEnd records that the run has finished, if its last event says so. A parked run has not finished.
func (k *journals) noteEnd(j *journal) {
	end, ok := j.events[len(j.events)-1].Data.(*event.RunFinished)
	if ok = ok && end.Reason.Status() != "parked"; !ok {
		k.goesOn(j)
		return
	}
	if j.finished != nil {
		return
	}
	k.ends++
	j.ended = k.ends
	j.finished, j.own = k.finished.PushBack(j), j.of.finished.PushBack(j)
	j.of.done += j.bytes
	if k.finished.Len() > k.maxFinished {
		k.retire(k.victim((*usage).count))
	}
	k.trimPart(j.of, 0, j)
}

// goesOn removes the run from those that have finished.
func (k *journals) goesOn(j *journal) {
	if j.finished == nil {
		return
	}
	k.finished.Remove(j.finished)
	j.of.finished.Remove(j.own)
	j.finished, j.own = nil, nil
	j.of.done -= j.bytes
}

// retire removes a run and records that it was removed.
func (k *journals) retire(runID string) {
	k.gone.add(runID, k.runs[runID].sum.Run.Principal, k.now())
	k.forget(runID)
}

// missing returns the error for reading a run that does not exist.
func (k *journals) missing(runID string) error {
	if g := k.gone.find(runID); g != nil && k.runs[runID] == nil {
		return g
	}
	return lathe.ErrNotFound
}

// going returns the journal of a run that has not ended.
func (k *journals) going(op, runID string) (*journal, error) {
	j := k.runs[runID]
	switch {
	case j == nil:
		return nil, &lathe.Error{Code: lathe.CodeNotFound, Op: op, Err: lathe.ErrNotFound}
	case j.over():
		return nil, &lathe.Error{Code: lathe.CodeConflict, Op: op, Err: lathe.ErrConflict}
	}
	return j, nil
}

package store

import (
	"container/list"
	"fmt"
	"maps"
	"unique"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// maxGone is the maximum number of records of removed runs. Beyond it, those of the principal with the most are removed.
const maxGone = 10_000

// journals are the runs of a [Memory] and their limits. The caller of the methods holds the lock of the Memory.
type journals struct {
	MemoryOptions
	removed func(runID string) // called for each removed run

	runs     map[string]*journal
	usages   map[string]*usage // by principal, if it has runs; if Share is 1, all runs have the principal ""
	finished int               // number of finished runs
	ends     int64             // number of times that a run has finished
	gone     map[string]*GoneError
}

// A journal is the log of one run. Elements of events never change: an append writes behind the length that earlier readers have read.
type journal struct {
	id      string
	of      *usage
	events  []event.Event
	sum     Summary       // computed from events
	over    *list.Element // its element in of.finished; nil until the run has ended
	ended   int64         // value of journals.ends when the run finished
	claim   claim
	signals []Signal
	bytes   int64                   // estimated memory
	texts   []unique.Handle[string] // of [share]
}

// A usage is the memory and the runs of one principal.
type usage struct {
	principal   string
	runs        int
	finished    list.List // of *journal: the finished runs, in the order of their ends
	bytes, done int64     // memory of all runs, and of the finished ones
}

func (h *usage) all() int64    { return h.bytes }
func (h *usage) open() int64   { return h.bytes - h.done }
func (h *usage) weight() int64 { return h.done }
func (h *usage) count() int64  { return int64(h.finished.Len()) }

// bounded reports whether the limits per principal apply.
func (h *usage) bounded() bool { return h.principal != "" }

// part returns the maximum memory of one principal, in bytes.
func (k *journals) part() int64 { return k.MaxBytes / int64(k.Share) }

// principalOf returns the principal in the first RunStarted of events.
func principalOf(events []event.Event) string {
	for i := range events {
		if d, ok := events[i].Data.(*event.RunStarted); ok {
			return d.Principal
		}
	}
	return ""
}

// start adds a run of the principal whose first events have size bytes. It removes finished runs until the limits allow the run. If that
// would not be enough, it removes none and returns an error that names the limit.
func (k *journals) start(runID, principal string, size int64) (*journal, error) {
	if k.Share == 1 {
		principal = ""
	}
	h := k.usages[principal]
	if h == nil {
		h = &usage{principal: principal}
	}
	if err := k.checkQuota(h, size); err != nil {
		return nil, err
	}
	k.trim(h, size, nil)
	for len(k.runs) >= k.MaxRuns {
		k.retire(k.victim((*usage).count))
	}
	for k.MaxBytes > 0 && k.total((*usage).all) > k.MaxBytes-size {
		k.retire(k.victim((*usage).weight))
	}
	j := &journal{id: runID, of: h}
	h.runs++
	k.runs[runID], k.usages[principal] = j, h
	return j, nil
}

// checkQuota returns an error if a run of size bytes would exceed a limit even without all finished runs.
func (k *journals) checkQuota(h *usage, size int64) error {
	going, own := len(k.runs)-k.finished, h.runs-h.finished.Len()
	switch {
	case going >= k.MaxRuns:
		return fmt.Errorf("max_runs: %d runs are kept and none has finished", going)
	case h.bounded() && own >= max(1, k.MaxRuns/k.Share):
		return fmt.Errorf("max_runs: %d runs of the principal have not finished, which is its part of %d", own, k.MaxRuns)
	case k.MaxBytes == 0:
		return nil
	case h.bounded() && h.open() > k.part()-size:
		return fmt.Errorf("max_bytes: the runs of the principal that have not finished take %d bytes of %d, its part of %d", h.open(), k.part(), k.MaxBytes)
	}
	if open := k.total((*usage).open); open > k.MaxBytes-size {
		return fmt.Errorf("max_bytes: the runs that have not finished take %d bytes of %d", open, k.MaxBytes)
	}
	return nil
}

// total returns the sum of has over all principals. Each principal counts for at most its part, so that memory beyond its part does not
// reduce that of others.
func (k *journals) total(has func(*usage) int64) (n int64) {
	for _, h := range k.usages {
		if h.bounded() {
			n += min(has(h), k.part())
		} else {
			n += has(h)
		}
	}
	return n
}

// trim removes finished runs of a principal, except keep, until size more bytes fit into its part.
func (k *journals) trim(h *usage, size int64, keep *journal) {
	for e := h.finished.Front(); e != nil && k.MaxBytes > 0 && h.bounded() && h.bytes > k.part()-size; {
		j := e.Value.(*journal)
		if e = e.Next(); j != keep {
			k.retire(j)
		}
	}
}

// victim returns the finished run to remove next: the first finished run of the principal for which has is largest. If several principals
// have the largest value, it is the run that finished first. Its cost grows with the number of principals, not of runs.
func (k *journals) victim(has func(*usage) int64) (most *journal) {
	for _, h := range k.usages {
		if e := h.finished.Front(); e != nil {
			j := e.Value.(*journal)
			if most == nil || has(h) > has(most.of) || has(h) == has(most.of) && j.ended < most.ended {
				most = j
			}
		}
	}
	return most
}

// weigh adds size bytes to the memory of the run.
func (k *journals) weigh(j *journal, size int64) {
	j.bytes += size
	j.of.bytes += size
	if j.over != nil {
		j.of.done += size
	}
}

// noteEnd records that the run has finished if its last event is its end. A parked run has not finished.
func (k *journals) noteEnd(j *journal) {
	end, ok := j.events[len(j.events)-1].Data.(*event.RunFinished)
	if !ok || end.Reason.Status() == "parked" {
		k.reopen(j)
		return
	}
	if j.over != nil {
		return
	}
	k.ends++
	k.finished++
	j.ended, j.over = k.ends, j.of.finished.PushBack(j)
	j.of.done += j.bytes
	if k.finished > k.MaxFinished {
		k.retire(k.victim((*usage).count))
	}
	k.trim(j.of, 0, j)
}

// reopen records that the run is not finished.
func (k *journals) reopen(j *journal) {
	if j.over != nil {
		k.finished--
		j.of.finished.Remove(j.over)
		j.of.done -= j.bytes
		j.over = nil
	}
}

// forget removes a run and its calls without a record of the removal.
func (k *journals) forget(runID string) {
	j := k.runs[runID]
	if j == nil {
		return
	}
	k.reopen(j)
	k.weigh(j, -j.bytes)
	if j.of.runs--; j.of.runs == 0 {
		delete(k.usages, j.of.principal)
	}
	delete(k.runs, runID)
	k.removed(runID)
}

// retire removes a run and records the removal.
func (k *journals) retire(j *journal) {
	if len(k.gone) >= maxGone {
		counts, most := map[string]int{}, ""
		for _, g := range k.gone {
			if counts[g.Principal]++; counts[g.Principal] > counts[most] {
				most = g.Principal
			}
		}
		maps.DeleteFunc(k.gone, func(_ string, g *GoneError) bool { return g.Principal == most })
	}
	k.gone[j.id] = &GoneError{RunID: j.id, Principal: j.sum.Run.Principal, Time: k.Now().UTC()}
	k.forget(j.id)
}

// missing returns the error for a read of a run that does not exist.
func (k *journals) missing(runID string) error {
	if g := k.gone[runID]; g != nil && k.runs[runID] == nil {
		return g
	}
	return lathe.ErrNotFound
}

// going returns the journal of a run that has not ended. Its errors are ErrNotFound and, for an ended run, ErrConflict.
func (k *journals) going(runID string) (*journal, error) {
	switch j := k.runs[runID]; {
	case j == nil:
		return nil, lathe.ErrNotFound
	case j.over != nil:
		return nil, lathe.ErrConflict
	default:
		return j, nil
	}
}

package store

import (
	"container/list"
	"fmt"
	"maps"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// maxGone bounds the records of removed runs. Beyond it those of the principal that has most are removed.
const maxGone = 10_000

// journals are the runs of a [Memory], within its limits. The caller of its methods holds the Memory's lock.
type journals struct {
	MemoryOptions
	removed func(runID string) // called for each run that is removed

	runs     map[string]*journal
	usages   map[string]*usage // by principal; of those that have runs. Without shares all runs are of one
	finished int               // runs
	ends     int64             // how often a run has finished
	gone     map[string]*GoneError
}

// A journal is the log of one run. Elements of events never change: an append writes behind the length that earlier
// readers have taken.
type journal struct {
	id      string
	of      *usage
	events  []event.Event
	sum     Summary       // of events
	over    *list.Element // in of.finished; nil until the run has ended
	ended   int64         // the number of its end, among all ends
	claim   claim
	signals []Signal
	bytes   int64 // what it takes
}

// A usage is what the runs of one principal take.
type usage struct {
	principal   string
	runs        int
	finished    list.List // of *journal, in the order in which they finished; they are some of the runs
	bytes, done int64     // of the runs, and of those that have finished
}

func (h *usage) all() int64    { return h.bytes }
func (h *usage) open() int64   { return h.bytes - h.done }
func (h *usage) weight() int64 { return h.done }
func (h *usage) count() int64  { return int64(h.finished.Len()) }

// bounded reports whether the principal may take only a part of the store.
func (h *usage) bounded() bool { return h.principal != "" }

// part is what one principal may take, in bytes.
func (k *journals) part() int64 { return k.MaxBytes / int64(k.Share) }

// principalOf returns the principal of the run that begins with the events.
func principalOf(events []event.Event) string {
	for i := range events {
		if d, ok := events[i].Data.(*event.RunStarted); ok {
			return d.Principal
		}
	}
	return ""
}

// start adds a run of the principal that begins with size bytes. It removes finished runs until the run is within the limits. If
// removing all finished runs would not be enough, it removes none and returns an error that names the limit.
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

// checkQuota returns an error if a run of size bytes would exceed a limit even after all finished runs were removed.
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

// total returns the sum of has over all principals. A principal counts for at most its part, so that what it has beyond
// its part takes nothing from the others.
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

// trim removes finished runs of a principal, except keep, until size bytes more are within its part.
func (k *journals) trim(h *usage, size int64, keep *journal) {
	for e := h.finished.Front(); e != nil && k.MaxBytes > 0 && h.bounded() && h.bytes > k.part()-size; {
		j := e.Value.(*journal)
		if e = e.Next(); j != keep {
			k.retire(j)
		}
	}
}

// victim returns the finished run to remove next: of the principal for which has is largest, and of several such principals
// of the one whose first run finished first, the run that finished first. Its cost grows with the principals that have runs, and not with the runs.
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

// weigh adds size bytes to what the run takes.
func (k *journals) weigh(j *journal, size int64) {
	j.bytes += size
	j.of.bytes += size
	if j.over != nil {
		j.of.done += size
	}
}

// noteEnd records that the run has finished, if its last event says so. A parked run has not finished.
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

// reopen removes the run from those that have finished.
func (k *journals) reopen(j *journal) {
	if j.over != nil {
		k.finished--
		j.of.finished.Remove(j.over)
		j.of.done -= j.bytes
		j.over = nil
	}
}

// forget removes a run and its calls, without a record that it was removed.
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

// retire removes a run and records that it was removed.
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

// missing returns the error for reading a run that does not exist.
func (k *journals) missing(runID string) error {
	if g := k.gone[runID]; g != nil && k.runs[runID] == nil {
		return g
	}
	return lathe.ErrNotFound
}

// going returns the journal of a run that has not ended.
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

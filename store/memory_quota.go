package store

import (
	"cmp"
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

// A journal is the log of one run. Elements of events never change: an append writes behind the length that earlier readers have read. Only
// the methods of journals change usage, over, ended and bytes, together with the totals in usage: noteEnd when the run finishes,
// reopen when it continues, and weigh when its memory changes.
type journal struct {
	id      string
	usage   *usage // of the principal of the run
	events  []event.Event
	sum     Summary       // computed from events
	over    *list.Element // its element in usage.finished; nil until the run has ended
	ended   int64         // value of journals.ends when the run finished
	claim   claim
	signals []Signal
	bytes   int64                   // estimated memory
	texts   []unique.Handle[string] // of [share]
}

// A usage is the memory and the runs of one principal.
type usage struct {
	principal     string
	runs          int
	finished      list.List // of *journal: the finished runs, in the order of their ends
	bytes         int64     // memory of all runs
	finishedBytes int64     // memory of the finished ones
}

// The measures by which journals compares principals.
func (u *usage) allBytes() int64   { return u.bytes }
func (u *usage) openBytes() int64  { return u.bytes - u.finishedBytes }
func (u *usage) endedBytes() int64 { return u.finishedBytes }
func (u *usage) endedRuns() int64  { return int64(u.finished.Len()) }

// bounded reports whether the limits per principal apply.
func (u *usage) bounded() bool { return u.principal != "" }

// part returns the maximum memory of one principal, in bytes.
func (all *journals) part() int64 { return all.MaxBytes / int64(all.Share) }

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
func (all *journals) start(runID, principal string, size int64) (*journal, error) {
	if all.Share == 1 {
		principal = ""
	}
	u := all.usages[principal]
	if u == nil {
		u = &usage{principal: principal}
	}
	if err := all.checkQuota(u, size); err != nil {
		return nil, err
	}
	all.trim(u, size, nil)
	for len(all.runs) >= all.MaxRuns {
		all.retire(all.victim((*usage).endedRuns))
	}
	for all.MaxBytes > 0 && all.total((*usage).allBytes) > all.MaxBytes-size {
		all.retire(all.victim((*usage).endedBytes))
	}
	j := &journal{id: runID, usage: u}
	u.runs++
	all.runs[runID], all.usages[principal] = j, u
	return j, nil
}

// checkQuota returns an error if a run of size bytes would exceed a limit even without all finished runs.
func (all *journals) checkQuota(u *usage, size int64) error {
	going, own := len(all.runs)-all.finished, u.runs-u.finished.Len()
	switch {
	case going >= all.MaxRuns:
		return fmt.Errorf("max_runs: %d runs are kept and none has finished", going)
	case u.bounded() && own >= max(1, all.MaxRuns/all.Share):
		return fmt.Errorf("max_runs: %d runs of the principal have not finished, which is its part of %d", own, all.MaxRuns)
	case all.MaxBytes == 0:
		return nil
	case u.bounded() && u.openBytes() > all.part()-size:
		return fmt.Errorf("max_bytes: the runs of the principal that have not finished take %d bytes of %d, its part of %d", u.openBytes(), all.part(), all.MaxBytes)
	}
	if open := all.total((*usage).openBytes); open > all.MaxBytes-size {
		return fmt.Errorf("max_bytes: the runs that have not finished take %d bytes of %d", open, all.MaxBytes)
	}
	return nil
}

// total returns the sum of measure over all principals. Each principal counts for at most its part, so that memory beyond its part does not
// reduce that of others.
func (all *journals) total(measure func(*usage) int64) (n int64) {
	for _, u := range all.usages {
		size := measure(u)
		if u.bounded() {
			size = min(size, all.part())
		}
		n += size
	}
	return n
}

// trim removes finished runs of a principal, except keep, until size more bytes fit into its part.
func (all *journals) trim(u *usage, size int64, keep *journal) {
	if all.MaxBytes <= 0 || !u.bounded() {
		return
	}
	for e := u.finished.Front(); e != nil && u.bytes > all.part()-size; {
		j := e.Value.(*journal)
		e = e.Next() // before retire removes the element
		if j != keep {
			all.retire(j)
		}
	}
}

// victim returns the finished run to remove next: the first finished run of the principal for which measure is largest. If several principals
// have the largest value, it is the run that finished first. Its cost grows with the number of principals, not of runs.
func (all *journals) victim(measure func(*usage) int64) (most *journal) {
	for _, u := range all.usages {
		first := u.finished.Front()
		if first == nil {
			continue
		}
		j := first.Value.(*journal)
		if most == nil || cmp.Or(cmp.Compare(measure(u), measure(most.usage)), cmp.Compare(most.ended, j.ended)) > 0 {
			most = j
		}
	}
	return most
}

// weigh adds size bytes to the memory of the run.
func (all *journals) weigh(j *journal, size int64) {
	j.bytes += size
	j.usage.bytes += size
	if j.over != nil {
		j.usage.finishedBytes += size
	}
}

// noteEnd records that the run has finished if its last event is its end. A parked run has not finished.
func (all *journals) noteEnd(j *journal) {
	end, ok := j.events[len(j.events)-1].Data.(*event.RunFinished)
	if !ok || end.Reason.Status() == "parked" {
		all.reopen(j)
		return
	}
	if j.over != nil {
		return
	}
	all.ends++
	all.finished++
	j.ended, j.over = all.ends, j.usage.finished.PushBack(j)
	j.usage.finishedBytes += j.bytes
	if all.finished > all.MaxFinished {
		all.retire(all.victim((*usage).endedRuns))
	}
	all.trim(j.usage, 0, j)
}

// reopen records that the run is not finished.
func (all *journals) reopen(j *journal) {
	if j.over != nil {
		all.finished--
		j.usage.finished.Remove(j.over)
		j.usage.finishedBytes -= j.bytes
		j.over = nil
	}
}

// forget removes a run and its calls without a record of the removal.
func (all *journals) forget(runID string) {
	j := all.runs[runID]
	if j == nil {
		return
	}
	all.reopen(j)
	all.weigh(j, -j.bytes)
	j.usage.runs--
	if j.usage.runs == 0 {
		delete(all.usages, j.usage.principal)
	}
	delete(all.runs, runID)
	all.removed(runID)
}

// retire removes a run and records the removal.
func (all *journals) retire(j *journal) {
	if len(all.gone) >= maxGone {
		counts, most := map[string]int{}, "" // by principal, and the one with the most records
		for _, g := range all.gone {
			counts[g.Principal]++
			if counts[g.Principal] > counts[most] {
				most = g.Principal
			}
		}
		maps.DeleteFunc(all.gone, func(_ string, g *GoneError) bool { return g.Principal == most })
	}
	all.gone[j.id] = &GoneError{RunID: j.id, Principal: j.sum.Run.Principal, Time: all.Now().UTC()}
	all.forget(j.id)
}

// missing returns the error for a read of a run that does not exist.
func (all *journals) missing(runID string) error {
	if g := all.gone[runID]; g != nil && all.runs[runID] == nil {
		return g
	}
	return lathe.ErrNotFound
}

// going returns the journal of a run that has not ended. Its errors are ErrNotFound and, for an ended run, ErrConflict.
func (all *journals) going(runID string) (*journal, error) {
	switch j := all.runs[runID]; {
	case j == nil:
		return nil, lathe.ErrNotFound
	case j.over != nil:
		return nil, lathe.ErrConflict
	default:
		return j, nil
	}
}

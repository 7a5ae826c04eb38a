package store

import (
	"fmt"

	"github.com/lathe-run/lathe"
)

// A holding is what one principal has in a [Memory].
type holding struct {
	principal      string
	runs, finished int   // finished are some of the runs
	bytes, done    int64 // of the runs, and of those that have finished
}

// principalOf returns whose the run is that begins with the events.
func principalOf(events []lathe.Event) string {
	for i := range events {
		if d, ok := events[i].Data.(*lathe.RunStarted); ok {
			return d.Principal
		}
	}
	return ""
}

// holding returns that of a principal that is about to have a run.
func (s *Memory) holding(principal string) *holding {
	h := s.holdings[principal]
	if h == nil {
		h = &holding{principal: principal}
		s.holdings[principal] = h
	}
	return h
}

// bounded reports whether the principal has a part of the store only.
func (s *Memory) bounded(h *holding) bool { return s.share > 1 && h.principal != "" }

// part is what one principal may take, in bytes.
func (s *Memory) part() int64 { return s.maxBytes / int64(s.share) }

// makeRoom forgets finished runs until there is a place for one more of the principal, of size bytes. Where
// that would not do it forgets none, and its error says which bound has no room.
func (s *Memory) makeRoom(principal string, size int64) error {
	h := s.holdings[principal]
	if h == nil {
		h = &holding{principal: principal}
	}
	if err := s.fits(h, size); err != nil {
		return err
	}
	s.trimPart(h, size, nil)
	for len(s.runs) >= s.maxRuns {
		s.retire(s.victim((*holding).count))
	}
	for s.maxBytes > 0 && s.bytes > s.maxBytes-size && s.taken((*holding).all) > s.maxBytes-size {
		s.retire(s.victim((*holding).weight))
	}
	return nil
}

// fits says why there is no place for a run of size bytes even where every finished run is forgotten.
func (s *Memory) fits(h *holding, size int64) error {
	going, own := len(s.runs)-s.finished.Len(), h.runs-h.finished
	switch {
	case going >= s.maxRuns:
		return fmt.Errorf("max_runs: %d runs are kept and none has finished", going)
	case s.bounded(h) && own >= max(1, s.maxRuns/s.share):
		return fmt.Errorf("max_runs: %d runs of the principal have not finished, which is its part of %d", own, s.maxRuns)
	case s.maxBytes == 0:
		return nil
	case s.bounded(h) && h.open() > s.part()-size:
		return fmt.Errorf("max_bytes: the runs of the principal that have not finished take %d bytes of %d, its part of %d", h.open(), s.part(), s.maxBytes)
	case s.bytes <= s.maxBytes-size:
		return nil
	}
	if open := s.taken((*holding).open); open > s.maxBytes-size {
		return fmt.Errorf("max_bytes: the runs that have not finished take %d bytes of %d", open, s.maxBytes)
	}
	return nil
}

// taken is what all principals have of the store. Of what one has beyond its part none but itself has less.
func (s *Memory) taken(has func(*holding) int64) (n int64) {
	for _, h := range s.holdings {
		if b := has(h); s.bounded(h) {
			n += min(b, s.part())
		} else {
			n += b
		}
	}
	return n
}

// trimPart forgets finished runs of a principal, and not keep, until size bytes more are within its part.
func (s *Memory) trimPart(h *holding, size int64, keep *journal) {
	if s.maxBytes == 0 || !s.bounded(h) {
		return
	}
	for e := s.finished.Front(); e != nil && h.bytes > s.part()-size; {
		j := e.Value.(*journal)
		e = e.Next()
		if j.of == h && j != keep {
			s.retire(j.id)
		}
	}
}

func (h *holding) all() int64    { return h.bytes }
func (h *holding) open() int64   { return h.bytes - h.done }
func (h *holding) weight() int64 { return h.done }
func (h *holding) count() int64  { return int64(h.finished) }

// victim returns the finished run to forget: the one that finished first, where principals share the store of
// the principal that has most.
func (s *Memory) victim(has func(*holding) int64) string {
	first := s.finished.Front().Value.(*journal)
	if s.share == 1 {
		return first.id
	}
	for e := s.finished.Front(); e != nil; e = e.Next() {
		if j := e.Value.(*journal); has(j.of) > has(first.of) {
			first = j
		}
	}
	return first.id
}

// weigh notes that the run takes so many bytes more.
func (s *Memory) weigh(j *journal, size int64) {
	j.bytes += size
	j.of.bytes += size
	s.bytes += size
	if j.finished != nil {
		j.of.done += size
	}
}

func (s *Memory) forget(runID string) {
	j := s.runs[runID]
	if j == nil {
		return
	}
	s.goesOn(j)
	s.weigh(j, -j.bytes)
	if j.of.runs--; j.of.runs == 0 {
		delete(s.holdings, j.of.principal)
	}
	delete(s.runs, runID)
	s.queue.forgetRun(runID)
}

// noteEnd keeps the order in which runs finished. A parked run is not finished.
func (s *Memory) noteEnd(j *journal) {
	end, ok := j.events[len(j.events)-1].Data.(*lathe.RunFinished)
	if ok = ok && end.Reason.Status() != "parked"; !ok {
		s.goesOn(j)
		return
	}
	if j.finished != nil {
		return
	}
	j.finished = s.finished.PushBack(j)
	j.of.finished++
	j.of.done += j.bytes
	if s.finished.Len() > s.maxFinished {
		s.retire(s.victim((*holding).count))
	}
	s.trimPart(j.of, 0, j)
}

// goesOn takes the run from those that have finished.
func (s *Memory) goesOn(j *journal) {
	if j.finished == nil {
		return
	}
	s.finished.Remove(j.finished)
	j.finished = nil
	j.of.finished--
	j.of.done -= j.bytes
}

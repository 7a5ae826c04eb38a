package postgres

const (
	// lanes is how many statements of appends are on their way at a time: while one is written, another
	// one is filled.
	lanes = 2
	// maxBatch bounds the requests of one statement.
	maxBatch = 128
	// maxBatchBytes bounds the events of one statement, but for those of its first request.
	maxBatchBytes = 4 << 20
)

// serve writes requests: all that have come while those before were written go together.
func (s *Store) serve() {
	var later []*request // of runs that the batch has already
	for {
		var batch []*request
		runs := map[string]bool{}
		size := 0
		add := func(r *request) bool {
			if runs[r.runID] || len(batch) == maxBatch || len(batch) > 0 && size+r.size() > maxBatchBytes {
				return false
			}
			batch, runs[r.runID], size = append(batch, r), true, size+r.size()
			return true
		}
		waiting := later
		later = nil
		for _, r := range waiting {
			if !add(r) {
				later = append(later, r)
			}
		}
		if len(batch) == 0 {
			select {
			case r := <-s.requests:
				add(r)
			case <-s.stop:
				return
			}
		}
	gather:
		for len(later) == 0 {
			select {
			case r := <-s.requests:
				if !add(r) {
					later = append(later, r)
				}
			default:
				break gather
			}
		}
		s.write(batch)
	}
}

func (r *request) size() (n int) {
	for _, b := range r.bodies {
		n += len(b)
	}
	return n
}

// write carries out the requests of a batch, each for itself, and answers them.
func (s *Store) write(batch []*request) {
	var live []*request
	for _, r := range batch {
		if err := r.ctx.Err(); err != nil {
			r.done <- answer{err: err}
			continue
		}
		live = append(live, r)
	}
	s.send(live, beginStatement, func(r *request) bool { return r.last == 0 })
	s.send(live, moveStatement, func(r *request) bool { return r.last > 0 })
}

// send writes those of the requests that are of one kind, and answers them.
func (s *Store) send(batch []*request, statement string, fits func(*request) bool) {
	var these []*request
	for _, r := range batch {
		if fits(r) {
			these = append(these, r)
		}
	}
	if len(these) == 0 {
		return
	}
	moved, err := s.try(these, statement)
	if err != nil && !broken(err) && len(these) > 1 { // one of them spoiled it for all: nothing was written
		for i := range these {
			s.send(these[i:i+1], statement, fits)
		}
		return
	}
	for _, r := range these {
		r.done <- answer{moved: moved[r.runID], err: err}
	}
}

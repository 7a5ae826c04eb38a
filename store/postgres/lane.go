package postgres

const (
	// lanes is how many statements of appends are on their way at a time: while one is written, another
	// one is filled.
	lanes = 2
	// maxBatch bounds the requests of one batch.
	maxBatch = 128
	// maxBatchBytes bounds the events of one batch, but for those of its first request.
	maxBatchBytes = 4 << 20
)

// A batch has requests that are written together, of each run one.
type batch struct {
	runs          map[string]bool
	size          int
	begins, moves []*request
}

// add takes the request, or reports that it is for another batch.
func (b *batch) add(r *request) bool {
	size := r.size()
	if n := len(b.runs); b.runs[r.runID] || n == maxBatch || n > 0 && b.size+size > maxBatchBytes {
		return false
	}
	b.runs[r.runID], b.size = true, b.size+size
	if r.last == 0 {
		b.begins = append(b.begins, r)
	} else {
		b.moves = append(b.moves, r)
	}
	return true
}

// serve writes requests: all that have come while those before were written go together.
func (s *Store) serve() {
	var next *request // which did not fit into the batch before
	for {
		b := &batch{runs: map[string]bool{}}
		if next == nil {
			select {
			case next = <-s.requests:
			case <-s.stop:
				return
			}
		}
		for next != nil && b.add(next) {
			select {
			case next = <-s.requests:
			default:
				next = nil
			}
		}
		s.write(b.begins, beginStatement)
		s.write(b.moves, moveStatement)
	}
}

// write carries out requests of one kind, each for itself, and answers them.
func (s *Store) write(all []*request, statement string) {
	var live []*request
	for _, r := range all {
		if err := r.ctx.Err(); err != nil {
			r.done <- answer{err: err}
			continue
		}
		live = append(live, r)
	}
	if len(live) == 0 {
		return
	}
	moved, err := s.try(live, statement)
	if err != nil && !broken(err) && len(live) > 1 { // one of them spoiled it for all: nothing was written
		for i := range live {
			s.write(live[i:i+1], statement)
		}
		return
	}
	for _, r := range live {
		r.done <- answer{moved: moved[r.runID], err: err}
	}
}

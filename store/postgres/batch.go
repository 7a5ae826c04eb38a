package postgres

const (
	// writers is the number of writer goroutines, and so of concurrent append statements: while one is executed, the next batch is filled.
	writers = 2
	// maxBatch is the maximum number of requests in one batch.
	maxBatch = 128
	// maxBatchBytes is the maximum size of the events in one batch, in bytes. The first request may exceed it.
	maxBatchBytes = 4 << 20
)

// A batch is a set of append requests, at most one per run. One statement writes the requests that create a run, another one all others.
type batch struct {
	runs          map[string]bool
	size          int
	begins, moves []*request
}

// add adds the request to the batch. It returns false if the request must go into another batch.
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

// serve writes append requests until the store is closed. Requests that arrive while a batch is being written form the next one.
func (s *Store) serve() {
	var next *request // first request of the next batch
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

// write executes requests of one kind and sends each its own result: a conflict of one request does not affect the others.
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
	if err != nil && !broken(err) && len(live) > 1 { // one request made the statement fail: write each alone
		for i := range live {
			s.write(live[i:i+1], statement)
		}
		return
	}
	for _, r := range live {
		r.done <- answer{moved: moved[r.runID], err: err}
	}
}

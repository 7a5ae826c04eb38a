package store

import (
	"context"
	"time"

	"github.com/lathe-run/lathe"
)

var _ lathe.RequestStore = (*Memory)(nil)

const (
	// RequestsKept is how long stores keep the record of a request.
	RequestsKept = 48 * time.Hour
	// maxRequests bounds the records of a [Memory]. Beyond it the oldest record is removed.
	maxRequests = 100_000
)

// A requestRow is one record of a request.
type requestRow struct {
	runID         string
	at, delivered time.Time // delivered is zero while the answer is not
}

// requests are the records of a [Memory].
type requests struct {
	of    map[lathe.RequestDigest]*requestRow
	order []orderedRequest // oldest first; a replaced record leaves its entry behind
}

type orderedRequest struct {
	digest lathe.RequestDigest
	row    *requestRow
}

// PutRequest implements [lathe.RequestStore].
func (s *Memory) PutRequest(ctx context.Context, digest lathe.RequestDigest, runID string) error {
	if err := ended(ctx, "store: put the request"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q := &s.requests
	if q.of == nil {
		q.of = map[lathe.RequestDigest]*requestRow{}
	}
	row := &requestRow{runID: runID, at: s.now()}
	q.of[digest] = row
	q.order = append(q.order, orderedRequest{digest, row})
	for len(q.order) > 0 && (len(q.order) > maxRequests || row.at.Sub(q.order[0].row.at) > RequestsKept) {
		q.remove(q.order[0])
		q.order = q.order[1:]
	}
	return nil
}

// remove deletes the record unless a later one has replaced it.
func (q *requests) remove(o orderedRequest) {
	if q.of[o.digest] == o.row {
		delete(q.of, o.digest)
	}
}

// FindRequest implements [lathe.RequestStore].
func (s *Memory) FindRequest(ctx context.Context, digest lathe.RequestDigest) (lathe.RequestRecord, error) {
	const op = "store: find the request"
	if err := ended(ctx, op); err != nil {
		return lathe.RequestRecord{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	row := s.requests.of[digest]
	if row == nil {
		return lathe.RequestRecord{}, &lathe.Error{Code: lathe.CodeNotFound, Op: op, Err: lathe.ErrNotFound}
	}
	now := s.now()
	r := lathe.RequestRecord{RunID: row.runID, Age: now.Sub(row.at), Delivered: !row.delivered.IsZero()}
	if r.Delivered {
		r.DeliveredAge = now.Sub(row.delivered)
	}
	return r, nil
}

// DeliverRequest implements [lathe.RequestStore].
func (s *Memory) DeliverRequest(ctx context.Context, digest lathe.RequestDigest, runID string, ago time.Duration) error {
	if err := ended(ctx, "store: deliver the request"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if row := s.requests.of[digest]; row != nil && row.runID == runID && row.delivered.IsZero() {
		row.delivered = s.now().Add(-ago)
	}
	return nil
}

// forgetRequests removes the records of the runs for which fits is true. s.mu is held.
func (s *Memory) forgetRequests(fits func(runID string) bool) {
	q := &s.requests
	kept := q.order[:0]
	for _, o := range q.order {
		if fits(o.row.runID) {
			q.remove(o)
		} else {
			kept = append(kept, o)
		}
	}
	clear(q.order[len(kept):])
	q.order = kept
}

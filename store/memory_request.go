package store

import (
	"context"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
)

var _ RequestStore = (*RequestRecords)(nil)

// maxRequests bounds the records of a [Memory]. Beyond it the oldest record is removed.
const maxRequests = 100_000

// A requestRow is one record of a request.
type requestRow struct {
	runID         string
	at, delivered time.Time // delivered is zero while the answer is not
}

// RequestRecords is the part of a [Memory] that implements [RequestStore].
type RequestRecords struct {
	now func() time.Time

	mu    sync.RWMutex
	of    map[RequestDigest]*requestRow
	order []orderedRequest // oldest first; a replaced record leaves its entry behind
}

type orderedRequest struct {
	digest RequestDigest
	row    *requestRow
}

// PutRequest implements [RequestStore].
func (q *RequestRecords) PutRequest(ctx context.Context, digest RequestDigest, runID, instead string) error {
	const op = "store: put the request"
	if err := ended(ctx, op); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if found := q.of[digest]; found != nil && found.runID != instead && found.runID != runID {
		return &lathe.Error{Code: lathe.CodeConflict, Op: op, Err: lathe.ErrConflict}
	}
	row := &requestRow{runID: runID, at: q.now()}
	q.of[digest] = row
	q.order = append(q.order, orderedRequest{digest, row})
	for len(q.order) > 0 && (len(q.order) > maxRequests || row.at.Sub(q.order[0].row.at) > RequestsKept) {
		q.remove(q.order[0])
		q.order = q.order[1:]
	}
	return nil
}

// remove deletes the record unless a later one has replaced it.
func (q *RequestRecords) remove(o orderedRequest) {
	if q.of[o.digest] == o.row {
		delete(q.of, o.digest)
	}
}

// FindRequest implements [RequestStore].
func (q *RequestRecords) FindRequest(ctx context.Context, digest RequestDigest) (RequestRecord, error) {
	const op = "store: find the request"
	if err := ended(ctx, op); err != nil {
		return RequestRecord{}, err
	}
	q.mu.RLock()
	defer q.mu.RUnlock()
	row := q.of[digest]
	if row == nil {
		return RequestRecord{}, &lathe.Error{Code: lathe.CodeNotFound, Op: op, Err: lathe.ErrNotFound}
	}
	now := q.now()
	r := RequestRecord{RunID: row.runID, Age: now.Sub(row.at), Delivered: !row.delivered.IsZero()}
	if r.Delivered {
		r.DeliveredAge = now.Sub(row.delivered)
	}
	return r, nil
}

// DeliverRequest implements [RequestStore].
func (q *RequestRecords) DeliverRequest(ctx context.Context, digest RequestDigest, runID string, ago time.Duration) error {
	if err := ended(ctx, "store: deliver the request"); err != nil {
		return err
	}
	at := q.now().Add(-ago) // not when the lock is free
	q.mu.Lock()
	defer q.mu.Unlock()
	if row := q.of[digest]; row != nil && row.runID == runID && row.delivered.IsZero() {
		row.delivered = at
	}
	return nil
}

// forget removes the records of the runs for which fits is true.
func (q *RequestRecords) forget(fits func(runID string) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
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

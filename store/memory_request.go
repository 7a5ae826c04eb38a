package store

import (
	"context"
	"time"

	"github.com/lathe-run/lathe"
)

var _ RequestStore = (*RequestRecords)(nil)

// maxRequests bounds the records of a [Memory]. Beyond it the oldest record is removed.
const maxRequests = 100_000

// A requestRow is one record of a request.
type requestRow struct {
	digest        RequestDigest
	runID         string
	at, delivered time.Time // delivered is zero while the answer is not
}

// RequestRecords is the part of a [Memory] that implements [RequestStore].
type RequestRecords struct {
	*core
	of    map[RequestDigest]*requestRow
	order []*requestRow // oldest first; a record that was replaced or deleted stays until its turn
}

// PutRequest implements [RequestStore].
func (q *RequestRecords) PutRequest(ctx context.Context, digest RequestDigest, runID, instead string) error {
	return q.do(ctx, "put the request", func(now time.Time) error {
		if found := q.of[digest]; found != nil && found.runID != instead && found.runID != runID {
			return lathe.ErrConflict
		}
		row := &requestRow{digest: digest, runID: runID, at: now}
		q.of[digest] = row
		q.order = append(q.order, row)
		for oldest := q.order[0]; len(q.order) > maxRequests || now.Sub(oldest.at) > RequestsKept; oldest = q.order[0] {
			if q.of[oldest.digest] == oldest {
				delete(q.of, oldest.digest)
			}
			q.order = q.order[1:]
		}
		return nil
	})
}

// FindRequest implements [RequestStore].
func (q *RequestRecords) FindRequest(ctx context.Context, digest RequestDigest) (r RequestRecord, err error) {
	err = q.do(ctx, "find the request", func(now time.Time) error {
		row := q.of[digest]
		if row == nil {
			return lathe.ErrNotFound
		}
		r = RequestRecord{RunID: row.runID, Age: now.Sub(row.at), Delivered: !row.delivered.IsZero()}
		if r.Delivered {
			r.DeliveredAge = now.Sub(row.delivered)
		}
		return nil
	})
	return r, err
}

// DeliverRequest implements [RequestStore].
func (q *RequestRecords) DeliverRequest(ctx context.Context, digest RequestDigest, runID string, ago time.Duration) error {
	at := q.now().Add(-ago) // not when the lock is free
	return q.do(ctx, "deliver the request", func(time.Time) error {
		if row := q.of[digest]; row != nil && row.runID == runID && row.delivered.IsZero() {
			row.delivered = at
		}
		return nil
	})
}

// forget removes the records of the runs for which fits is true. The caller holds the lock.
func (q *RequestRecords) forget(fits func(runID string) bool) {
	for digest, row := range q.of {
		if fits(row.runID) {
			delete(q.of, digest)
		}
	}
}

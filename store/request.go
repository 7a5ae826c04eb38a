package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
)

// RequestsKept is how long stores keep the record of a request. A [Memory] keeps at most 100,000 records.
const RequestsKept = 48 * time.Hour

// A RequestDigest is a hash of the content and the caller of a request. Equal requests of one caller have equal digests.
type RequestDigest [sha256.Size]byte

// A RequestStore records which run serves a request, so that a client that repeats the request gets the response of that run. A record
// contains no text of the request. The server also stores records under digests of other texts, such as a conversation with its answer:
// such a record names the run that gave the answer. Records older than [RequestsKept] may be removed.
//
// A record remains when [Retainer.DeleteBefore] or [Retainer.Trim] removes its run. It is removed when the run is deleted by id, by session
// or by principal.
type RequestStore interface {
	// PutRequest records that runID serves the request, and that the response is not delivered yet. If another run is recorded for the
	// request, PutRequest changes nothing and returns an error of code conflict. So if several runs are started concurrently for one
	// request, only one of them serves it. instead names a recorded run, which the caller got from FindRequest and wants to replace by
	// runID; "": none.
	PutRequest(ctx context.Context, digest RequestDigest, runID, instead string) error
	// FindRequest returns the record of the request. The error has the code not_found if the request has no record.
	FindRequest(ctx context.Context, digest RequestDigest) (RequestRecord, error)
	// DeliverRequest records that the response was delivered at the time at, by the clock of this process. The store converts the time to
	// its own clock. DeliverRequest does nothing if there is no record, or if the record names another run or is already marked as
	// delivered.
	DeliverRequest(ctx context.Context, digest RequestDigest, runID string, at time.Time) error
}

// A RequestRecord says which run serves a request.
type RequestRecord struct {
	RunID string
	// Age is the time since PutRequest, by the clock of the store.
	Age time.Duration
	// Delivered reports whether a client has received the response. DeliveredAge is the time since then, by the clock of the store.
	Delivered    bool
	DeliveredAge time.Duration
}

// requestRecords implements [RequestStore] over [Rows].
type requestRecords struct{ begin transaction }

// PutRequest implements [RequestStore].
func (q requestRecords) PutRequest(ctx context.Context, digest RequestDigest, runID, instead string) error {
	return q.begin(ctx, "put the request", readWrite, func(rows Rows, now time.Time) error {
		if err := rows.ForgetRequests(now.Add(-RequestsKept)); err != nil {
			return err
		}
		recorded, _, _, err := rows.Request(digest)
		isNew := errors.Is(err, lathe.ErrNotFound)
		if err != nil && !isNew {
			return err
		}
		if !isNew && recorded != instead && recorded != runID {
			return lathe.ErrConflict
		}
		return rows.PutRequest(digest, runID, now, time.Time{})
	})
}

// FindRequest implements [RequestStore].
func (q requestRecords) FindRequest(ctx context.Context, digest RequestDigest) (r RequestRecord, err error) {
	err = q.begin(ctx, "find the request", readOnly, func(rows Rows, now time.Time) error {
		runID, at, delivered, err := rows.Request(digest)
		if err != nil {
			return err
		}
		r = RequestRecord{RunID: runID, Age: now.Sub(at)}
		if !delivered.IsZero() {
			r.Delivered, r.DeliveredAge = true, now.Sub(delivered)
		}
		return nil
	})
	return r, err
}

// DeliverRequest implements [RequestStore].
func (q requestRecords) DeliverRequest(ctx context.Context, digest RequestDigest, runID string, at time.Time) error {
	return q.begin(ctx, "deliver the request", readWrite, func(rows Rows, now time.Time) error {
		recorded, put, delivered, err := rows.Request(digest)
		switch {
		case errors.Is(err, lathe.ErrNotFound):
			return nil
		case err != nil:
			return err
		case recorded != runID || !delivered.IsZero():
			return nil
		}
		return rows.PutRequest(digest, runID, put, now.Add(-time.Since(at)))
	})
}

package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
)

// RequestsKept is how long stores keep the record of a request.
const RequestsKept = 48 * time.Hour

// A RequestDigest identifies a request: two requests with the same digest ask for the same thing, on behalf of
// the same caller.
type RequestDigest [sha256.Size]byte

// A RequestStore records which run serves a request, so that a client's retry gets the response of that run. A record
// contains no text of the request. The server also records under the digest of an answer and its conversation which run came
// to that answer. A store may remove records that are older than [RequestsKept].
//
// Records are independent of the log: a record remains when its run is removed by [Retainer.DeleteBefore] or
// [Retainer.Trim], and is removed when the run is deleted by name, by session or by principal.
type RequestStore interface {
	// PutRequest records that the run serves the request and that its response is not delivered. It replaces a record of
	// runID itself and one of the run instead, which is the run that the caller found with FindRequest ("" if it found
	// none). If another run is recorded, PutRequest changes nothing and returns an error of code conflict: of several
	// runs that are started for a request at the same time, one serves it.
	PutRequest(ctx context.Context, digest RequestDigest, runID, instead string) error
	// FindRequest returns the record of the request, and an error of code not_found if there is no record.
	FindRequest(ctx context.Context, digest RequestDigest) (RequestRecord, error)
	// DeliverRequest marks the record as delivered at a time of this process's clock ([time.Now]), if it still names the run and is
	// not delivered. Otherwise it changes nothing.
	DeliverRequest(ctx context.Context, digest RequestDigest, runID string, at time.Time) error
}

// A RequestRecord names the run that serves a request.
type RequestRecord struct {
	RunID string
	// Age is the time since PutRequest, by the clock of the store.
	Age time.Duration
	// Delivered is set once a client has received the response. DeliveredAge is the time since then.
	Delivered    bool
	DeliveredAge time.Duration
}

// requestRecords has the rules of a [RequestStore].
type requestRecords struct{ begin transaction }

// PutRequest implements [RequestStore].
func (q requestRecords) PutRequest(ctx context.Context, digest RequestDigest, runID, instead string) error {
	return q.begin(ctx, "put the request", true, func(rows Rows, now time.Time) error {
		if err := rows.ForgetRequests(now.Add(-RequestsKept)); err != nil {
			return err
		}
		switch has, _, _, err := rows.Request(digest); {
		case err != nil && !errors.Is(err, lathe.ErrNotFound):
			return err
		case err == nil && has != instead && has != runID:
			return lathe.ErrConflict
		}
		return rows.PutRequest(digest, runID, now, time.Time{})
	})
}

// FindRequest implements [RequestStore].
func (q requestRecords) FindRequest(ctx context.Context, digest RequestDigest) (r RequestRecord, err error) {
	err = q.begin(ctx, "find the request", false, func(rows Rows, now time.Time) error {
		runID, at, delivered, err := rows.Request(digest)
		if err != nil {
			return err
		}
		if r = (RequestRecord{RunID: runID, Age: now.Sub(at)}); !delivered.IsZero() {
			r.Delivered, r.DeliveredAge = true, now.Sub(delivered)
		}
		return nil
	})
	return r, err
}

// DeliverRequest implements [RequestStore].
func (q requestRecords) DeliverRequest(ctx context.Context, digest RequestDigest, runID string, at time.Time) error {
	return q.begin(ctx, "deliver the request", true, func(rows Rows, now time.Time) error {
		has, put, delivered, err := rows.Request(digest)
		if errors.Is(err, lathe.ErrNotFound) || err == nil && (has != runID || !delivered.IsZero()) {
			return nil
		}
		if err == nil {
			err = rows.PutRequest(digest, runID, put, now.Add(-time.Since(at)))
		}
		return err
	})
}

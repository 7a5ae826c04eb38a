package store

import (
	"context"
	"crypto/sha256"
	"time"
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
	// DeliverRequest marks the record as delivered, that long ago, if it still names the run and is not delivered.
	// Otherwise it changes nothing.
	DeliverRequest(ctx context.Context, digest RequestDigest, runID string, ago time.Duration) error
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

package lathe

import (
	"context"
	"crypto/sha256"
	"time"
)

// A RequestDigest identifies a request: two requests with the same digest ask for the same thing, on behalf of
// the same caller.
type RequestDigest [sha256.Size]byte

// A RequestStore records which run answers a request, so that a repetition of the request finds the run. A record
// holds no text of the request. A store may remove records that are older than two days.
//
// Records are independent of the log: a record remains when its run is removed by [Retainer.DeleteBefore] or
// [Retainer.Trim], and is removed when the run is deleted by name, by session or by principal.
type RequestStore interface {
	// PutRequest records that the run answers the request and is not delivered. It replaces an earlier record
	// of the request.
	PutRequest(ctx context.Context, digest RequestDigest, runID string) error
	// FindRequest returns the record of the request. It is an error of code not_found where there is none.
	FindRequest(ctx context.Context, digest RequestDigest) (RequestRecord, error)
	// DeliverRequest marks the record as delivered, that long ago, if it still names the run and is not delivered.
	// Otherwise it changes nothing.
	DeliverRequest(ctx context.Context, digest RequestDigest, runID string, ago time.Duration) error
}

// A RequestRecord says which run answers a request.
type RequestRecord struct {
	RunID string
	// Age is the time since PutRequest, by the clock of the store.
	Age time.Duration
	// Delivered is set once a client has received the answer. DeliveredAge is the time since then.
	Delivered    bool
	DeliveredAge time.Duration
}

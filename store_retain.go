package lathe

import (
	"context"
	"time"
)

// A Retainer is a [RunIndex] that forgets runs at once, or by age and size. What it has forgotten is in
// none of its files any more, content included.
//
// Reading a run that DeleteBefore or Trim removed is an error of code not_found that wraps a
// [*GoneError], for as long as the store remembers that it had the run.
type Retainer interface {
	RunIndex
	// DeleteSession removes all runs of a session, and DeletePrincipal those made for a principal,
	// whether they have ended or not. An empty name removes nothing.
	DeleteSession(ctx context.Context, sessionID string) error
	DeletePrincipal(ctx context.Context, principal string) error
	// DeleteBefore removes the runs that have ended, and whose last event is older than t.
	DeleteBefore(ctx context.Context, t time.Time) error
	// Trim removes runs that have ended, the one that ended first before the others, until what is kept
	// takes no more than maxBytes. Runs that go on or wait are kept whatever they take.
	Trim(ctx context.Context, maxBytes int64) error
}

// A GoneError says that a store had a run, and removed it by its age or for its room.
type GoneError struct {
	RunID     string
	Principal string
	Time      time.Time // when it was removed
}

// Error says that the run was removed.
func (e *GoneError) Error() string { return "the run is not kept any more" }

// Unwrap returns [ErrNotFound]: the run is not there.
func (e *GoneError) Unwrap() error { return ErrNotFound }

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

// A Compactor is a [RunIndex] that can remove content of runs that have ended while the runs stay listed and readable.
// Several processes may compact one store at once: Compact with the same shrink is idempotent.
type Compactor interface {
	RunIndex
	// Ended returns at most limit runs that have ended and whose last event is older than before, ordered by the time of
	// that event and by id: those after the run that after describes, or the first ones if after is nil.
	Ended(ctx context.Context, after *RunSummary, before time.Time, limit int) ([]RunSummary, error)
	// Compact stores what shrink returns for each event in its place: all events or none. Ids, times and types stay. A
	// run that has not ended is an [ErrConflict], an unknown one an [ErrNotFound].
	Compact(ctx context.Context, runID string, shrink func(Event) Event) error
}

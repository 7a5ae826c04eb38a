package store

import (
	"context"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A Retainer is a [RunIndex] that removes runs by session, principal, age or size. A removed run is in none of the
// store's files, and neither is its content.
//
// Reading a run that DeleteBefore or Trim removed returns an error of code not_found that wraps a [GoneError], for as
// long as the store keeps a record of the removal.
type Retainer interface {
	RunIndex
	// DeleteSession removes all runs of a session, and DeletePrincipal all runs of a principal, whether they have ended
	// or not. An empty name removes nothing.
	DeleteSession(ctx context.Context, sessionID string) error
	DeletePrincipal(ctx context.Context, principal string) error
	// DeleteBefore removes the runs that have ended and whose last event is older than t.
	DeleteBefore(ctx context.Context, t time.Time) error
	// Trim removes runs that have ended, those that ended first before the others, until the store's runs take at most
	// maxBytes. It removes no running or parked run.
	Trim(ctx context.Context, maxBytes int64) error
}

// A GoneError says that [Retainer.DeleteBefore] or [Retainer.Trim] removed the run.
type GoneError struct {
	RunID     string
	Principal string
	Time      time.Time // when it was removed
}

// Error says that the run was removed.
func (e *GoneError) Error() string { return "the run is not kept any more" }

// Unwrap returns [lathe.ErrNotFound].
func (e *GoneError) Unwrap() error { return lathe.ErrNotFound }

// A Compactor is a [RunIndex] that can remove content of runs that have ended while the runs stay listed and readable.
// Several processes may compact one store at once: Compact with the same shrink is idempotent.
type Compactor interface {
	RunIndex
	// Ended returns at most limit runs that have ended and whose last event is older than before, ordered by the time of
	// that event and by id. It starts behind the run that after describes, or with the first run if after is nil.
	Ended(ctx context.Context, after *RunSummary, before time.Time, limit int) ([]RunSummary, error)
	// Compact replaces each event by what shrink returns for it: all events or none. Ids, times and types stay. It returns
	// [lathe.ErrConflict] for a run that has not ended, and [lathe.ErrNotFound] for one that does not exist.
	Compact(ctx context.Context, runID string, shrink func(event.Event) event.Event) error
}

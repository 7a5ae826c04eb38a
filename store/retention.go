package store

import (
	"context"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A Retainer is a [RunIndex] that removes runs by session, principal, age or size. After a removal, no file of the store contains the run
// or its content.
// A read of a run that DeleteBefore or Trim removed returns an error of code not_found that wraps a [GoneError], as long as the store has a
// record of the removal.
type Retainer interface {
	RunIndex
	// DeleteSession removes all runs of a session, and DeletePrincipal all runs of a principal, whether or not they have ended. An empty
	// name removes nothing.
	DeleteSession(ctx context.Context, sessionID string) error
	DeletePrincipal(ctx context.Context, principal string) error
	// DeleteBefore removes ended runs whose last event is older than t.
	DeleteBefore(ctx context.Context, t time.Time) error
	// Trim removes ended runs, the oldest end first, until the size of all runs is at most maxBytes. It does not remove running or parked
	// runs.
	Trim(ctx context.Context, maxBytes int64) error
}

// A GoneError means that [Retainer.DeleteBefore] or [Retainer.Trim] removed the run.
type GoneError struct {
	RunID     string
	Principal string
	Time      time.Time // when it was removed
}

// Error returns a fixed text.
func (e *GoneError) Error() string { return "the run is not kept any more" }

// Unwrap returns [lathe.ErrNotFound].
func (e *GoneError) Unwrap() error { return lathe.ErrNotFound }

// A Compactor is a [RunIndex] that can remove content of ended runs, which remain listed and readable. Several processes may compact one
// store concurrently: Compact with the same shrink is idempotent.
type Compactor interface {
	RunIndex
	// Ended returns at most limit ended runs whose last event is older than before, ordered by the time of that event and by id. It starts
	// behind the run after, or with the first run if after is nil.
	Ended(ctx context.Context, after *RunSummary, before time.Time, limit int) ([]RunSummary, error)
	// Compact replaces each event by the result of shrink: all events or none. Ids, times and types do not change. It returns
	// [lathe.ErrConflict] for a run that has not ended, and [lathe.ErrNotFound] for one that does not exist.
	Compact(ctx context.Context, runID string, shrink func(event.Event) event.Event) error
}

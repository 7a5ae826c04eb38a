package store

import (
	"context"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A Retainer is a [RunIndex] that removes runs by session, principal, age or size. After a removal, the store cannot read the runs; the
// comments of each store say when its files no longer contain them. After DeleteBefore or Trim, a read of the run returns not_found
// wrapping a [*GoneError], as long as the store remembers the removal.
type Retainer interface {
	RunIndex
	// DeleteSession removes all runs of a session, and DeletePrincipal all runs of a principal, including those that have not ended. An
	// empty name removes nothing.
	DeleteSession(ctx context.Context, sessionID string) error
	DeletePrincipal(ctx context.Context, principal string) error
	// DeleteBefore removes ended runs whose last event is older than t.
	DeleteBefore(ctx context.Context, t time.Time) error
	// Trim removes ended runs, in the order of their end, until all runs together have at most maxBytes. Running and parked runs are not
	// removed, so the result may be larger.
	Trim(ctx context.Context, maxBytes int64) error
}

// A GoneError says that the run existed and was removed by [Retainer.DeleteBefore] or [Retainer.Trim].
type GoneError struct {
	RunID     string
	Principal string
	Time      time.Time // when the run was removed
}

// Error returns a fixed text.
func (e *GoneError) Error() string { return "the run is not kept any more" }

// Unwrap returns [lathe.ErrNotFound].
func (e *GoneError) Unwrap() error { return lathe.ErrNotFound }

// A Compactor is a [RunIndex] that can remove content from ended runs, which stay listed and readable. Several processes may compact the
// same store concurrently.
type Compactor interface {
	RunIndex
	// Ended returns at most limit ended runs whose last event is older than before, ordered by the time of that event and then by id. The
	// list begins after the run given by the parameter after; nil: it begins with the first run.
	Ended(ctx context.Context, after *RunSummary, before time.Time, limit int) ([]RunSummary, error)
	// Compact replaces each event of the run by the result of shrink. On an error it replaces none. shrink must not change ids, times and
	// types, and must be idempotent. The error wraps [lathe.ErrConflict] if the run has not ended and [lathe.ErrNotFound] if it does not
	// exist.
	Compact(ctx context.Context, runID string, shrink func(event.Event) event.Event) error
}

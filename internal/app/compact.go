package app

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/sqlite"
)

const (
	// handOverWindow is the time in which a client can return the results of calls that it executes.
	handOverWindow = time.Hour
	// compactGrace is added to the retry window: a retry that began in time may still read the run, and a run may be stored a moment after
	// its end.
	compactGrace = time.Minute

	compactPage  = 200                   // runs in one query
	compactPause = 10 * time.Millisecond // pause after each compacted run, so that appends are not delayed
)

// Retention returns the settings of tool_calling.retention; nil if none is set, which removes no content.
func Retention(cfg *config.Config) *loop.Retention {
	for _, key := range []string{"mode", "store_raw_tool_output", "max_output_bytes"} {
		if cfg.Origin("tool_calling.retention."+key) != "default" {
			return retentionSettings(cfg)
		}
	}
	return nil
}

// retentionSettings returns the settings of tool_calling.retention, including defaults.
func retentionSettings(cfg *config.Config) *loop.Retention {
	r := cfg.ToolCalling.Retention
	return &loop.Retention{Mode: loop.RetentionMode(r.Mode), StoreRaw: r.StoreRawToolOutput, MaxOutputBytes: r.MaxOutputBytes}
}

// keptWhole returns the time after the end of a run during which its content is retained: as long as a retry can continue the run, or the
// client can return results.
func keptWhole(r *store.RunSummary, retryWindow time.Duration) time.Duration {
	if r.Reason == lathe.ReasonClientToolCalls {
		return max(handOverWindow, retryWindow)
	}
	return retryWindow
}

// Compacted counts what [Compact] has removed.
type Compacted struct {
	Runs, Events int
	Bytes        int64
	Freed        int64 // bytes by which the file of the store became smaller
}

// CompactOptions configure [Compact]. The zero value compacts all ended runs.
type CompactOptions struct {
	Runs   []string  // run ids; nil: all runs
	Before time.Time // only runs that ended before this time; zero: now; ignored if Runs is set
	DryRun bool      // only count; nothing is removed
}

// Compact removes from ended runs the content that tool_calling.retention, or its defaults, do not keep. The error has the code conflict if
// a run of opts.Runs has not ended. If all runs are compacted, the file of an SQLite store is shrunk as well. opts may be nil.
func Compact(ctx context.Context, cfg *config.Config, s Store, opts *CompactOptions) (total Compacted, err error) {
	if opts == nil {
		opts = &CompactOptions{}
	}
	keep := retentionSettings(cfg)
	var runs store.Compactor = s
	if opts.DryRun {
		runs = dryCompactor{s}
	}
	if opts.Runs != nil {
		for _, id := range opts.Runs {
			err := compactRun(ctx, runs, id, keep, &total)
			if errors.Is(err, lathe.ErrConflict) {
				err = lathe.CodeConflict.Errorf(Op, "the run %s has not ended", id)
			}
			if err != nil {
				return total, err
			}
		}
		return total, nil
	}
	end := opts.Before
	if end.IsZero() {
		end = time.Now()
	}
	for r, err := range endedRuns(ctx, runs, nil, end) {
		if err == nil {
			err = compactRun(ctx, runs, r.RunID, keep, &total)
		}
		if err != nil && !errors.Is(err, lathe.ErrNotFound) { // the run may have been deleted in the meantime
			return total, err
		}
	}
	if file, ok := s.(*sqlite.Store); ok && !opts.DryRun {
		total.Freed, err = file.Shrink(ctx)
	}
	return total, err
}

// endedRuns yields the runs that ended after the run last and before end, in the order in which they ended. If last is nil, it
// begins with the first run that ended.
func endedRuns(ctx context.Context, s store.Compactor, last *store.RunSummary, end time.Time) iter.Seq2[*store.RunSummary, error] {
	return func(yield func(*store.RunSummary, error) bool) {
		for {
			rows, err := s.Ended(ctx, last, end, compactPage)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range rows {
				if last = &rows[i]; !yield(last, nil) {
					return
				}
			}
			if len(rows) < compactPage {
				return
			}
		}
	}
}

// A dryCompactor is a store whose Compact changes nothing.
type dryCompactor struct{ store.Compactor }

// Compact calls edit with each event of a run.
func (d dryCompactor) Compact(ctx context.Context, runID string, edit func(event.Event) event.Event) error {
	for e, err := range d.Read(ctx, runID, 0) {
		if err != nil {
			return err
		}
		edit(e)
	}
	return nil
}

// compactRun removes the content of one run that keep does not retain, and adds it to total.
func compactRun(ctx context.Context, s store.Compactor, runID string, keep *loop.Retention, total *Compacted) error {
	var run Compacted
	err := s.Compact(ctx, runID, func(e event.Event) event.Event {
		was := e.Removed
		e = keep.CompactEvent(e)
		if e.Removed > was {
			run.Events++
			run.Bytes += int64(e.Removed - was)
		}
		return e
	})
	if err == nil {
		total.Runs++
		total.Events += run.Events
		total.Bytes += run.Bytes
	}
	return err
}

// A compactor removes content of ended runs of one store, in the order in which they ended. It examines each run once.
//
// Each process that shares a store has a compactor; there is no leader. A process skips a run that another one has compacted, because the
// run summary says so. Two processes that compact a run at the same time write the same bytes: the only cost is the additional read, and
// that both count the run. Without work, each process makes one indexed query per minute for at most compactPage rows.
type compactor struct {
	store       store.Compactor
	retryWindow time.Duration
	last        *store.RunSummary // all runs that ended before or with this run have been examined
	log         *slog.Logger
}

// once compacts the runs whose content no longer needs to be retained at the time now.
func (c *compactor) once(ctx context.Context, now time.Time) (total Compacted, err error) {
	window := c.retryWindow + compactGrace
	postponed := false // a later pass has to examine a run again, and those after it
	for r, err := range endedRuns(ctx, c.store, c.last, now.Add(-window)) {
		if err != nil {
			return total, err
		}
		due := r.Retention == "due"
		tooYoung := r.Updated.After(now.Add(-keptWhole(r, window)))
		postponed = postponed || due && tooYoung
		if !postponed {
			c.last = r
		}
		if !due || tooYoung {
			continue
		}
		keep, err := c.settings(ctx, r.RunID)
		if err == nil {
			err = compactRun(ctx, c.store, r.RunID, keep, &total)
		}
		if err != nil && !errors.Is(err, lathe.ErrNotFound) { // the run may have been deleted in the meantime
			return total, err
		}
		select {
		case <-time.After(compactPause):
		case <-ctx.Done():
			return total, ctx.Err()
		}
	}
	return total, nil
}

// settings returns the retention settings with which a run was started, from its first event.
func (c *compactor) settings(ctx context.Context, runID string) (*loop.Retention, error) {
	for e, err := range c.store.Read(ctx, runID, 0) {
		if err != nil {
			return nil, err
		}
		if d, ok := e.Data.(*event.RunStarted); ok && d.Retention != nil {
			return loop.RetentionOf(d.Retention), nil
		}
		break
	}
	return nil, errors.New("the run was started without retention settings")
}

// compactEvery is the interval at which a server compacts runs.
const compactEvery = time.Minute

// run compacts until ctx is done. It calls count with the result of each pass.
func (c *compactor) run(ctx context.Context, count func(runs int, bytes int64)) {
	once := func() {
		total, err := c.once(ctx, time.Now())
		if total.Runs > 0 {
			count(total.Runs, total.Bytes)
			c.log.Info("content of ended runs was removed, as tool_calling.retention says", "runs", total.Runs, "events", total.Events, "bytes", total.Bytes)
		}
		if err != nil && ctx.Err() == nil {
			c.log.Error("content of ended runs could not be removed", "code", lathe.CodeOf(err))
		}
	}
	once()
	every(ctx, compactEvery, once)
}

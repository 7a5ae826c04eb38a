package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/config"
	"github.com/lathe-run/lathe/loop"
)

const (
	// handOverWindow is the time in which a client may return the results of calls that were handed over to it.
	handOverWindow = time.Hour
	// compactGrace is added to the time for retries: one that began in time may still read the run, and a run may be
	// stored a moment after it ended.
	compactGrace = time.Minute

	compactPage  = 200                   // runs that one query returns
	compactPause = 10 * time.Millisecond // after each compacted run, so that appends are not held up
)

// retentionOf returns the retention settings; nil if no key of tool_calling.retention is set, and then content stays.
func retentionOf(cfg *config.Config) *loop.Retention {
	set := false
	for _, key := range []string{"mode", "store_raw_tool_output", "max_output_bytes"} {
		set = set || cfg.Origin("tool_calling.retention."+key) != "default"
	}
	if !set {
		return nil
	}
	return retentionSettings(cfg)
}

func retentionSettings(cfg *config.Config) *loop.Retention {
	r := cfg.ToolCalling.Retention
	return &loop.Retention{Mode: loop.RetentionMode(r.Mode), StoreRaw: r.StoreRawToolOutput, MaxOutputBytes: r.MaxOutputBytes}
}

// keptWhole returns how long after its end the content of a run is kept whole: as long as a retry of its client may
// continue it, or the client may return results.
func keptWhole(r *lathe.RunSummary, retryWindow time.Duration) time.Duration {
	if r.Reason == lathe.ReasonClientToolCalls {
		return max(handOverWindow, retryWindow)
	}
	return retryWindow
}

// compacted counts what compaction has removed.
type compacted struct {
	runs, events int
	bytes        int64
}

// compactRun removes the content of one run that its retention settings do not keep. With dryRun it only counts.
func compactRun(ctx context.Context, s lathe.Compactor, runID string, keep *loop.Retention, dryRun bool, total *compacted) error {
	changed, removed := 0, int64(0)
	count := func(e lathe.Event) lathe.Event {
		was := e.Removed
		e = keep.CompactEvent(e)
		if e.Removed > was {
			changed, removed = changed+1, removed+int64(e.Removed-was)
		}
		return e
	}
	if dryRun {
		for e, err := range s.Read(ctx, runID, 0) {
			if err != nil {
				return err
			}
			count(e)
		}
	} else if err := s.Compact(ctx, runID, count); err != nil {
		return err
	}
	total.runs++
	total.events += changed
	total.bytes += removed
	return nil
}

// A compactor removes content of ended runs of one store, in the order of their ends. Each run is looked at once for
// each process.
type compactor struct {
	store       lathe.Compactor
	retryWindow time.Duration
	last        *lathe.RunSummary // up to which all runs that have ended were looked at
	log         *slog.Logger
}

// once compacts the runs whose content need not be kept whole any longer at now.
func (c *compactor) once(ctx context.Context, now time.Time) (total compacted, err error) {
	window := c.retryWindow + compactGrace
	from, passed := c.last, true // passed: every run so far was old enough
	for {
		rows, err := c.store.Ended(ctx, from, now.Add(-window), compactPage)
		if err != nil {
			return total, err
		}
		for i := range rows {
			r := &rows[i]
			young := r.Updated.After(now.Add(-keptWhole(r, window)))
			passed = passed && !(young && r.Retention == "due")
			if passed {
				c.last = r
			}
			if r.Retention != "due" || young {
				continue
			}
			keep, err := c.settings(ctx, r.RunID)
			if err == nil {
				err = compactRun(ctx, c.store, r.RunID, keep, false, &total)
			}
			if err != nil && !errors.Is(err, lathe.ErrNotFound) { // it may have been deleted meanwhile
				return total, err
			}
			select {
			case <-time.After(compactPause):
			case <-ctx.Done():
				return total, ctx.Err()
			}
		}
		if len(rows) < compactPage {
			return total, nil
		}
		from = &rows[len(rows)-1]
	}
}

// settings returns the retention settings that a run was started with.
func (c *compactor) settings(ctx context.Context, runID string) (*loop.Retention, error) {
	for e, err := range c.store.Read(ctx, runID, 0) {
		if err != nil {
			return nil, err
		}
		if d, ok := e.Data.(*lathe.RunStarted); ok && d.Retention != nil {
			return loop.RetentionOf(d.Retention), nil
		}
		break
	}
	return nil, errors.New("the run was started without retention settings")
}

// compactEvery is how often the daemon looks for runs to compact.
const compactEvery = time.Minute

// run compacts until ctx is done. count is called with what each pass has removed.
func (c *compactor) run(ctx context.Context, count func(runs int, bytes int64)) {
	tick := time.NewTicker(compactEvery)
	defer tick.Stop()
	for {
		total, err := c.once(ctx, time.Now())
		if total.runs > 0 {
			count(total.runs, total.bytes)
			c.log.Info("content of ended runs was removed, as tool_calling.retention says", "runs", total.runs, "events", total.events, "bytes", total.bytes)
		}
		if err != nil && ctx.Err() == nil {
			c.log.Error("content of ended runs could not be removed", "code", lathe.CodeOf(err))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// startedRuns is a sink that collects the ids of the runs of one command, those of agents included.
type startedRuns struct {
	mu  sync.Mutex
	ids []string
}

// Emit implements [lathe.Sink].
func (s *startedRuns) Emit(_ context.Context, e lathe.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.ids, e.RunID) {
		s.ids = append(s.ids, e.RunID)
	}
}

// compact removes content of the runs that have ended. No client can repeat or refer to a run of a command, so its
// content need not be kept whole for a while.
func (s *startedRuns) compact(ctx context.Context, in runStore, keep *loop.Retention) error {
	if in == nil || keep == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.ids {
		err := compactRun(context.WithoutCancel(ctx), in, id, keep, false, &compacted{})
		if err != nil && !errors.Is(err, lathe.ErrConflict) && !errors.Is(err, lathe.ErrNotFound) { // it waits, or is not stored
			return err
		}
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// fewestRuns is the smallest number of stored runs that is measured.
const fewestRuns = 1000

// storedRuns measures what reads and changes cost in a store with many runs, on SQLite and on PostgreSQL. The CPU time is that of
// this process and of the processes of the server.
func storedRuns(s *settings) (*Chart, error) {
	c := &Chart{Title: "Stored runs", Size: "runs in the store"}
	sizes := steps(fewestRuns, max(fewestRuns, s.mostRuns))
	if s.quick {
		sizes = []int{20, 40, 60}
	}
	for _, kind := range []string{"SQLite", "PostgreSQL"} {
		err := s.runsOf(c, kind, sizes)
		if errors.Is(err, pgtest.ErrMissing) {
			c.note("PostgreSQL was not measured: it is not installed.")
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
	}
	return c, nil
}

// runsOf measures one kind of store.
func (s *settings) runsOf(c *Chart, kind string, sizes []int) (err error) {
	r, err := s.newRunStore(kind)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, r.close())
		for _, suffix := range []string{"", "-wal", "-shm", ".lock"} { // room for the next one
			_ = os.Remove(filepath.Join(s.dir, "runs.db"+suffix))
		}
	}()
	for _, n := range sizes {
		if err := r.grow(context.Background(), n); err != nil {
			return err
		}
		for _, p := range []struct {
			name       string
			operations []operation
		}{{"lists", r.lists(n)}, {"other reads", r.reads(n)}, {"changes and maintenance", r.changes(kind)}} {
			if err := s.atSize(c, kind+": "+p.name, n, r.measurements(p.operations)); err != nil {
				return err
			}
		}
	}
	return nil
}

// An operation is one of those that are measured in a store.
type operation struct {
	name string
	do   func(context.Context) error
}

func (r *runStore) measurements(operations []operation) []measurement {
	out := make([]measurement, len(operations))
	for i, o := range operations {
		out[i] = measurement{name: o.name, others: r.others, wall: true, prepare: func(int) (func() error, func(), error) {
			return func() error { return o.do(context.Background()) }, nil, nil
		}}
	}
	return out
}

// errRows is the error of a list that has not the rows that it should have.
var errRows = errors.New("the list has other rows than it should have")

// find lists the runs of a filter and a query, of which there are some or none.
func (r *runStore) find(f store.RunFilter, q store.RunQuery, some bool) func(context.Context) error {
	return func(ctx context.Context) error {
		own := f // the index may not keep it
		rows, _, _, err := store.Find(ctx, r, &own, &q)
		if err == nil && (len(rows) > 0) != some {
			err = errRows
		}
		return err
	}
}

// lists are the pages of 50 runs, in a store of n runs.
func (r *runStore) lists(n int) []operation {
	middle := store.RunSummary{RunID: runID(n / 2), Started: startOf(n / 2)}
	all := store.RunQuery{}
	return []operation{
		{"the first page", r.find(store.RunFilter{}, all, true)},
		{"a page in the middle", r.find(store.RunFilter{After: middle.Cursor().String()}, all, true)},
		{"of a status", r.find(store.RunFilter{Status: "parked"}, all, true)},
		{"of a key", r.find(store.RunFilter{Principal: smallKey(4)}, all, true)},
		{"of a key with half of the runs, and a status that none of them has", r.find(store.RunFilter{Principal: largeKey, Status: "failed"}, all, false)},
		{"of a session", r.find(store.RunFilter{SessionID: fmt.Sprint("session-", n/20)}, all, true)},
		{"of ten minutes in the middle", r.find(store.RunFilter{Since: startOf(n/2 - 150), Until: startOf(n/2 + 150)}, all, true)},
	}
}

// reads are the other reads of an operator.
func (r *runStore) reads(n int) []operation {
	middle := runID(n / 2)
	calls := func(key string) func(context.Context) error {
		return func(ctx context.Context) error {
			rows, _, err := r.ModelCalls(ctx, &store.RunFilter{Principal: key})
			if err == nil && len(rows) == 0 {
				err = errRows
			}
			return err
		}
	}
	return []operation{
		{"a run and its events", func(ctx context.Context) error {
			rows, _, err := r.Runs(ctx, &store.RunFilter{RunID: middle})
			if err != nil {
				return err
			}
			events := 0
			for _, err := range r.Read(ctx, middle, 0) {
				if err != nil {
					return err
				}
				events++
			}
			if len(rows) != 1 || events != 4 {
				return errRows
			}
			return nil
		}},
		{"runs of a model", r.find(store.RunFilter{}, store.RunQuery{Model: "model-2"}, true)},
		{"runs of a model that has none", r.find(store.RunFilter{}, store.RunQuery{Model: "model-none"}, false)},
		{"model calls of a key", calls(smallKey(4))},
		{"model calls of a key with half of the runs", calls(largeKey)},
		{"usage of a key on four days", func(ctx context.Context) error { return r.usage(ctx, largeKey, n) }},
	}
}

// usage reads what a key used on the last four days.
func (r *runStore) usage(ctx context.Context, key string, n int) error {
	last := startOf(n - 1)
	rows, err := r.Usage(ctx, &store.UsageFilter{Key: key, Since: last.AddDate(0, 0, -3).Format(time.DateOnly), Until: last.AddDate(0, 0, 1).Format(time.DateOnly)})
	if err == nil && len(rows) == 0 {
		err = errRows
	}
	return err
}

// A changer makes the runs that are changed, which are older than the others.
type changer struct {
	*runStore
	made int
}

// changes are what a gateway does with a store: runs are stored and removed, and maintenance looks for work.
func (r *runStore) changes(kind string) []operation {
	c := &changer{runStore: r}
	ops := []operation{
		{"a run of four appends, and its removal", func(ctx context.Context) error {
			id, err := c.add(ctx, true)
			if err != nil {
				return err
			}
			return r.Delete(ctx, id)
		}},
		{"ten runs, and their removal by age", func(ctx context.Context) error {
			for range 10 {
				if _, err := c.add(ctx, false); err != nil {
					return err
				}
			}
			return r.DeleteBefore(ctx, firstStart)
		}},
		{"no run to remove by age", func(ctx context.Context) error { return r.DeleteBefore(ctx, firstStart) }},
		{"the size of all runs", func(ctx context.Context) error { return r.Trim(ctx, 1<<50) }},
		{"runs to resume at the start", func(ctx context.Context) error {
			e, err := engine.New(&engine.Options{Store: r})
			if err != nil {
				return err
			}
			super, err := engine.NewSupervisor(e, nil)
			if err != nil {
				return err
			}
			_, err = super.Recover(ctx, r, func(*store.RunSummary) (*loop.Loop, error) { return nil, lathe.ErrNotFound })
			return err
		}},
		{"the store is opened", func(context.Context) error {
			if kind == "SQLite" { // one process alone
				if err := r.Close(); err != nil {
					return err
				}
				return r.open()
			}
			other := &runStore{name: r.name}
			if err := other.open(); err != nil {
				return err
			}
			return other.Close()
		}},
	}
	if _, ok := r.benchStore.(store.Shared); ok {
		ops = append(ops, operation{"no run to claim", func(ctx context.Context) error {
			got, err := r.benchStore.(store.Shared).Claim(ctx, "bench", time.Minute, 10)
			if err == nil && len(got) > 0 {
				err = errRows
			}
			return err
		}}, operation{"a subscription, and the arrival of an append", c.watch})
	}
	return ops
}

// add stores a run that ended before all others: in four appends, or in one.
func (c *changer) add(ctx context.Context, apart bool) (string, error) {
	c.made++
	id := fmt.Sprintf("run_00J%015d%08d", c.size, c.made)
	events := templateRun(id, smallKey(c.made), "session-made", "model-2", firstStart.Add(-time.Hour), templates[0].last)
	if !apart {
		_, err := c.Append(ctx, id, 0, events...)
		return id, err
	}
	for i := range events {
		if _, err := c.Append(ctx, id, int64(i), events[i]); err != nil {
			return id, err
		}
	}
	return id, nil
}

// watch subscribes to the changes of a store, appends to a run, and waits for its notification. What is sent before the
// subscription is made is lost, so that it appends until one arrives.
func (c *changer) watch(ctx context.Context) error {
	shared := c.benchStore.(store.Shared)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	id, err := c.add(ctx, false)
	if err != nil {
		return err
	}
	arrived, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- shared.Watch(ctx, func(string) {
			select {
			case arrived <- struct{}{}:
			default: // one is enough
			}
		})
	}()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	var more []string
	for waiting := true; waiting; {
		select {
		case <-arrived:
			waiting = false
		case err := <-ended:
			return err
		case <-again.C:
			other, err := c.add(ctx, false)
			if err != nil {
				return err
			}
			more = append(more, other)
		}
	}
	cancel()
	<-ended
	for _, id := range append(more, id) {
		if err := c.Delete(context.WithoutCancel(ctx), id); err != nil {
			return err
		}
	}
	return nil
}

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/store/postgres"
)

// A counted is one contender of the comparison of queues: do inserts one job and returns when the job has ended; it reports when the
// job was started. close ends the connections, so that the server has counted everything.
type counted struct {
	name  string
	do    func(worker int, started func()) error
	close func() error
}

// queues measures what a job costs in the engine's own queue and in River, on one database.
func queues(at int, budget time.Duration, url string) error {
	ctx := context.Background()
	open := []func() (*counted, error){
		func() (*counted, error) { return ownQueue(ctx, url) },
		func() (*counted, error) { return jobs(ctx, url, "River, default settings", &river.Config{}) },
		func() (*counted, error) {
			return jobs(ctx, url, "River, fetches each ms", &river.Config{FetchCooldown: time.Millisecond, FetchPollInterval: 10 * time.Millisecond})
		},
		func() (*counted, error) { return ownRun(ctx, url) },
	}
	for _, f := range open { // makes the tables, which are not to be counted
		c, err := f()
		if err != nil {
			return err
		}
		if err := c.close(); err != nil {
			return err
		}
	}
	fmt.Printf("\n%-32s per second  to start: p50       p99   CPU µs   of the server   WAL bytes   rows   commits\n", fmt.Sprintf("a job, by %d at once", at))
	for _, f := range open {
		c, err := f()
		if err != nil {
			return err
		}
		if err := count(ctx, c, at, budget, url); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// totals are what the server has done, and what it cost.
type totals struct {
	wal, rows, commits int64
	server, own        time.Duration
}

func read(ctx context.Context, url string) (t totals, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return t, err
	}
	var pid int
	err = conn.QueryRow(ctx, `SELECT pg_backend_pid(), pg_current_wal_insert_lsn() - '0/0', xact_commit, tup_inserted + tup_updated + tup_deleted
		FROM pg_stat_database WHERE datname = current_database()`).Scan(&pid, &t.wal, &t.commits, &t.rows)
	t.server = pgtest.CPU(pgtest.Parent(pid))
	var r syscall.Rusage
	err = errors.Join(err, conn.Close(ctx), syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	t.own = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	return t, err
}

// count measures one contender and prints its row.
func count(ctx context.Context, c *counted, at int, budget time.Duration, url string) error {
	before, err := read(ctx, url)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var waits []time.Duration
	perSecond, times, err := measure(at, budget, func(worker int) error {
		began := time.Now()
		return c.do(worker, func() {
			mu.Lock()
			defer mu.Unlock()
			waits = append(waits, time.Since(began))
		})
	})
	if err = errors.Join(err, c.close()); err != nil {
		return err
	}
	after, err := read(ctx, url)
	if err != nil {
		return err
	}
	n := int64(len(times))
	fmt.Printf("%-32s %10.0f  %13s  %8s  %7d  %14d  %10d  %5.1f  %8.1f\n", c.name, perSecond, quantile(waits, 0.5), quantile(waits, 0.99),
		(after.own-before.own).Microseconds()/n, (after.server-before.server).Microseconds()/n, (after.wal-before.wal)/n,
		float64(after.rows-before.rows)/float64(n), float64(after.commits-before.commits)/float64(n))
	return nil
}

// ownQueue is the queue of calls for workers with one worker, which claims calls when it is notified and each second.
func ownQueue(ctx context.Context, url string) (*counted, error) {
	kept, err := postgres.Open(ctx, url, nil)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	definition, wake := rand.Text(), make(chan struct{}, 1)
	var waits sync.Map // of *waiting, by key
	var failed atomic.Pointer[error]
	var running sync.WaitGroup
	running.Go(func() {
		_ = kept.WatchCalls(ctx, func(remote.Notification) { // it returns when ctx is done
			select {
			case wake <- struct{}{}:
			default: // the worker is awake
			}
		})
	})
	running.Go(func() {
		poll := time.NewTicker(time.Second)
		defer poll.Stop()
		for ctx.Err() == nil {
			calls, err := kept.ClaimCalls(ctx, "worker", []string{definition}, time.Minute, 64)
			if err != nil && ctx.Err() == nil {
				failed.Store(&err)
				return
			}
			for i := range calls {
				running.Go(func() { // as many at once as River's workers
					w, _ := waits.LoadAndDelete(calls[i].Key)
					w.(*waiting).work(ctx, kept, &calls[i])
				})
			}
			if len(calls) > 0 {
				continue
			}
			select {
			case <-wake:
			case <-poll.C:
			case <-ctx.Done():
			}
		}
	})
	return &counted{"the engine's queue of calls", func(_ int, started func()) error {
		if err := failed.Load(); err != nil {
			return *err
		}
		w := &waiting{started: started, done: make(chan error, 1)}
		call := remote.Call{Key: rand.Text(), RunID: "run", CallID: "c", Tool: "t", Definition: definition, Effect: lathe.Writes, Arguments: []byte(body)}
		waits.Store(call.Key, w)
		if _, err := kept.PutCall(ctx, &call, time.Hour); err != nil {
			return err
		}
		return w.wait()
	}, func() error {
		cancel()
		running.Wait()
		return kept.Close()
	}}, nil
}

// body is what a job contains.
const body = `{"city":"Paris"}`

// A waiting is a job whose caller waits for it.
type waiting struct {
	started func()
	done    chan error
}

// work executes a claimed call.
func (w *waiting) work(ctx context.Context, q remote.Queue, c *remote.Call) {
	if err := q.StartCall(ctx, c.Ref(), time.Minute); err != nil {
		w.done <- err
		return
	}
	w.started()
	w.done <- q.FinishCall(ctx, c.Ref(), &remote.Result{Data: []byte(`{"temp":20}`)})
}

func (w *waiting) wait() error {
	select {
	case err := <-w.done:
		return err
	case <-time.After(time.Minute):
		return context.DeadlineExceeded
	}
}

// jobs is River with the settings.
func jobs(ctx context.Context, url, name string, config *river.Config) (*counted, error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, err
	}
	q, err := newRiver(ctx, pool, config)
	if err != nil {
		return nil, err
	}
	return &counted{name, func(_ int, started func()) error {
		if err := q.work(ctx); err != nil {
			return err
		}
		started() // the job's function has only now returned to its caller
		return nil
	}, func() error {
		err := q.client.Stop(ctx) // completes the jobs
		pool.Close()
		return err
	}}, nil
}

// ownRun is a whole run of the engine, which is claimed when it starts and released when it ends.
func ownRun(ctx context.Context, url string) (*counted, error) {
	kept, err := postgres.Open(ctx, url, nil)
	if err != nil {
		return nil, err
	}
	run := runOn(&engine.Options{Store: kept})
	return &counted{fmt.Sprintf("a run of the engine, %d events", runEvents), func(worker int, started func()) error {
		started()
		return run(worker)
	}, kept.Close}, nil
}

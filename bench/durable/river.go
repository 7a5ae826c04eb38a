package main

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// A job is as large as an event. N numbers the jobs that a caller waits for; it is 0 for others.
type job struct {
	N    int64  `json:"n"`
	Body string `json:"body"`
}

func (job) Kind() string { return "step" }

// aside is the queue that no worker reads.
const aside = "aside"

// A riverQueue is River with 64 workers.
type riverQueue struct {
	client *river.Client[pgx.Tx]
	last   atomic.Int64
	waits  sync.Map // of chan struct{}, by number
	river.WorkerDefaults[job]
}

// newRiver starts River. Of the settings, it uses those that say how often River fetches jobs.
func newRiver(ctx context.Context, pool *pgxpool.Pool, settings *river.Config) (*riverQueue, error) {
	driver := riverpgxv5.New(pool)
	m, err := rivermigrate.New(driver, nil)
	if err != nil {
		return nil, err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	q, workers := &riverQueue{}, river.NewWorkers()
	river.AddWorker(workers, q)
	q.client, err = river.NewClient(driver, &river.Config{Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 64}}, Workers: workers,
		FetchCooldown: settings.FetchCooldown, FetchPollInterval: settings.FetchPollInterval, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		return nil, err
	}
	return q, q.client.Start(ctx)
}

func (q *riverQueue) close() { _ = q.client.StopAndCancel(context.Background()) } // it is only measured

// Work unblocks the caller that waits for the job. River records afterwards, in batches, that the job is done.
func (q *riverQueue) Work(_ context.Context, j *river.Job[job]) error {
	if done, ok := q.waits.LoadAndDelete(j.Args.N); ok {
		close(done.(chan struct{}))
	}
	return nil
}

func (q *riverQueue) insert(ctx context.Context) error {
	_, err := q.client.Insert(ctx, job{Body: strings.Repeat("x", 512)}, &river.InsertOpts{Queue: aside})
	return err
}

func (q *riverQueue) work(ctx context.Context) error {
	n, done := q.last.Add(1), make(chan struct{})
	q.waits.Store(n, done)
	if _, err := q.client.Insert(ctx, job{N: n}, nil); err != nil {
		return err
	}
	select {
	case <-done:
		return nil
	case <-time.After(time.Minute):
		return context.DeadlineExceeded
	}
}

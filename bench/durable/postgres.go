package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/store/postgres"
)

// onPostgres measures what one PostgreSQL database makes of the same, for Lathe and for those that also keep
// their work there. What is stored is about the same size; all wait for the disk.
func onPostgres(at int, budget time.Duration, url string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, "CREATE TABLE IF NOT EXISTS bare (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body bytea NOT NULL)"); err != nil {
		return err
	}
	kept, err := postgres.Open(ctx, url, nil)
	if err != nil {
		return err
	}
	defer func() { _ = kept.Close() }()                                                                                        // it is only measured
	jobs, err := newRiver(ctx, pool, &river.Config{FetchCooldown: time.Millisecond, FetchPollInterval: 10 * time.Millisecond}) // as short as River allows
	if err != nil {
		return fmt.Errorf("River: %w", err)
	}
	defer jobs.close()
	flows, err := newDBOS(ctx, url)
	if err != nil {
		return fmt.Errorf("DBOS: %w", err)
	}
	defer flows.close()
	block := make([]byte, 1<<10)
	return compare("PostgreSQL, by %d at once", at, budget, []row{
		{"bare INSERT of 1 KiB, committed", 1, func(int) error {
			_, err := pool.Exec(ctx, "INSERT INTO bare (body) VALUES ($1)", block)
			return err
		}},
		{"one event", 1, appendTo(kept)},
		{"a call: queued, claimed, started, ended", 1, callOn(kept)},
		{"River: a job inserted", 1, func(int) error { return jobs.insert(ctx) }},
		{"River: a job inserted and worked", 1, func(int) error { return jobs.work(ctx) }},
		{"a run: two model calls, one tool call", 3, runOn(&engine.Options{Store: kept})},
		{"DBOS: a workflow of three steps", 3, func(int) error { return flows.run() }},
	})
}

// callOn has a call of a worker's tool go through the queue, as gateways have it.
func callOn(q remote.Queue) func(int) error {
	return func(w int) error {
		ctx, definition := context.Background(), fmt.Sprintf("definition %d", w)
		call := remote.Call{Key: rand.Text(), RunID: "run", CallID: "c", Tool: "t", Definition: definition, Effect: lathe.Writes, Arguments: []byte(`{"city":"Paris"}`)}
		if _, err := q.PutCall(ctx, &call, time.Hour); err != nil {
			return err
		}
		got, err := q.ClaimCalls(ctx, "worker", []string{definition}, time.Minute, 1)
		if err != nil || len(got) != 1 {
			return fmt.Errorf("%d calls were claimed: %w", len(got), err)
		}
		if err := q.StartCall(ctx, got[0].Ref(), time.Minute); err != nil {
			return err
		}
		return q.FinishCall(ctx, got[0].Ref(), &remote.Result{Data: []byte(`{"temp":20}`)})
	}
}

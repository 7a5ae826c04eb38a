package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/remote"
)

// PutWorker implements [remote.WorkerIndex].
func (q *callQueue) PutWorker(ctx context.Context, w *remote.Worker, ttl time.Duration) error {
	const op = "postgres: keep a worker"
	tools, err := json.Marshal(w.Tools)
	if err != nil {
		return lathe.CodeInvalidRequest.Wrap(op, err)
	}
	if ttl <= 0 {
		if err := q.exec(ctx, op, "DELETE FROM worker WHERE id = $1", w.ID); err != nil {
			return err
		}
		q.notifyCall(remote.Notification{})
		return nil
	}
	var changed bool // an expired worker counts as new
	if _, err := q.one(ctx, `WITH had AS (SELECT tools FROM worker WHERE id = $1 AND until > now())
		INSERT INTO worker (id, fleet, tools, until) VALUES ($1, $2, $3, now() + $4 * interval '1 microsecond')
		ON CONFLICT (id) DO UPDATE SET fleet = excluded.fleet, tools = excluded.tools, until = excluded.until,
			since = CASE WHEN worker.until > now() THEN worker.since ELSE now() END
		RETURNING (SELECT tools FROM had) IS DISTINCT FROM $3`, []any{w.ID, w.Pool, tools, micros(ttl)}, &changed); err != nil {
		return failure(ctx, op, err)
	}
	if changed {
		q.notifyCall(remote.Notification{})
	}
	return nil
}

// ShortenWorker implements [remote.WorkerIndex].
func (q *callQueue) ShortenWorker(ctx context.Context, id string, ttl time.Duration) error {
	return q.exec(ctx, "postgres: shorten the time of a worker", "UPDATE worker SET until = least(until, now() + $2 * interval '1 microsecond') WHERE id = $1", id, micros(ttl))
}

// Workers implements [remote.WorkerIndex].
func (q *callQueue) Workers(ctx context.Context) ([]remote.Worker, error) {
	return collect(ctx, q.database, "postgres: list workers", func(r pgx.CollectableRow) (w remote.Worker, err error) {
		var tools []byte
		if err = r.Scan(&w.ID, &w.Pool, &tools, &w.Since); err == nil {
			w.Since = w.Since.UTC()
			err = json.Unmarshal(tools, &w.Tools)
		}
		return w, err
	}, "SELECT id, fleet, tools, since FROM worker WHERE until > now() ORDER BY since, seq")
}

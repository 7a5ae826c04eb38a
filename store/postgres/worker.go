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
func (q *CallQueue) PutWorker(ctx context.Context, w *remote.Worker, ttl time.Duration) error {
	const op = "postgres: keep a worker"
	tools, err := json.Marshal(w.Tools)
	if err != nil {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: err}
	}
	changed := false
	err = q.db.again(ctx, func(ctx context.Context) error {
		if ttl <= 0 {
			changed = true
			_, err := q.db.pool.Exec(ctx, "DELETE FROM worker WHERE id = $1", w.ID)
			return err
		}
		// One whose time was up comes anew.
		return q.db.pool.QueryRow(ctx, `WITH had AS (SELECT tools FROM worker WHERE id = $1 AND until > now())
			INSERT INTO worker (id, fleet, tools, until) VALUES ($1, $2, $3, now() + $4 * interval '1 microsecond')
			ON CONFLICT (id) DO UPDATE SET fleet = excluded.fleet, tools = excluded.tools, until = excluded.until,
				since = CASE WHEN worker.until > now() THEN worker.since ELSE now() END
			RETURNING (SELECT tools FROM had) IS DISTINCT FROM $3`, w.ID, w.Pool, tools, micros(ttl)).Scan(&changed)
	})
	if err != nil {
		return failure(ctx, op, err)
	}
	if changed {
		q.notifyCall(remote.Notification{})
	}
	return nil
}

// ShortenWorker implements [remote.WorkerIndex].
func (q *CallQueue) ShortenWorker(ctx context.Context, id string, ttl time.Duration) error {
	err := q.db.again(ctx, func(ctx context.Context) error {
		_, err := q.db.pool.Exec(ctx, "UPDATE worker SET until = least(until, now() + $2 * interval '1 microsecond') WHERE id = $1", id, micros(ttl))
		return err
	})
	if err != nil {
		return failure(ctx, "postgres: shorten the time of a worker", err)
	}
	return nil
}

// Workers implements [remote.WorkerIndex].
func (q *CallQueue) Workers(ctx context.Context) ([]remote.Worker, error) {
	const op = "postgres: list workers"
	var out []remote.Worker
	err := q.db.again(ctx, func(ctx context.Context) error {
		rows, err := q.db.pool.Query(ctx, "SELECT id, fleet, tools, since FROM worker WHERE until > now() ORDER BY since, seq")
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (w remote.Worker, err error) {
			var tools []byte
			if err = r.Scan(&w.ID, &w.Pool, &tools, &w.Since); err == nil {
				w.Since = w.Since.UTC()
				err = json.Unmarshal(tools, &w.Tools)
			}
			return w, err
		})
		return err
	})
	if err != nil {
		return nil, failure(ctx, op, err)
	}
	return out, nil
}

package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

var _ lathe.CallQueue = (*Store)(nil)

const callColumns = `key, run_id, call_id, request_id, session_id, depth, traceparent, tracestate, tool, definition, effect, args, args_hash, state, attempt, worker,
	(extract(epoch FROM deadline - now()) * 1000000)::bigint AS left_us, cancelled, decided, result`

// A callRow is a row of the queue, with what only the queue knows of it.
type callRow struct {
	lathe.RemoteCall
	hash string
}

func scanCall(row pgx.Row) (c callRow, err error) {
	var left int64
	var result []byte
	if err := row.Scan(&c.Key, &c.RunID, &c.CallID, &c.RequestID, &c.SessionID, &c.Depth, &c.Trace.Parent, &c.Trace.State, &c.Tool, &c.Definition, &c.Effect, (*[]byte)(&c.Arguments), &c.hash,
		&c.State, &c.Attempt, &c.Worker, &left, &c.Cancelled, &c.Decided, &result); err != nil {
		return c, err
	}
	c.Left = time.Duration(left) * time.Microsecond
	if result != nil {
		c.Result = &lathe.CallResult{}
		return c, json.Unmarshal(result, c.Result)
	}
	return c, nil
}

func (s *Store) findCall(ctx context.Context, op, key string) (callRow, error) {
	c, err := scanCall(s.pool.QueryRow(ctx, "SELECT "+callColumns+" FROM call WHERE key = $1", key))
	if errors.Is(err, pgx.ErrNoRows) {
		err = store.NoCall(op)
	}
	return c, err
}

// PutCall implements [lathe.CallQueue].
func (s *Store) PutCall(ctx context.Context, c *lathe.RemoteCall, within time.Duration) (*lathe.RemoteCall, error) {
	const op = "postgres: queue a call"
	if err := store.CallMisfit(op, c); err != nil {
		return nil, err
	}
	hash := store.ArgumentsHash(c)
	var row callRow
	err := s.again(ctx, func(ctx context.Context) (err error) {
		row, err = scanCall(s.pool.QueryRow(ctx, `INSERT INTO call (key, run_id, call_id, request_id, session_id, depth, traceparent, tracestate, tool, definition, effect, args, args_hash, deadline)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, now() + $14 * interval '1 microsecond') ON CONFLICT (key) DO NOTHING RETURNING `+callColumns,
			c.Key, c.RunID, c.CallID, c.RequestID, c.SessionID, c.Depth, c.Trace.Parent, c.Trace.State, c.Tool, c.Definition, int(c.Effect), []byte(c.Arguments), hash, micros(within)))
		if errors.Is(err, pgx.ErrNoRows) {
			row, err = s.findCall(ctx, op, c.Key)
		}
		return err
	})
	if err != nil {
		return nil, failure(ctx, op, err)
	}
	if row.Tool != c.Tool || row.hash != hash {
		return nil, store.NotHeld(op)
	}
	if row.State == lathe.CallQueued {
		s.tellCall(lathe.CallHint{Key: c.Key, Definition: row.Definition})
	}
	return &row.RemoteCall, nil
}

// FindCall implements [lathe.CallQueue].
func (s *Store) FindCall(ctx context.Context, key string) (*lathe.RemoteCall, error) {
	return s.changeCall(ctx, "postgres: find a call", key, "")
}

// CancelCall implements [lathe.CallQueue].
func (s *Store) CancelCall(ctx context.Context, key string) (*lathe.RemoteCall, error) {
	row, err := s.changeCall(ctx, "postgres: cancel a call", key, `UPDATE call SET cancelled = true, args = CASE state WHEN 'started' THEN args END,
		ended = CASE state WHEN 'started' THEN NULL ELSE now() END, state = CASE state WHEN 'started' THEN state ELSE 'cancelled' END
		WHERE key = $1 AND state IN ('queued', 'claimed', 'started')`)
	if err == nil {
		s.tellCall(lathe.CallHint{Key: key, Cancelled: row.State == lathe.CallStarted})
	}
	return row, err
}

// DecideCall implements [lathe.CallQueue].
func (s *Store) DecideCall(ctx context.Context, key string) (*lathe.RemoteCall, error) {
	return s.changeCall(ctx, "postgres: decide a call", key, "UPDATE call SET decided = true WHERE key = $1 AND state = 'unknown'")
}

// changeCall carries out a statement about a call, and returns its row as it is then. The statement may be
// one that does nothing the second time.
func (s *Store) changeCall(ctx context.Context, op, key, statement string) (*lathe.RemoteCall, error) {
	var row callRow
	err := s.again(ctx, func(ctx context.Context) (err error) {
		if statement != "" {
			if _, err := s.pool.Exec(ctx, statement, key); err != nil {
				return err
			}
		}
		row, err = s.findCall(ctx, op, key)
		return err
	})
	if err != nil {
		return nil, failure(ctx, op, err)
	}
	return &row.RemoteCall, nil
}

// ClaimCalls implements [lathe.CallQueue]. Where a connection broke before its answer came, there may be
// claims that nobody knows of: their leases end.
func (s *Store) ClaimCalls(ctx context.Context, worker string, definitions []string, lease time.Duration, limit int) ([]lathe.RemoteCall, error) {
	const op = "postgres: claim calls"
	if limit <= 0 || len(definitions) == 0 {
		return nil, nil
	}
	var out []lathe.RemoteCall
	err := s.again(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, `WITH free AS MATERIALIZED (
				SELECT key FROM call WHERE state = 'queued' AND definition = ANY($2) AND deadline > now() ORDER BY seq LIMIT $4 FOR NO KEY UPDATE SKIP LOCKED
			), claimed AS (
				UPDATE call SET state = 'claimed', attempt = attempt + 1, worker = $1, lease_until = now() + $3 * interval '1 microsecond'
				FROM free WHERE call.key = free.key RETURNING call.*
			) SELECT `+callColumns+" FROM claimed ORDER BY seq", worker, definitions, micros(lease), limit)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (lathe.RemoteCall, error) {
			c, err := scanCall(r)
			return c.RemoteCall, err
		})
		return err
	})
	if err != nil {
		return nil, failure(ctx, op, err)
	}
	return out, nil
}

// holdCall carries out a statement about an attempt, which has the conditions that hold of every one.
// Where no row fits, the attempt does not hold; unless the statement was sent before, without an answer,
// and the row is as it leaves it.
func (s *Store) holdCall(ctx context.Context, op string, ref lathe.CallRef, statement, after string, args ...any) error {
	args = append([]any{ref.Key, ref.Attempt, ref.Worker}, args...)
	tries := 0
	err := s.again(ctx, func(ctx context.Context) error {
		tries++
		done, err := s.pool.Exec(ctx, statement+" AND key = $1 AND attempt = $2 AND worker = $3 AND worker <> ''", args...)
		if err != nil || done.RowsAffected() == 1 {
			return err
		}
		var mine bool
		err = s.pool.QueryRow(ctx, "SELECT attempt = $2 AND worker IN ('', $3) AND "+after+" FROM call WHERE key = $1", ref.Key, ref.Attempt, ref.Worker).Scan(&mine)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return store.NoCall(op)
		case err == nil && (tries == 1 || !mine):
			return store.NotHeld(op)
		}
		return err
	})
	if err != nil {
		return failure(ctx, op, err)
	}
	s.tellCall(lathe.CallHint{Key: ref.Key})
	return nil
}

// StartCall implements [lathe.CallQueue].
func (s *Store) StartCall(ctx context.Context, ref lathe.CallRef, lease time.Duration) error {
	return s.holdCall(ctx, "postgres: start a call", ref, `UPDATE call SET state = 'started', starts = starts + 1, lease_until = now() + $4 * interval '1 microsecond'
		WHERE state = 'claimed' AND lease_until > now() AND deadline > now()`, "state = 'started'", micros(lease))
}

// FinishCall implements [lathe.CallQueue].
func (s *Store) FinishCall(ctx context.Context, ref lathe.CallRef, r *lathe.CallResult) error {
	const op = "postgres: finish a call"
	result, err := r.MarshalJSON()
	if err != nil {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: err}
	}
	return s.holdCall(ctx, op, ref, `UPDATE call SET result = coalesce(result, $4), ended = CASE state WHEN 'done' THEN ended ELSE now() END, state = 'done', args = NULL
		WHERE (state IN ('started', 'queued', 'done') OR state = 'unknown' AND NOT decided)`, "state = 'done'", result)
}

// againState is the state of a call that is queued again, unless nobody wants it or its time is up.
const againState = "CASE WHEN cancelled OR deadline <= now() THEN 'cancelled' ELSE 'queued' END"

// ReturnCall implements [lathe.CallQueue].
func (s *Store) ReturnCall(ctx context.Context, ref lathe.CallRef) error {
	err := s.holdCall(ctx, "postgres: return a call", ref, `UPDATE call SET state = `+againState+`, worker = '',
		ended = CASE `+againState+` WHEN 'cancelled' THEN now() END, args = CASE `+againState+` WHEN 'queued' THEN args END
		WHERE state IN ('claimed', 'started')`, "worker = '' AND state IN ('queued', 'cancelled')")
	if err == nil {
		if c, err := s.FindCall(ctx, ref.Key); err == nil && c.State == lathe.CallQueued {
			s.tellCall(lathe.CallHint{Key: ref.Key, Definition: c.Definition})
		}
	}
	return err
}

// BeatCalls implements [lathe.CallQueue].
func (s *Store) BeatCalls(ctx context.Context, worker string, held []lathe.CallRef, lease time.Duration) (stop []lathe.CallRef, err error) {
	const op = "postgres: renew calls"
	if len(held) == 0 {
		return nil, nil
	}
	keys, attempts := make([]string, len(held)), make([]int32, len(held))
	for i, ref := range held {
		keys[i], attempts[i] = ref.Key, int32(ref.Attempt)
	}
	type attempt struct {
		key string
		n   int
	}
	goesOn := map[attempt]bool{}
	err = s.again(ctx, func(ctx context.Context) error {
		clear(goesOn)
		rows, err := s.pool.Query(ctx, `WITH held AS MATERIALIZED (
				SELECT c.key FROM call c JOIN unnest($2::text[], $3::int[]) AS r(key, attempt) ON c.key = r.key AND c.attempt = r.attempt
				WHERE c.worker = $1 AND c.state IN ('claimed', 'started') ORDER BY c.key FOR NO KEY UPDATE OF c
			) UPDATE call SET lease_until = now() + $4 * interval '1 microsecond' FROM held WHERE call.key = held.key RETURNING call.key, attempt, cancelled`,
			worker, keys, attempts, micros(lease))
		if err != nil {
			return err
		}
		var a attempt
		var cancelled bool
		_, err = pgx.ForEachRow(rows, []any{&a.key, &a.n, &cancelled}, func() error { goesOn[a] = !cancelled; return nil })
		return err
	})
	if err != nil {
		return nil, failure(ctx, op, err)
	}
	for _, ref := range held {
		if !goesOn[attempt{ref.Key, ref.Attempt}] {
			stop = append(stop, ref)
		}
	}
	return stop, nil
}

package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/store"
)

// A callQueue implements [remote.Queue].
type callQueue struct {
	*database
	here store.CallNotifier // for watchers in this process
}

const callColumns = `key, run_id, call_id, request_id, session_id, depth, traceparent, tracestate, tool, definition, effect, args, args_hash, state, attempt, worker,
	(extract(epoch FROM deadline - now()) * 1000000)::bigint AS left_us, cancelled, decided, result`

// A callRow is a row of the queue.
type callRow struct {
	remote.Call
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
		c.Result = &remote.Result{}
		return c, json.Unmarshal(result, c.Result)
	}
	return c, nil
}

// PutCall implements [remote.Queue].
func (q *callQueue) PutCall(ctx context.Context, c *remote.Call, within time.Duration) (*remote.Call, error) {
	const op = "postgres: queue a call"
	if err := c.Check(op); err != nil {
		return nil, err
	}
	hash := c.ArgumentsHash()
	var row callRow
	err := q.retry(ctx, func(ctx context.Context) (err error) {
		row, err = scanCall(q.pool.QueryRow(ctx, `INSERT INTO call (key, run_id, call_id, request_id, session_id, depth, traceparent, tracestate, tool, definition, effect, args, args_hash, deadline)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, now() + $14 * interval '1 microsecond') ON CONFLICT (key) DO NOTHING RETURNING `+callColumns,
			c.Key, c.RunID, c.CallID, c.RequestID, c.SessionID, c.Depth, c.Trace.Parent, c.Trace.State, c.Tool, c.Definition, int(c.Effect), []byte(c.Arguments), hash, micros(within)))
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) { // the key exists
		row, err = q.find(ctx, op, c.Key)
	}
	if err != nil {
		return nil, failure(ctx, op, err)
	}
	if row.Tool != c.Tool || row.hash != hash {
		return nil, conflict(op)
	}
	if row.State == remote.Queued {
		q.notifyCall(remote.Notification{Key: c.Key, Definition: row.Definition})
	}
	return &row.Call, nil
}

// FindCall implements [remote.Queue].
func (q *callQueue) FindCall(ctx context.Context, key string) (*remote.Call, error) {
	row, err := q.find(ctx, "postgres: find a call", key)
	if err != nil {
		return nil, err
	}
	return &row.Call, nil
}

func (q *callQueue) find(ctx context.Context, op, key string) (c callRow, err error) {
	err = q.retry(ctx, func(ctx context.Context) (err error) {
		c, err = scanCall(q.pool.QueryRow(ctx, "SELECT "+callColumns+" FROM call WHERE key = $1", key))
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = notFound(op)
	}
	return c, failure(ctx, op, err)
}

// CancelCall implements [remote.Queue]. A started call stays started until its worker finishes or returns it, or its lease ends; others end
// at once.
func (q *callQueue) CancelCall(ctx context.Context, key string) (*remote.Call, error) {
	row, err := q.changeCall(ctx, "postgres: cancel a call", key, `UPDATE call SET cancelled = true, args = CASE state WHEN 'started' THEN args END,
		ended = CASE state WHEN 'started' THEN NULL ELSE now() END, state = CASE state WHEN 'started' THEN state ELSE 'cancelled' END
		WHERE key = $1 AND state IN ('queued', 'claimed', 'started')`)
	if err == nil {
		q.notifyCall(remote.Notification{Key: key, Cancelled: row.State == remote.Started})
	}
	return row, err
}

// DecideCall implements [remote.Queue].
func (q *callQueue) DecideCall(ctx context.Context, key string) (*remote.Call, error) {
	return q.changeCall(ctx, "postgres: decide a call", key, "UPDATE call SET decided = true WHERE key = $1 AND state = 'unknown'")
}

// changeCall executes a statement on a call and returns the call afterwards. A repetition of the statement must have no further effect.
func (q *callQueue) changeCall(ctx context.Context, op, key, statement string) (*remote.Call, error) {
	if err := q.exec(ctx, op, statement, key); err != nil {
		return nil, err
	}
	row, err := q.find(ctx, op, key)
	if err != nil {
		return nil, err
	}
	return &row.Call, nil
}

// ClaimCalls implements [remote.Queue]. If a connection breaks before the response arrives, calls may be claimed that ClaimCalls has not
// returned; these claims end with their leases.
func (q *callQueue) ClaimCalls(ctx context.Context, worker string, definitions []string, lease time.Duration, limit int) ([]remote.Call, error) {
	const op = "postgres: claim calls"
	if limit <= 0 || len(definitions) == 0 {
		return nil, nil
	}
	return collect(ctx, q.database, op, func(r pgx.CollectableRow) (remote.Call, error) {
		c, err := scanCall(r)
		return c.Call, err
	}, `WITH free AS MATERIALIZED (
			SELECT key FROM call WHERE state = 'queued' AND definition = ANY($2) AND deadline > now() ORDER BY seq LIMIT $4 FOR NO KEY UPDATE SKIP LOCKED
		), claimed AS (
			UPDATE call SET state = 'claimed', attempt = attempt + 1, worker = $1, lease_until = now() + $3 * interval '1 microsecond'
			FROM free WHERE call.key = free.key RETURNING call.*
		) SELECT `+callColumns+" FROM claimed ORDER BY seq", worker, definitions, micros(lease), limit)
}

// A claimUpdate is a change of a call by the worker that has claimed it. Its parts are SQL, in which $1 to $3 are the key, the attempt and the
// worker of the claim, and $4 is an argument of the change.
type claimUpdate struct {
	set   string // the new values
	from  string // the state that the change requires
	after string // the state once the change is committed
}

// nextState is the state of a call whose attempt has ended without a result: cancelled if cancellation was requested or the deadline has
// passed, and queued if not.
const nextState = "CASE WHEN cancelled OR deadline <= now() THEN 'cancelled' ELSE 'queued' END"

// update makes a change under the claim of ref. The error is not_found if the call does not exist, and conflict if the claim is not valid or
// the state is not the required one.
func (q *callQueue) update(ctx context.Context, op string, ref remote.Ref, u claimUpdate, arg ...any) error {
	args := append([]any{ref.Key, ref.Attempt, ref.Worker}, arg...)
	tries := 0
	err := q.retry(ctx, func(ctx context.Context) error {
		tries++
		done, err := q.pool.Exec(ctx, "UPDATE call SET "+u.set+" WHERE ("+u.from+") AND key = $1 AND attempt = $2 AND worker = $3 AND worker <> ''", args...)
		if err != nil || done.RowsAffected() == 1 {
			return err
		}
		var changed bool // the call is as this change leaves it
		err = q.pool.QueryRow(ctx, "SELECT attempt = $2 AND worker IN ('', $3) AND "+u.after+" FROM call WHERE key = $1", ref.Key, ref.Attempt, ref.Worker).Scan(&changed)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return notFound(op)
		case err != nil:
			return err
		case changed && tries > 1: // an earlier try was committed, but its response was lost
			return nil
		}
		return conflict(op)
	})
	if err != nil {
		return failure(ctx, op, err)
	}
	q.notifyCall(remote.Notification{Key: ref.Key})
	return nil
}

// StartCall implements [remote.Queue].
func (q *callQueue) StartCall(ctx context.Context, ref remote.Ref, lease time.Duration) error {
	return q.update(ctx, "postgres: start a call", ref, claimUpdate{
		set:   "state = 'started', starts = starts + 1, lease_until = now() + $4 * interval '1 microsecond'",
		from:  "state = 'claimed' AND lease_until > now() AND deadline > now()",
		after: "state = 'started'",
	}, micros(lease))
}

// FinishCall implements [remote.Queue].
func (q *callQueue) FinishCall(ctx context.Context, ref remote.Ref, r *remote.Result) error {
	const op = "postgres: finish a call"
	result, err := r.MarshalJSON()
	if err != nil {
		return lathe.CodeInvalidRequest.Wrap(op, err)
	}
	return q.update(ctx, op, ref, claimUpdate{
		set:   "result = coalesce(result, $4), ended = CASE state WHEN 'done' THEN ended ELSE now() END, state = 'done', args = NULL",
		from:  "state IN ('started', 'queued', 'done') OR state = 'unknown' AND NOT decided",
		after: "state = 'done'",
	}, result)
}

// ReturnCall implements [remote.Queue].
func (q *callQueue) ReturnCall(ctx context.Context, ref remote.Ref) error {
	err := q.update(ctx, "postgres: return a call", ref, claimUpdate{
		set: "state = " + nextState + ", worker = '', ended = CASE " + nextState + " WHEN 'cancelled' THEN now() END, args = CASE " + nextState +
			" WHEN 'queued' THEN args END",
		from:  "state IN ('claimed', 'started')",
		after: "worker = '' AND state IN ('queued', 'cancelled')",
	})
	if err != nil {
		return err
	}
	if c, err := q.FindCall(ctx, ref.Key); err == nil && c.State == remote.Queued {
		q.notifyCall(remote.Notification{Key: ref.Key, Definition: c.Definition})
	}
	return nil
}

// RenewCalls implements [remote.Queue].
func (q *callQueue) RenewCalls(ctx context.Context, worker string, held []remote.Ref, lease time.Duration) (stop []remote.Ref, err error) {
	const op = "postgres: renew calls"
	if len(held) == 0 {
		return nil, nil
	}
	keys, attempts := make([]string, len(held)), make([]int32, len(held))
	for i, ref := range held {
		keys[i], attempts[i] = ref.Key, int32(ref.Attempt)
	}
	renewed, err := collect(ctx, q.database, op, pgx.RowToStructByPos[remote.Ref], `WITH held AS MATERIALIZED (
			SELECT c.key FROM call c JOIN unnest($2::text[], $3::int[]) AS r(key, attempt) ON c.key = r.key AND c.attempt = r.attempt
			WHERE c.worker = $1 AND c.state IN ('claimed', 'started') ORDER BY c.key FOR NO KEY UPDATE OF c
		), renewed AS (
			UPDATE call SET lease_until = now() + $4 * interval '1 microsecond' FROM held WHERE call.key = held.key RETURNING call.key, attempt, cancelled
		) SELECT key, attempt, '' FROM renewed WHERE NOT cancelled`, worker, keys, attempts, micros(lease))
	if err != nil {
		return nil, err
	}
	continues := map[remote.Ref]bool{}
	for _, ref := range renewed {
		continues[ref] = true
	}
	for _, ref := range held {
		if !continues[remote.Ref{Key: ref.Key, Attempt: ref.Attempt}] {
			stop = append(stop, ref)
		}
	}
	return stop, nil
}

package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/remote"
)

// maxReaped is the maximum number of calls that one statement ends or queues again.
const maxReaped = 1_000

// Both statements return the fields of a notification of each changed call.

// expireLost gives calls whose lease has ended a new state: nextState if the call was not started or may be repeated, which effects 1
// ([lathe.ReadOnly]) and 2 ([lathe.Idempotent]) allow until it was started $1 times. Then its result is $2. The state of other calls is
// unknown. It skips rows that another transaction has locked.
const expireLost = `WITH due AS MATERIALIZED (
	SELECT key, CASE WHEN state = 'claimed' THEN ` + nextState + ` WHEN effect NOT IN (1, 2) THEN 'unknown' WHEN starts >= $1 THEN 'done' ELSE ` + nextState + ` END AS next
	FROM call WHERE state IN ('claimed', 'started') AND lease_until <= now() LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED
) UPDATE call SET worker = CASE state WHEN 'claimed' THEN '' ELSE worker END, state = next, ended = CASE next WHEN 'queued' THEN NULL ELSE now() END,
	args = CASE next WHEN 'queued' THEN args END, result = CASE next WHEN 'done' THEN $2 ELSE result END
	FROM due WHERE call.key = due.key RETURNING call.key, CASE next WHEN 'queued' THEN definition ELSE '' END, false`

// expireLate ends queued calls whose deadline has passed.
const expireLate = `WITH due AS MATERIALIZED (
	SELECT key FROM call WHERE state = 'queued' AND deadline <= now() LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED
) UPDATE call SET state = 'cancelled', ended = now(), args = NULL FROM due WHERE call.key = due.key RETURNING call.key, '', false`

// ExpireCalls implements [remote.Queue].
func (q *callQueue) ExpireCalls(ctx context.Context) (int, error) {
	const op = "postgres: expire calls"
	gaveUp, err := (&remote.Result{IsError: true, Code: lathe.CodeUnavailable}).MarshalJSON()
	if err != nil {
		return 0, failure(ctx, op, err)
	}
	total := 0
	for _, step := range []struct {
		statement string
		args      []any
	}{{expireLost, []any{remote.MaxStarts, gaveUp, maxReaped}}, {expireLate, []any{maxReaped}}} {
		changed, err := collect(ctx, q.database, op, pgx.RowToStructByPos[remote.Notification], step.statement, step.args...)
		if err != nil {
			return total, err
		}
		for _, n := range changed {
			q.notifyCall(n)
		}
		total += len(changed)
	}
	err = q.retry(ctx, func(ctx context.Context) error {
		gone, err := q.pool.Exec(ctx, `DELETE FROM call WHERE ended < now() - $1 * interval '1 microsecond'
			AND NOT EXISTS (SELECT FROM run WHERE run.run_id = call.run_id AND NOT run.ended)`, micros(remote.CallsKept))
		if err != nil {
			return err
		}
		total += int(gone.RowsAffected())
		left, err := q.pool.Exec(ctx, "DELETE FROM worker WHERE until <= now()")
		if err == nil && left.RowsAffected() > 0 {
			q.notifyCall(remote.Notification{})
		}
		return err
	})
	return total, failure(ctx, op, err)
}

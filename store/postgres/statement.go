package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe/store"
)

// A batch of appends is one statement, and so one transaction. It inserts or updates the rows of the runs, adds the rows that belong to these
// runs, and returns the runs. The parameters are the columns that [arguments] returns: $1 to $14 those of addRows, the others those of want.
const (
	// beginStatement inserts runs that do not exist.
	beginStatement = `WITH moved AS (
	INSERT INTO run (run_id, last_id, mark, bytes, updated, status, ended, wake_at, summary, epoch, owner, lease_until, started, session_id, principal, resumable)
	SELECT run_id, next, mark, size, updated, status, ended, wake_at, summary,
		CASE WHEN node IS NULL THEN 0 ELSE 1 END, node, now() + lease * interval '1 microsecond', started, session_id, principal, resumable
	FROM unnest($15::text[], $16::bigint[], $17::bigint[], $18::bigint[], $19::text[], $20::bool[], $21::timestamptz[], $22::bytea[], $23::text[], $24::bigint[],
		$25::bigint[], $26::bigint[], $27::text[], $28::text[], $29::bool[])
		AS want(run_id, mark, next, updated, status, ended, wake_at, summary, node, size, lease, started, session_id, principal, resumable)
	ORDER BY run_id ON CONFLICT (run_id) DO NOTHING RETURNING run_id, mark
` + addRows

	// moveStatement updates runs whose log ends at the last ID and mark of their append, if the claim of the append is valid. It locks their
	// rows in the order of run_id, as all statements that lock several rows do.
	moveStatement = `WITH moved AS (
	UPDATE run SET mark = w.mark, last_id = w.next, bytes = run.bytes + w.size, updated = w.updated, status = w.status, ended = w.ended, wake_at = w.wake_at, summary = w.summary
	FROM (
		SELECT w.* FROM (
			SELECT * FROM unnest($15::text[], $16::bigint[], $17::bigint[], $18::bigint[], $19::text[], $20::bool[], $21::timestamptz[], $22::bytea[], $23::text[], $24::bigint[],
				$25::bigint[], $26::bigint[], $27::bigint[])
				AS want(run_id, mark, next, updated, status, ended, wake_at, summary, node, size, epoch, last, was) ORDER BY run_id
		) w, LATERAL (
			SELECT FROM run r WHERE r.run_id = w.run_id AND r.last_id = w.last AND r.mark = w.was
			AND (w.node IS NULL OR r.owner = w.node AND r.epoch = w.epoch) FOR NO KEY UPDATE
		) held OFFSET 0
	) w WHERE run.run_id = w.run_id RETURNING run.run_id, run.mark
` + addRows

	// addRows adds the events, the model calls, the messages and the last messages of the runs in moved.
	addRows = `), events AS (
	INSERT INTO event (run_id, id, mark, body) SELECT run_id, id, mark, body
	FROM moved JOIN unnest($1::text[], $2::bigint[], $3::bytea[]) AS e(run_id, id, body) USING (run_id)
), calls AS (
	INSERT INTO model_call (run_id, event_id, time, summary) SELECT run_id, id, time, c.summary
	FROM moved JOIN unnest($4::text[], $5::bigint[], $6::bigint[], $7::bytea[]) AS c(run_id, id, time, summary) USING (run_id)
	ON CONFLICT (run_id, event_id) DO UPDATE SET summary = excluded.summary
), messages AS (
	INSERT INTO message (digest, previous, body) SELECT digest, previous, m.body
	FROM moved JOIN unnest($8::text[], $9::bytea[], $10::bytea[], $11::bytea[]) AS m(run_id, digest, previous, body) USING (run_id) ORDER BY digest
	ON CONFLICT (digest) DO NOTHING
), conversations AS (
	INSERT INTO conversation (run_id, event_id, last) SELECT run_id, id, c.last
	FROM moved JOIN unnest($12::text[], $13::bigint[], $14::bytea[]) AS c(run_id, id, last) USING (run_id)
) SELECT run_id FROM moved`
)

// try writes requests of one kind, at most one per run, and returns the runs that it changed. If a connection breaks, it repeats the
// statement: requests that the first attempt has written are then not among the changed ones.
func (s *Store) try(batch []*request, statement string) (map[string]bool, error) {
	args := arguments(batch)
	var moved map[string]bool
	err := s.retry(context.Background(), func(ctx context.Context) error { // not the context of a request: the batch contains others
		moved = map[string]bool{}
		b := &pgx.Batch{} // one transaction
		if slices.ContainsFunc(batch, func(r *request) bool { return r.lasts != nil }) {
			b.Queue(shareMessages)
		}
		b.Queue(statement, args...).Query(func(rows pgx.Rows) error {
			var id string
			_, err := pgx.ForEachRow(rows, []any{&id}, func() error { moved[id] = true; return nil })
			return err
		})
		return s.pool.SendBatch(ctx, b).Close()
	})
	return moved, err
}

// column returns the argument for one column: one value per request.
func column[T any](batch []*request, value func(*request) T) []T {
	out := make([]T, len(batch))
	for i, r := range batch {
		out[i] = value(r)
	}
	return out
}

// arguments returns the arguments of beginStatement or moveStatement: one array per column.
func arguments(batch []*request) []any {
	eventRuns, eventIDs, bodies := []string{}, []int64{}, [][]byte{}
	callRuns, callIDs, times, summaries := []string{}, []int64{}, []int64{}, [][]byte{}
	messageRuns, digests, previous, messages := []string{}, [][]byte{}, [][]byte{}, [][]byte{}
	lastRuns, lastIDs, lasts := []string{}, []int64{}, [][]byte{}
	for _, r := range batch {
		for i, body := range r.bodies {
			eventRuns, eventIDs, bodies = append(eventRuns, r.runID), append(eventIDs, r.last+int64(i)+1), append(bodies, body)
		}
		for _, c := range r.calls {
			callRuns, callIDs, times, summaries = append(callRuns, r.runID), append(callIDs, c.id), append(times, c.time), append(summaries, c.json)
		}
		for _, m := range r.messages {
			messageRuns, digests, previous, messages = append(messageRuns, r.runID), append(digests, m.Digest), append(previous, m.Before), append(messages, m.Body)
		}
		for _, l := range r.lasts {
			lastRuns, lastIDs, lasts = append(lastRuns, r.runID), append(lastIDs, l.event), append(lasts, l.digest)
		}
	}
	args := []any{eventRuns, eventIDs, bodies, callRuns, callIDs, times, summaries, messageRuns, digests, previous, messages, lastRuns, lastIDs, lasts,
		column(batch, func(r *request) string { return r.runID }),
		column(batch, func(r *request) int64 { return r.mark }),
		column(batch, func(r *request) int64 { return r.last + int64(len(r.bodies)) }),
		column(batch, func(r *request) int64 { return r.run.Updated.UnixNano() }),
		column(batch, func(r *request) string { return r.run.Status }),
		column(batch, func(r *request) bool { return r.ended }),
		column(batch, func(r *request) *time.Time {
			if r.run.WakeAt.IsZero() {
				return nil
			}
			return &r.run.WakeAt
		}),
		column(batch, func(r *request) []byte { return r.row }),
		column(batch, func(r *request) *string {
			if r.claim == nil {
				return nil
			}
			return &r.claim.Node
		}),
		column(batch, func(r *request) int64 { return int64(r.size()) }),
	}
	if batch[0].last == 0 {
		args = append(args,
			column(batch, func(r *request) int64 { return micros(r.by().Lease) }),
			column(batch, func(r *request) int64 { return r.run.Started.UnixNano() }),
			column(batch, func(r *request) string { return r.run.SessionID }),
			column(batch, func(r *request) string { return r.run.Principal }),
			column(batch, func(r *request) bool { return r.run.Resumable && r.run.Executor == "" }))
	} else {
		args = append(args,
			column(batch, func(r *request) int64 { return r.by().Epoch }),
			column(batch, func(r *request) int64 { return r.last }),
			column(batch, func(r *request) int64 { return r.lastMark }))
	}
	return args
}

// by returns the claim of the request, or the zero value if it has none.
func (r *request) by() store.Claim {
	if r.claim == nil {
		return store.Claim{}
	}
	return *r.claim
}

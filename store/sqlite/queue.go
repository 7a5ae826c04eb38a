package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/store"
)

var _ remote.Queue = (*Store)(nil)

// A CallQueue is the part of a [Store] that stores calls for workers, and lists the workers. It implements
// [remote.Queue].
type CallQueue struct{ *store.CallQueue }

func newCallQueue(d *database) *CallQueue {
	return &CallQueue{store.NewCallQueue(func(ctx context.Context, op string, write bool, fn func(store.CallRows, time.Time) error) error {
		op = "sqlite: " + op
		rows := &callRows{ctx: ctx, op: op, now: time.Now(), db: d.read}
		if !write {
			return failure(ctx, op, fn(rows, rows.now))
		}
		_, err := d.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
			rows := &callRows{ctx: ctx, op: op, now: time.Now(), db: tx, writes: true}
			return 0, fn(rows, rows.now)
		})
		return failure(ctx, op, err)
	})}
}

// callRows are the rows of a [store.CallQueue] in a transaction, or in the database as it is.
type callRows struct {
	ctx    context.Context
	op     string
	now    time.Time
	writes bool
	db     querier
}

// A querier is a transaction or a database.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

const callColumns = "key, run_id, call_id, request_id, session_id, depth, traceparent, tracestate, tool, definition, effect, args, args_hash, state, attempt, starts, worker, deadline, lease_until, cancelled, decided, ended, result"

func scanCall(scan func(...any) error) (*store.QueuedCall, error) {
	c := &store.QueuedCall{}
	var args, result []byte
	var deadline, lease, ended int64
	err := scan(&c.Key, &c.RunID, &c.CallID, &c.RequestID, &c.SessionID, &c.Depth, &c.Trace.Parent, &c.Trace.State, &c.Tool, &c.Definition, &c.Effect, &args, &c.Hash,
		&c.State, &c.Attempt, &c.Starts, &c.Worker, &deadline, &lease, &c.Cancelled, &c.Decided, &ended, &result)
	c.Arguments, c.Deadline, c.Lease, c.Ended = args, time.Unix(0, deadline), time.Unix(0, lease), time.Unix(0, ended)
	if err == nil && result != nil {
		c.Result = &remote.Result{}
		err = json.Unmarshal(result, c.Result)
	}
	return c, err
}

// Call implements [store.CallRows], as the methods below.
func (q *callRows) Call(key string) (*store.QueuedCall, error) {
	c, err := scanCall(q.db.QueryRowContext(q.ctx, "SELECT "+callColumns+" FROM call WHERE key = ?", key).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		err = lathe.ErrNotFound
	}
	return c, err
}

func (q *callRows) PutCall(c *store.QueuedCall) error {
	var result []byte
	if c.Result != nil {
		var err error
		if result, err = c.Result.MarshalJSON(); err != nil {
			return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: q.op, Err: err}
		}
	}
	nanos := func(t time.Time) int64 { // 0: never
		if t.IsZero() {
			return 0
		}
		return t.UnixNano()
	}
	_, err := q.db.ExecContext(q.ctx, "INSERT INTO call ("+callColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (key) DO UPDATE SET args = excluded.args, state = excluded.state, attempt = excluded.attempt, starts = excluded.starts, worker = excluded.worker,
		lease_until = excluded.lease_until, cancelled = excluded.cancelled, decided = excluded.decided, ended = excluded.ended, result = excluded.result`,
		c.Key, c.RunID, c.CallID, c.RequestID, c.SessionID, c.Depth, c.Trace.Parent, c.Trace.State, c.Tool, c.Definition, c.Effect, []byte(c.Arguments), c.Hash,
		c.State, c.Attempt, c.Starts, c.Worker, nanos(c.Deadline), nanos(c.Lease), c.Cancelled, c.Decided, nanos(c.Ended), result)
	return err
}

func (q *callRows) QueuedCalls(definitions []string, limit int) ([]*store.QueuedCall, error) {
	list, err := json.Marshal(definitions)
	if err != nil || len(definitions) == 0 {
		return nil, err
	}
	return q.selectCalls("state = 'queued' AND definition IN (SELECT value FROM json_each(?)) AND deadline > ? ORDER BY seq LIMIT ?", string(list), q.now.UnixNano(), max(limit, 0))
}

// maxDue is how many calls one transaction ends or queues again; those that are left come with the next.
const maxDue = 1000

func (q *callRows) DueCalls() ([]*store.QueuedCall, error) {
	return q.selectCalls("ended = 0 AND (state IN ('claimed', 'started') AND lease_until <= ?1 OR state = 'queued' AND deadline <= ?1) LIMIT ?2", q.now.UnixNano(), maxDue)
}

func (q *callRows) selectCalls(where string, args ...any) (out []*store.QueuedCall, err error) {
	rows, err := q.db.QueryContext(q.ctx, "SELECT "+callColumns+" FROM call WHERE "+where, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err reports what matters
	for rows.Next() {
		c, err := scanCall(rows.Scan)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, rows.Err()
}

func (q *callRows) ForgetCalls(before time.Time) (int, error) {
	return q.forget("call WHERE ended > 0 AND ended < ? AND NOT EXISTS (SELECT 1 FROM run WHERE run.run_id = call.run_id AND status IN ('running', 'parked'))", before)
}

// forget deletes rows, or counts them where nothing is written.
func (q *callRows) forget(which string, at time.Time) (int, error) {
	if !q.writes {
		var n int
		err := q.db.QueryRowContext(q.ctx, "SELECT count(*) FROM "+which, at.UnixNano()).Scan(&n)
		return n, err
	}
	done, err := q.db.ExecContext(q.ctx, "DELETE FROM "+which, at.UnixNano())
	if err != nil {
		return 0, err
	}
	n, err := done.RowsAffected()
	return int(n), err
}

func (q *callRows) Worker(id string) (*remote.Worker, time.Time, error) {
	w, until, err := scanWorker(q.db.QueryRowContext(q.ctx, "SELECT "+workerColumns+" FROM worker WHERE id = ? AND until > ?", id, q.now.UnixNano()).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		err = lathe.ErrNotFound
	}
	return w, until, err
}

func (q *callRows) PutWorker(w *remote.Worker, until time.Time) error {
	if !q.now.Before(until) {
		_, err := q.db.ExecContext(q.ctx, "DELETE FROM worker WHERE id = ?", w.ID)
		return err
	}
	tools, err := json.Marshal(w.Tools)
	if err != nil {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: q.op, Err: err}
	}
	_, err = q.db.ExecContext(q.ctx, `INSERT INTO worker (id, fleet, tools, since, until, seq) SELECT ?, ?, ?, ?, ?, coalesce(max(seq), 0) + 1 FROM worker WHERE true
		ON CONFLICT (id) DO UPDATE SET fleet = excluded.fleet, tools = excluded.tools, until = excluded.until, since = excluded.since,
		seq = CASE since WHEN excluded.since THEN seq ELSE excluded.seq END`, w.ID, w.Pool, tools, w.Since.UnixNano(), until.UnixNano())
	return err
}

const workerColumns = "id, fleet, tools, since, until"

func scanWorker(scan func(...any) error) (*remote.Worker, time.Time, error) {
	w := &remote.Worker{}
	var tools []byte
	var since, until int64
	err := scan(&w.ID, &w.Pool, &tools, &since, &until)
	if err == nil {
		err = json.Unmarshal(tools, &w.Tools)
	}
	w.Since = time.Unix(0, since)
	return w, time.Unix(0, until), err
}

func (q *callRows) Workers() (out []remote.Worker, err error) {
	rows, err := q.db.QueryContext(q.ctx, "SELECT "+workerColumns+" FROM worker WHERE until > ? ORDER BY seq", q.now.UnixNano())
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err reports what matters
	for rows.Next() {
		w, _, err := scanWorker(rows.Scan)
		if err != nil {
			return nil, err
		}
		out = append(out, *w)
	}
	return out, rows.Err()
}

func (q *callRows) ForgetWorkers() (int, error) { return q.forget("worker WHERE until <= ?", q.now) }

package sqlite

import (
	"encoding/json"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/remote"
	"github.com/lathe-run/lathe/store"
)

const callColumns = "key, run_id, call_id, request_id, session_id, depth, traceparent, tracestate, tool, definition, effect, args, args_hash, state, attempt, starts, worker, deadline, lease_until, cancelled, decided, ended, result"

const callsWhere = "SELECT " + callColumns + " FROM call WHERE "

func scanCall(scan scanner) (*store.QueuedCall, error) {
	c := &store.QueuedCall{}
	var result []byte
	var deadline, lease, ended int64
	err := scan(&c.Key, &c.RunID, &c.CallID, &c.RequestID, &c.SessionID, &c.Depth, &c.Trace.Parent, &c.Trace.State, &c.Tool, &c.Definition, &c.Effect, (*[]byte)(&c.Arguments), &c.Hash,
		&c.State, &c.Attempt, &c.Starts, &c.Worker, &deadline, &lease, &c.Cancelled, &c.Decided, &ended, &result)
	c.Deadline, c.Lease, c.Ended = timeOf(deadline), timeOf(lease), timeOf(ended)
	if err == nil && result != nil {
		c.Result = &remote.Result{}
		err = json.Unmarshal(result, c.Result)
	}
	return c, err
}

func (r *rows) Call(key string) (*store.QueuedCall, error) {
	return scanCall(r.one(callsWhere+"key = ?", key))
}

func (r *rows) PutCall(c *store.QueuedCall) error {
	var result []byte
	if c.Result != nil {
		var err error
		if result, err = c.Result.MarshalJSON(); err != nil {
			return lathe.CodeInvalidRequest.Wrap(r.op, err)
		}
	}
	return r.put("INSERT INTO call ("+callColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (key) DO UPDATE SET args = excluded.args, state = excluded.state, attempt = excluded.attempt, starts = excluded.starts, worker = excluded.worker,
		lease_until = excluded.lease_until, cancelled = excluded.cancelled, decided = excluded.decided, ended = excluded.ended, result = excluded.result`,
		c.Key, c.RunID, c.CallID, c.RequestID, c.SessionID, c.Depth, c.Trace.Parent, c.Trace.State, c.Tool, c.Definition, c.Effect, []byte(c.Arguments), c.Hash,
		c.State, c.Attempt, c.Starts, c.Worker, nanos(c.Deadline), nanos(c.Lease), c.Cancelled, c.Decided, nanos(c.Ended), result)
}

func (r *rows) RenewCall(ref remote.Ref, until time.Time) (cancelled bool, err error) {
	err = r.one("UPDATE call SET lease_until = ? WHERE key = ? AND attempt = ? AND worker = ? AND state IN ('claimed', 'started') RETURNING cancelled",
		until.UnixNano(), ref.Key, ref.Attempt, ref.Worker)(&cancelled)
	return cancelled, err
}

func (r *rows) QueuedCalls(definitions []string, limit int) ([]*store.QueuedCall, error) {
	list, err := json.Marshal(definitions)
	if err != nil || len(definitions) == 0 {
		return nil, err
	}
	return collect(r.ctx, r.db, scanCall, callsWhere+"state = 'queued' AND definition IN (SELECT value FROM json_each(?)) AND deadline > ? ORDER BY seq LIMIT ?", string(list), r.now.UnixNano(), max(limit, 0))
}

// maxDue is the maximum number of calls that one transaction ends or queues again; a later one processes the rest.
const maxDue = 1000

func (r *rows) DueCalls() ([]*store.QueuedCall, error) {
	return collect(r.ctx, r.db, scanCall, callsWhere+"ended = 0 AND (state IN ('claimed', 'started') AND lease_until <= ?1 OR state = 'queued' AND deadline <= ?1) LIMIT ?2", r.now.UnixNano(), maxDue)
}

func (r *rows) ForgetCalls(before time.Time) (int, error) {
	return forget(r, "call WHERE ended > 0 AND ended < ? AND NOT EXISTS (SELECT 1 FROM run WHERE run.run_id = call.run_id AND status IN ('running', 'parked'))", before)
}

// forget deletes rows, or counts them if the transaction does not write. It returns their number.
func forget(r *rows, which string, at time.Time) (int, error) {
	var n int64
	var err error
	if r.writes {
		n, err = r.exec("DELETE FROM "+which, at.UnixNano())
	} else {
		err = r.one("SELECT count(*) FROM "+which, at.UnixNano())(&n)
	}
	return int(n), err
}

func (r *rows) Worker(id string) (*remote.Worker, time.Time, error) {
	return scanWorker(r.one("SELECT "+workerColumns+" FROM worker WHERE id = ? AND until > ?", id, r.now.UnixNano()))
}

func (r *rows) PutWorker(w *remote.Worker, until time.Time) error {
	if !r.now.Before(until) {
		return r.put("DELETE FROM worker WHERE id = ?", w.ID)
	}
	tools, err := json.Marshal(w.Tools)
	if err != nil {
		return lathe.CodeInvalidRequest.Wrap(r.op, err)
	}
	return r.put(`INSERT INTO worker (id, fleet, tools, since, until, seq) SELECT ?, ?, ?, ?, ?, coalesce(max(seq), 0) + 1 FROM worker WHERE true
		ON CONFLICT (id) DO UPDATE SET fleet = excluded.fleet, tools = excluded.tools, until = excluded.until, since = excluded.since,
		seq = CASE since WHEN excluded.since THEN seq ELSE excluded.seq END`, w.ID, w.Pool, tools, w.Since.UnixNano(), until.UnixNano())
}

const workerColumns = "id, fleet, tools, since, until"

func scanWorker(scan scanner) (*remote.Worker, time.Time, error) {
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

func (r *rows) Workers() ([]remote.Worker, error) {
	return collect(r.ctx, r.db, func(scan scanner) (remote.Worker, error) {
		w, _, err := scanWorker(scan)
		return *w, err
	}, "SELECT "+workerColumns+" FROM worker WHERE until > ? ORDER BY seq", r.now.UnixNano())
}

func (r *rows) ForgetWorkers() (int, error) { return forget(r, "worker WHERE until <= ?", r.now) }

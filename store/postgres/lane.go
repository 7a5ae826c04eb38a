package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// lanes is how many statements of appends are on their way at a time: while one is written, another
	// one is filled.
	lanes = 2
	// maxBatch bounds the requests of one statement.
	maxBatch = 128
	// maxBatchBytes bounds the events of one statement, but for those of its first request.
	maxBatchBytes = 4 << 20
)

// serve writes requests: all that have come while those before were written go together.
func (s *Store) serve() {
	var later []*request // of runs that the batch has already
	for {
		var batch []*request
		runs := map[string]bool{}
		size := 0
		add := func(r *request) bool {
			if runs[r.runID] || len(batch) == maxBatch || len(batch) > 0 && size+r.size() > maxBatchBytes {
				return false
			}
			batch, runs[r.runID], size = append(batch, r), true, size+r.size()
			return true
		}
		waiting := later
		later = nil
		for _, r := range waiting {
			if !add(r) {
				later = append(later, r)
			}
		}
		if len(batch) == 0 {
			select {
			case r := <-s.requests:
				add(r)
			case <-s.stop:
				return
			}
		}
	gather:
		for len(later) == 0 {
			select {
			case r := <-s.requests:
				if !add(r) {
					later = append(later, r)
				}
			default:
				break gather
			}
		}
		s.write(batch)
	}
}

func (r *request) size() (n int) {
	for _, b := range r.bodies {
		n += len(b)
	}
	return n
}

// write carries out the requests of a batch, each for itself, and answers them.
func (s *Store) write(batch []*request) {
	live := batch[:0:0]
	for _, r := range batch {
		if err := r.ctx.Err(); err != nil {
			r.done <- answer{err: err}
			continue
		}
		live = append(live, r)
	}
	if len(live) == 0 {
		return
	}
	moved, err := s.send(live)
	if err != nil && !broken(err) && len(live) > 1 { // one of them spoiled it for all: nothing was written
		for i := range live {
			s.write(live[i : i+1])
		}
		return
	}
	for i, r := range live {
		r.done <- answer{moved: moved[r.runID], err: err}
		live[i] = nil
	}
}

// appendStatement moves the runs of a batch, whose rows it locks in one order, and adds what belongs to
// those that it could move. It returns them.
const appendStatement = `WITH want AS MATERIALIZED (
	SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::bool[], $9::timestamptz[], $10::bytea[],
		$11::bigint[], $12::text[], $13::bigint[], $14::bigint[], $15::text[], $16::text[], $17::bool[]) WITH ORDINALITY
	AS w(run_id, last, was, mark, next, updated, status, ended, wake_at, summary, epoch, node, lease, started, session_id, principal, resumable, i)
), held AS MATERIALIZED (
	SELECT w.i, run.run_id FROM want w JOIN run ON run.run_id = w.run_id AND run.last_id = w.last AND run.mark = w.was
	WHERE w.last > 0 AND (w.epoch IS NULL OR run.epoch = w.epoch AND run.owner = w.node)
	ORDER BY run.run_id FOR NO KEY UPDATE OF run
), moved AS (
	UPDATE run SET last_id = w.next, mark = w.mark, updated = w.updated, status = w.status, ended = w.ended, wake_at = w.wake_at, summary = w.summary
	FROM held JOIN want w USING (i) WHERE run.run_id = held.run_id RETURNING run.run_id
), begun AS (
	INSERT INTO run (run_id, last_id, mark, started, updated, session_id, principal, status, resumable, ended, wake_at, summary, epoch, owner, lease_until)
	SELECT run_id, next, mark, started, updated, session_id, principal, status, resumable, ended, wake_at, summary,
		CASE WHEN epoch IS NULL THEN 0 ELSE 1 END, node, CASE WHEN epoch IS NULL THEN now() ELSE now() + lease * interval '1 microsecond' END
	FROM want WHERE last = 0 ORDER BY run_id ON CONFLICT (run_id) DO NOTHING RETURNING run_id
), done AS MATERIALIZED (
	SELECT w.i, w.run_id, w.mark FROM want w WHERE w.run_id IN (SELECT run_id FROM moved UNION ALL SELECT run_id FROM begun)
), events AS (
	INSERT INTO event (run_id, id, mark, body) SELECT d.run_id, n.id, d.mark, n.body FROM unnest($18::bigint[], $19::bigint[], $20::bytea[]) AS n(i, id, body) JOIN done d USING (i)
), calls AS (
	INSERT INTO model_call (run_id, event_id, time, summary)
	SELECT d.run_id, n.id, n.time, n.summary FROM unnest($21::bigint[], $22::bigint[], $23::bigint[], $24::bytea[]) AS n(i, id, time, summary) JOIN done d USING (i)
	ON CONFLICT (run_id, event_id) DO UPDATE SET summary = excluded.summary
) SELECT run_id FROM done`

// columns are the arguments of an appendStatement.
type columns struct {
	runID, status, session, principal        []string
	last, was, mark, next, updated, started  []int64
	epoch, lease                             []*int64
	node                                     []*string
	ended, resumable                         []bool
	wakeAt                                   []*time.Time
	summary                                  [][]byte
	eventOf, eventID, callOf, callID, callAt []int64
	body, call                               [][]byte
}

func (c *columns) add(r *request) {
	i := int64(len(c.runID)) + 1
	run := r.run
	c.runID, c.last, c.was, c.mark, c.next = append(c.runID, r.runID), append(c.last, r.last), append(c.was, r.was), append(c.mark, r.mark), append(c.next, r.last+int64(len(r.bodies)))
	c.updated, c.started, c.status = append(c.updated, run.Updated.UnixNano()), append(c.started, run.Started.UnixNano()), append(c.status, run.Status)
	c.session, c.principal = append(c.session, run.SessionID), append(c.principal, run.Principal)
	c.ended, c.resumable, c.summary = append(c.ended, r.ended), append(c.resumable, run.Resumable), append(c.summary, r.row)
	var wakeAt *time.Time
	if !run.WakeAt.IsZero() {
		wakeAt = &run.WakeAt
	}
	c.wakeAt = append(c.wakeAt, wakeAt)
	var epoch, lease *int64
	var node *string
	if r.claim != nil {
		us := micros(r.claim.Lease)
		epoch, lease, node = &r.claim.Epoch, &us, &r.claim.Node
	}
	c.epoch, c.lease, c.node = append(c.epoch, epoch), append(c.lease, lease), append(c.node, node)
	for n, body := range r.bodies {
		c.eventOf, c.eventID, c.body = append(c.eventOf, i), append(c.eventID, r.last+int64(n)+1), append(c.body, body)
	}
	for _, call := range r.calls {
		c.callOf, c.callID, c.callAt, c.call = append(c.callOf, i), append(c.callID, call.id), append(c.callAt, call.time), append(c.call, call.summary)
	}
}

// send writes the requests in one statement, which is one transaction, and returns the runs that moved.
// After a connection that broke it is sent again: what was written then does not move again.
func (s *Store) send(batch []*request) (map[string]bool, error) {
	c := &columns{}
	for _, r := range batch {
		c.add(r)
	}
	ctx := context.Background() // what has begun is ended: the others of the batch are in it
	var moved map[string]bool
	err := s.again(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, appendStatement, c.runID, c.last, c.was, c.mark, c.next, c.updated, c.status, c.ended, c.wakeAt, c.summary,
			c.epoch, c.node, c.lease, c.started, c.session, c.principal, c.resumable,
			c.eventOf, c.eventID, c.body, c.callOf, c.callID, c.callAt, c.call)
		if err != nil {
			return err
		}
		moved = make(map[string]bool, len(batch))
		var id string
		_, err = pgx.ForEachRow(rows, []any{&id}, func() error { moved[id] = true; return nil })
		return err
	})
	return moved, err
}

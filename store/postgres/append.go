package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/conversation"
	"github.com/lathe-run/lathe/store"
)

// maxWait is the maximum time that an append waits for a writer. After it, the append fails.
const maxWait = 10 * time.Second

// maxLease is the maximum duration in a statement: longer ones are reduced to it.
const maxLease = 365 * 24 * time.Hour

// A request is a queued append. tryAppend sets the fields up to mark, encode those from lastMark, and submit removes messages that are
// stored. A writer goroutine then reads it and sends the answer to done.
type request struct {
	ctx      context.Context
	runID    string
	claim    *store.Claim // nil: any node may append
	last     int64        // the ID after which the events follow; 0: the append creates the run
	mark     int64        // random number that is stored with the events, so that this append recognizes them
	done     chan answer
	lastMark int64 // mark of the append that wrote the current end of the log
	bodies   [][]byte
	messages []conversation.Message // messages of the events to store
	lasts    []lastMessage          // last messages of the events whose bodies do not contain the messages
	run      *store.RunSummary      // row of the run after the append
	ended    bool
	row      []byte        // JSON of run
	calls    []callSummary // rows of the model calls that are new or have changed
}

// size returns the number of bytes of the events and of the messages to store.
func (r *request) size() (n int) {
	for _, body := range r.bodies {
		n += len(body)
	}
	for _, m := range r.messages {
		n += len(m.Body)
	}
	return n
}

// A lastMessage is the digest of the last message of an event.
type lastMessage struct {
	event  int64
	digest []byte
}

type callSummary struct {
	id, time int64
	json     []byte
}

type answer struct {
	moved bool // false: the log does not end at last, or the claim is not the newest one
	err   error
}

// Append implements [store.Store]. If ctx is done while the write is in progress, the events may or may not be stored.
func (s *Store) Append(ctx context.Context, runID string, last int64, events ...event.Event) (int64, error) {
	return s.append(ctx, runID, nil, last, events)
}

// AppendAs implements [store.Shared].
func (s *Store) AppendAs(ctx context.Context, c store.Claim, last int64, events ...event.Event) (int64, error) {
	return s.append(ctx, c.RunID, &c, last, events)
}

func (s *Store) append(ctx context.Context, runID string, c *store.Claim, last int64, events []event.Event) (int64, error) {
	const op = "postgres: append"
	if err := store.CheckAppend(runID, last, events); err != nil {
		return 0, lathe.CodeInvalidRequest.Wrap(op, err)
	}
	if err := ctx.Err(); err != nil {
		return 0, failure(ctx, op, err)
	}
	end, err := s.tryAppend(ctx, op, runID, c, last, events, missingMessages)
	switch {
	case errors.Is(err, errOtherLog): // tryAppend has removed the state from memory, and now reads it
		end, err = s.tryAppend(ctx, op, runID, c, last, events, missingMessages)
	case sqlState(err) == foreignKey: // messages were deleted since they were found
		end, err = s.tryAppend(ctx, op, runID, c, last, events, allMessages)
	}
	return end, failure(ctx, op, err)
}

// A selection says which messages of its events an append sends to the database.
type selection int

const (
	missingMessages selection = iota // those that are not stored
	allMessages
)

// errOtherLog means that the log ends at the expected ID, but is not the log of the state in memory: the run was deleted and begun again.
var errOtherLog = errors.New("the log was begun again")

// tryAppend makes one attempt of an append. It returns the new end of the log, or with a conflict the current one.
func (s *Store) tryAppend(ctx context.Context, op, runID string, c *store.Claim, last int64, events []event.Event, send selection) (int64, error) {
	if c != nil && last == 0 && c.Epoch == 0 { // the append makes the claim
		if err := mayClaim(op, c.Node, c.Lease); err != nil {
			return 0, err
		}
	}
	r := &request{ctx: ctx, runID: runID, claim: c, last: last, mark: rand.Int64(), done: make(chan answer, 1)}
	isMisplaced := c != nil && last == 0 && c.Epoch != 0 // the claim is on an existing run, whose log does not end at 0
	if len(events) == 0 || isMisplaced {                 // nothing to write
		now, err := s.readEnd(ctx, r)
		if err == nil && (isMisplaced || !now.fits(r)) {
			err = conflict(op)
		}
		return now.end, err
	}
	st, end, err := s.state(ctx, op, runID, last)
	if err != nil {
		return end, err
	}
	if err := r.encode(st, events); err != nil {
		return 0, lathe.CodeInvalidRequest.Wrap(op, err)
	}
	moved, err := s.submit(ctx, r, send)
	if err != nil {
		return 0, err
	}
	if !moved {
		if end, err := s.recheck(ctx, op, r); err != nil {
			return end, err
		}
	}
	s.states.put(runID, state{sum: st.sum, mark: r.mark})
	s.memory.confirm(runID, logEnd{last: r.run.LastID, mark: r.mark, over: r.ended})
	s.runs.add(runID)
	return r.run.LastID, nil
}

// recheck reads the end of the log after a statement has not written the request. It returns no error if an earlier attempt of the statement,
// whose response was lost, has written it.
func (d *database) recheck(ctx context.Context, op string, r *request) (int64, error) {
	now, err := d.readEnd(ctx, r)
	switch {
	case err != nil:
		return 0, err
	case now.written:
		return r.run.LastID, nil
	case r.last > 0 && now.fits(r):
		return now.end, errOtherLog
	}
	return now.end, conflict(op)
}

// encode sets the stored forms of the events, and the rows of the run and its model calls after them.
func (r *request) encode(st state, events []event.Event) (err error) {
	r.lastMark, r.run = st.mark, &st.sum.Run
	before := max(0, len(st.sum.Calls)-1) // the tool latency of the last call may change
	r.bodies = make([][]byte, len(events))
	encoded, err := conversation.EncodeAll(&st.sum.Run, events)
	if err != nil {
		return err
	}
	for i, e := range events {
		r.bodies[i] = encoded[i].Body
		if last := encoded[i].Last(); last != nil {
			r.messages = append(r.messages, encoded[i].Messages...)
			r.lasts = append(r.lasts, lastMessage{r.last + int64(i) + 1, last})
		}
		e.Time = e.Time.Round(0).UTC() // the form in which it is read
		st.sum.Apply(&e)
		end, ok := e.Data.(*event.RunFinished)
		r.ended = ok && end.Reason.Status() != "parked"
	}
	if r.row, err = json.Marshal(r.run); err != nil {
		return err
	}
	for _, c := range st.sum.Calls[before:] {
		b, err := json.Marshal(&c)
		if err != nil {
			return err
		}
		r.calls = append(r.calls, callSummary{c.EventID, c.Time.UnixNano(), b})
	}
	return nil
}

// A logStatus is the end and the owner of a log in the database.
type logStatus struct {
	end     int64
	epoch   int64
	owner   string
	written bool // the event after last has the mark of the request
}

// fits reports whether the log ends where the request begins, and the claim of the request is that of the owner. Without a claim, any node
// may append.
func (n *logStatus) fits(r *request) bool {
	c := r.claim
	hasClaim := c == nil || c.Epoch > 0 && c.Epoch == n.epoch && c.Node == n.owner && c.Node != ""
	return n.end == r.last && (n.end == 0 || hasClaim)
}

// readEnd reads the status of the log of a request. It returns the zero value if the run does not exist.
func (d *database) readEnd(ctx context.Context, r *request) (n logStatus, err error) {
	_, err = d.one(ctx, `SELECT r.last_id, r.epoch, coalesce(r.owner, ''), coalesce(e.mark = $3, false)
		FROM run r LEFT JOIN event e ON e.run_id = r.run_id AND e.id = $2 WHERE r.run_id = $1`, []any{r.runID, r.last + 1, r.mark}, &n.end, &n.epoch, &n.owner, &n.written)
	return n, err
}

// submit queues a request for a writer goroutine and waits for the result.
func (s *Store) submit(ctx context.Context, r *request, send selection) (moved bool, err error) {
	if send == missingMessages {
		if r.messages, err = s.unstored(ctx, r.messages); err != nil {
			return false, err
		}
	}
	select {
	case s.requests <- r:
	case <-ctx.Done():
		return false, ctx.Err()
	case <-s.stop:
		return false, errClosed
	case <-time.After(maxWait):
		return false, errors.New("the database does not keep up")
	}
	select {
	case a := <-r.done:
		return a.moved, a.err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/lathe-run/lathe/remote"
)

const (
	// notifyEvery is the time between two notifications of a process: each one takes a lock that is global
	// in the server, so that one for each append would cost more than the append.
	notifyEvery = 5 * time.Millisecond
	// maxNotifications bounds the queued notifications of a kind. Those beyond it are dropped.
	maxNotifications = 10_000
	// maxPayload bounds the bytes of one notification; PostgreSQL accepts less than 8000.
	maxPayload = 7_900
	// silence is the time without a notification after which a watch pings its connection.
	silence = 15 * time.Second
)

// outbox are the notifications to send to other processes.
type outbox struct {
	mu    sync.Mutex
	runs  map[string]struct{}
	calls map[remote.Notification]struct{}
	ready chan struct{} // buffers one signal
}

func (h *outbox) add(runID string) { note(h, &h.runs, runID) }

func (h *outbox) addCall(n remote.Notification) { note(h, &h.calls, n) }

func note[T comparable](h *outbox, set *map[T]struct{}, n T) {
	h.mu.Lock()
	if *set == nil {
		*set = map[T]struct{}{}
	}
	if len(*set) < maxNotifications {
		(*set)[n] = struct{}{}
	}
	h.mu.Unlock()
	select {
	case h.ready <- struct{}{}:
	default: // a signal is pending already
	}
}

// drain returns the queued notifications, as lists in JSON.
func (h *outbox) drain() (runs, calls []string) {
	h.mu.Lock()
	ids, outbox := h.runs, h.calls
	h.runs, h.calls = nil, nil
	h.mu.Unlock()
	return pack(ids), pack(outbox)
}

func pack[T comparable](set map[T]struct{}) (out []string) {
	list := []byte{'['}
	for n := range set {
		b, err := json.Marshal(n)
		if err != nil || len(b) > maxPayload-2 {
			continue
		}
		if len(list)+len(b)+2 > maxPayload {
			out, list = append(out, string(append(list, ']'))), []byte{'['}
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, b...)
	}
	if len(list) > 1 {
		out = append(out, string(append(list, ']')))
	}
	return out
}

// sendNotifications notifies the other processes, at most once in hintEvery. Notifications that cannot be sent are dropped.
// Since they may be lost with the server, their commit does not wait for the disk.
func (d *database) sendNotifications() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-d.outbox.ready:
		case <-d.stop:
			return
		}
		runs, calls := d.outbox.drain()
		if len(runs)+len(calls) > 0 {
			ctx, cancel := context.WithTimeout(context.Background(), tryTimeout)
			_, _ = d.pool.Exec(ctx, `SELECT pg_notify($1, r) FROM (SELECT set_config('synchronous_commit', 'off', true)) quick, unnest($3::text[]) r
				UNION ALL SELECT pg_notify($2, c) FROM unnest($4::text[]) c`, d.channel, d.channel+ofCalls, runs, calls) // notifications may be lost
			cancel()
		}
		timer.Reset(notifyEvery)
		select {
		case <-timer.C:
		case <-d.stop:
			return
		}
	}
}

// ofCalls is the suffix of the channel for notifications of calls.
const ofCalls = "_calls"

// Watch implements [store.Shared], on a connection of its own. Notifications that are sent while it is not
// connected are lost: the caller must look for new work before it calls Watch again, and also
// at intervals while Watch runs.
func (s *Store) Watch(ctx context.Context, fn func(runID string)) error {
	return listen(ctx, s.database, "postgres: watch", s.channel, fn)
}

// notifyCall notifies the watchers of calls in this and in other processes.
func (q *CallQueue) notifyCall(n remote.Notification) {
	q.here.Notify(n)
	q.db.outbox.addCall(n)
}

// WatchCalls implements [remote.Queue], like Watch. A change made by this process is delivered at once,
// and a second time by the database.
func (q *CallQueue) WatchCalls(ctx context.Context, fn func(remote.Notification)) error {
	var one sync.Mutex
	deliver := func(n remote.Notification) {
		one.Lock()
		defer one.Unlock()
		fn(n)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var local sync.WaitGroup
	local.Go(func() { q.here.Watch(ctx, deliver) })
	err := listen(ctx, q.db, "postgres: watch calls", q.db.channel+ofCalls, deliver)
	cancel()
	local.Wait()
	return err
}

// listen calls fn with each notification of a channel until ctx is done or the connection is lost.
func listen[T any](ctx context.Context, d *database, op, channel string, fn func(T)) error {
	conn, err := pgx.ConnectConfig(ctx, d.pool.Config().ConnConfig)
	if err != nil {
		return failure(ctx, op, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx) // nothing is on its way
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return failure(ctx, op, err)
	}
	for {
		wait, cancel := context.WithTimeout(ctx, silence)
		n, err := conn.WaitForNotification(wait)
		cancel()
		if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && !conn.IsClosed() {
			ask, cancel := context.WithTimeout(ctx, connectTimeout)
			err = conn.Ping(ask)
			cancel()
			if err == nil {
				continue
			}
		}
		if err != nil {
			return failure(ctx, op, err)
		}
		var outbox []T
		if err := json.Unmarshal([]byte(n.Payload), &outbox); err != nil {
			continue // another program's
		}
		for _, n := range outbox {
			fn(n)
		}
	}
}

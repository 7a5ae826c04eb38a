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
	// runNotifyEvery and callNotifyEvery are the minimum intervals between two notifications of a process. Each notification takes a lock
	// that is global in the server and wakes every listening process, so one per append would cost more than the append. The events of a
	// model's answer and of its tools are often stored within milliseconds, so watchers can read them together. The interval for calls is
	// shorter, because a call waits for a worker of another process.
	runNotifyEvery  = 25 * time.Millisecond
	callNotifyEvery = 5 * time.Millisecond
	// maxNotifications is the maximum number of queued notifications of a kind. Further ones are dropped.
	maxNotifications = 10_000
	// maxPayload is the maximum size of one notification, in bytes; PostgreSQL accepts less than 8000.
	maxPayload = 7_900
	// silence is the time without a notification after which Watch pings its connection.
	silence = 15 * time.Second
)

// An outbox is the set of notifications of one kind that must be sent to other processes.
type outbox[T comparable] struct {
	mu    sync.Mutex
	set   map[T]struct{}
	ready chan struct{} // buffers one signal
}

func newOutbox[T comparable]() *outbox[T] { return &outbox[T]{ready: make(chan struct{}, 1)} }

func (o *outbox[T]) add(n T) {
	o.mu.Lock()
	if o.set == nil {
		o.set = map[T]struct{}{}
	}
	if len(o.set) < maxNotifications {
		o.set[n] = struct{}{}
	}
	o.mu.Unlock()
	select {
	case o.ready <- struct{}{}:
	default: // a signal is pending already
	}
}

// drain removes and returns the queued notifications, as JSON arrays.
func (o *outbox[T]) drain() []string {
	o.mu.Lock()
	set := o.set
	o.set = nil
	o.mu.Unlock()
	return pack(set)
}

// deliver calls send with the queued notifications until stop is closed: at once with the first ones, and at least every later with those
// that were added since the last call.
func (o *outbox[T]) deliver(stop <-chan struct{}, every time.Duration, send func(lists []string)) {
	for {
		select {
		case <-o.ready:
		case <-stop:
			return
		}
		if lists := o.drain(); len(lists) > 0 {
			send(lists)
		}
		select {
		case <-time.After(every):
		case <-stop:
			return
		}
	}
}

// pack returns the notifications as JSON arrays, each no larger than maxPayload.
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

// notify sends lists of notifications to the other processes. Those that cannot be sent are dropped. The transaction does not wait for the
// disk, because notifications may be lost with the server.
func (d *database) notify(channel string, lists []string) {
	ctx, cancel := context.WithTimeout(context.Background(), tryTimeout)
	defer cancel()
	_, _ = d.pool.Exec(ctx, `SELECT pg_notify($1, n) FROM (SELECT set_config('synchronous_commit', 'off', true)) quick, unnest($2::text[]) n`, channel, lists)
}

// ofCalls is the suffix of the channel for notifications of calls.
const ofCalls = "_calls"

// Watch implements [store.Shared], with a connection of its own. Notifications that are sent while the connection is interrupted are lost:
// the caller must look for new events and signals before it calls Watch again, and periodically while Watch runs.
func (s *Store) Watch(ctx context.Context, fn func(runID string)) error {
	return listen(ctx, s.database, "postgres: watch", s.channel, fn)
}

// notifyCall notifies the watchers of calls in this and in other processes.
func (q *callQueue) notifyCall(n remote.Notification) {
	q.here.Notify(n)
	q.calls.add(n)
}

// WatchCalls implements [remote.Queue], with a connection of its own. As with [Store.Watch], notifications that are sent while the
// connection is interrupted are lost. fn is called twice for a change that this process has made: at once, and again when the notification
// arrives from the database.
func (q *callQueue) WatchCalls(ctx context.Context, fn func(remote.Notification)) error {
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
	err := listen(ctx, q.database, "postgres: watch calls", q.channel+ofCalls, deliver)
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
		_ = conn.Close(ctx) // no data is in transit
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return failure(ctx, op, err)
	}
	for {
		wait, cancel := context.WithTimeout(ctx, silence)
		n, err := conn.WaitForNotification(wait)
		cancel()
		isSilent := ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && !conn.IsClosed()
		if isSilent {
			ping, cancel := context.WithTimeout(ctx, connectTimeout)
			err = conn.Ping(ping)
			cancel()
			if err == nil {
				continue
			}
		}
		if err != nil {
			return failure(ctx, op, err)
		}
		var list []T
		if err := json.Unmarshal([]byte(n.Payload), &list); err != nil {
			continue // a notification of another program
		}
		for _, n := range list {
			fn(n)
		}
	}
}

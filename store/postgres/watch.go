package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe"
)

const (
	// hintEvery is the time between two notifications of a process: each one takes a lock that is global
	// in the server, so that one for each append would cost more than the append.
	hintEvery = 5 * time.Millisecond
	// maxHints bounds the hints of a kind that wait. Those beyond it are dropped.
	maxHints = 10_000
	// maxPayload bounds what one notification carries; the server takes less than 8000 bytes.
	maxPayload = 7_900
	// silence is after how long a watch asks whether its connection still stands.
	silence = 15 * time.Second
)

// hints are what other processes are to hear of.
type hints struct {
	mu    sync.Mutex
	runs  map[string]struct{}
	calls map[lathe.CallHint]struct{}
	ready chan struct{} // has room for one
}

func (h *hints) add(runID string) { note(h, &h.runs, runID) }

func (h *hints) addCall(hint lathe.CallHint) { note(h, &h.calls, hint) }

func note[T comparable](h *hints, set *map[T]struct{}, hint T) {
	h.mu.Lock()
	if *set == nil {
		*set = map[T]struct{}{}
	}
	if len(*set) < maxHints {
		(*set)[hint] = struct{}{}
	}
	h.mu.Unlock()
	select {
	case h.ready <- struct{}{}:
	default: // it is told already
	}
}

// take returns what waits, as lists in JSON.
func (h *hints) take() (runs, calls []string) {
	h.mu.Lock()
	ids, hints := h.runs, h.calls
	h.runs, h.calls = nil, nil
	h.mu.Unlock()
	return pack(ids), pack(hints)
}

func pack[T comparable](set map[T]struct{}) (out []string) {
	list := []byte{'['}
	for hint := range set {
		b, err := json.Marshal(hint)
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

// tell notifies the other processes, at most once in hintEvery. What cannot be sent is dropped. That hints
// are lost with the server is no harm: their commit does not wait for the disk.
func (s *Store) tell() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.hints.ready:
		case <-s.stop:
			return
		}
		runs, calls := s.hints.take()
		if len(runs)+len(calls) > 0 {
			ctx, cancel := context.WithTimeout(context.Background(), tryTimeout)
			_, _ = s.pool.Exec(ctx, `SELECT pg_notify($1, r) FROM (SELECT set_config('synchronous_commit', 'off', true)) quick, unnest($3::text[]) r
				UNION ALL SELECT pg_notify($2, c) FROM unnest($4::text[]) c`, s.channel, s.channel+ofCalls, runs, calls) // hints may be lost
			cancel()
		}
		timer.Reset(hintEvery)
		select {
		case <-timer.C:
		case <-s.stop:
			return
		}
	}
}

// ofCalls ends the name of the channel for hints of calls.
const ofCalls = "_calls"

// Watch implements [lathe.SharedStore], on a connection of its own. Hints that come before it is made,
// and after it was lost, are not kept: look for what is new before it is called again, and now and
// then while it goes on.
func (s *Store) Watch(ctx context.Context, fn func(runID string)) error {
	return listen(ctx, s, "postgres: watch", s.channel, fn)
}

// tellCall tells the watchers of calls here and elsewhere.
func (s *Store) tellCall(hint lathe.CallHint) {
	s.calls.Tell(hint)
	s.hints.addCall(hint)
}

// WatchCalls implements [lathe.CallQueue], as Watch does. What happens in this process is heard of at once,
// and once more from the database.
func (s *Store) WatchCalls(ctx context.Context, fn func(lathe.CallHint)) error {
	var one sync.Mutex
	hear := func(hint lathe.CallHint) {
		one.Lock()
		defer one.Unlock()
		fn(hint)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var here sync.WaitGroup
	here.Go(func() { s.calls.Watch(ctx, hear) })
	err := listen(ctx, s, "postgres: watch calls", s.channel+ofCalls, hear)
	cancel()
	here.Wait()
	return err
}

// listen calls fn with each hint of a channel until ctx is done or the connection is lost.
func listen[T any](ctx context.Context, s *Store, op, channel string, fn func(T)) error {
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
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
		var hints []T
		if err := json.Unmarshal([]byte(n.Payload), &hints); err != nil {
			continue // somebody else's
		}
		for _, hint := range hints {
			fn(hint)
		}
	}
}

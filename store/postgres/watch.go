package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// hintEvery is the time between two notifications of a process: each one takes a lock that is global
	// in the server, so that one for each append would cost more than the append.
	hintEvery = 5 * time.Millisecond
	// maxHints bounds the runs of which hints wait. Those beyond it are dropped.
	maxHints = 10_000
	// maxPayload bounds what one notification carries; the server takes less than 8000 bytes.
	maxPayload = 7_900
	// silence is after how long a watch asks whether its connection still stands.
	silence = 15 * time.Second
)

// hints are the runs that other processes are to hear of.
type hints struct {
	mu    sync.Mutex
	runs  map[string]struct{}
	ready chan struct{} // has room for one
}

func (h *hints) add(runID string) {
	h.mu.Lock()
	if h.runs == nil {
		h.runs = map[string]struct{}{}
	}
	if len(h.runs) < maxHints {
		h.runs[runID] = struct{}{}
	}
	h.mu.Unlock()
	select {
	case h.ready <- struct{}{}:
	default: // it is told already
	}
}

// payloads returns what waits, as lists in JSON.
func (h *hints) payloads() (out []string) {
	h.mu.Lock()
	runs := h.runs
	h.runs = nil
	h.mu.Unlock()
	list := []byte{'['}
	for id := range runs {
		b, err := json.Marshal(id)
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

// tell notifies the other processes, at most once in hintEvery. What cannot be sent is dropped.
func (s *Store) tell() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.hints.ready:
		case <-s.stop:
			return
		}
		if payloads := s.hints.payloads(); len(payloads) > 0 {
			ctx, cancel := context.WithTimeout(context.Background(), tryTimeout)
			_, _ = s.pool.Exec(ctx, "SELECT pg_notify($1, p) FROM (SELECT set_config('synchronous_commit', 'off', true)) quick, unnest($2::text[]) p", s.channel, payloads) // hints may be lost
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

// Watch implements [lathe.SharedStore], on a connection of its own. Hints that come before it is made,
// and after it was lost, are not kept: look for what is new before it is called again, and now and
// then while it goes on.
func (s *Store) Watch(ctx context.Context, fn func(runID string)) error {
	const op = "postgres: watch"
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return failure(ctx, op, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx) // nothing is on its way
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{s.channel}.Sanitize()); err != nil {
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
		var runs []string
		if err := json.Unmarshal([]byte(n.Payload), &runs); err != nil {
			continue // somebody else's
		}
		for _, id := range runs {
			fn(id)
		}
	}
}

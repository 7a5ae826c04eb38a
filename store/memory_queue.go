package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/remote"
)

// maxCalls bounds the calls of a [Memory], and maxWorkers the workers.
const (
	maxCalls   = 100_000
	maxWorkers = 10_000
)

// memoryCalls has the rows of a [CallQueue] in a [Memory].
type memoryCalls struct {
	*core
	runs    *journals
	at      time.Time // of the transaction
	writes  bool
	calls   map[string]*QueuedCall
	open    []*QueuedCall // the calls that have not ended, in the order in which they were queued
	workers map[string]*memoryWorker
	joined  int // workers so far
}

type memoryWorker struct {
	remote.Worker
	order int
	until time.Time
}

func (m *memoryCalls) change(ctx context.Context, op string, write bool, fn func(CallRows, time.Time) error) error {
	return m.do(ctx, op, func(now time.Time) error {
		m.at, m.writes = now, write
		return fn(m, now)
	})
}

// Call implements [CallRows], as the methods below.
func (m *memoryCalls) Call(key string) (*QueuedCall, error) {
	c := m.calls[key]
	if c == nil {
		return nil, lathe.ErrNotFound
	}
	return c, nil
}

func (m *memoryCalls) PutCall(c *QueuedCall) error {
	if m.calls[c.Key] == nil {
		if len(m.calls) >= maxCalls { // remove calls that have ended, however recently
			if n, _ := m.ForgetCalls(m.at); n == 0 {
				return fmt.Errorf("%d calls are kept, and no more can be", maxCalls)
			}
		}
		m.calls[c.Key] = c
		m.open = append(m.open, c)
	}
	if c.State.Ended() {
		m.open = slices.DeleteFunc(m.open, func(o *QueuedCall) bool { return o == c })
	}
	return nil
}

func (m *memoryCalls) QueuedCalls(definitions []string, limit int) (out []*QueuedCall, err error) {
	for _, c := range m.open {
		if len(out) < limit && c.State == remote.Queued && !c.due(m.at) && slices.Contains(definitions, c.Definition) {
			out = append(out, c)
		}
	}
	return out, nil
}

func (m *memoryCalls) DueCalls() (out []*QueuedCall, err error) {
	for _, c := range m.open {
		if c.due(m.at) {
			out = append(out, c)
		}
	}
	return out, nil
}

func (m *memoryCalls) ForgetCalls(before time.Time) (n int, err error) {
	for key, c := range m.calls {
		if j := m.runs.runs[c.RunID]; c.State.Ended() && c.Ended.Before(before) && (j == nil || j.over != nil) {
			if n++; m.writes {
				delete(m.calls, key)
			}
		}
	}
	return n, nil
}

// forgetRun removes the calls of a run that is deleted.
func (m *memoryCalls) forgetRun(runID string) {
	maps.DeleteFunc(m.calls, func(_ string, c *QueuedCall) bool { return c.RunID == runID })
	m.open = slices.DeleteFunc(m.open, func(c *QueuedCall) bool { return c.RunID == runID })
}

func (m *memoryCalls) Worker(id string) (*remote.Worker, time.Time, error) {
	w := m.workers[id]
	if w == nil || !m.at.Before(w.until) {
		return nil, time.Time{}, lathe.ErrNotFound
	}
	return &w.Worker, w.until, nil
}

func (m *memoryCalls) PutWorker(w *remote.Worker, until time.Time) error {
	row := &memoryWorker{Worker: *w, until: until}
	has := m.workers[w.ID]
	switch {
	case !m.at.Before(until):
		delete(m.workers, w.ID)
		return nil
	case has != nil && has.Since.Equal(w.Since):
		row.order = has.order
	case has == nil && len(m.workers) >= maxWorkers:
		return fmt.Errorf("%d workers are known, and no more can be", maxWorkers)
	default:
		m.joined++
		row.order = m.joined
	}
	m.workers[w.ID] = row
	return nil
}

func (m *memoryCalls) Workers() ([]remote.Worker, error) {
	rows := slices.SortedFunc(maps.Values(m.workers), func(a, b *memoryWorker) int { return cmp.Compare(a.order, b.order) })
	var out []remote.Worker
	for _, w := range rows {
		if m.at.Before(w.until) {
			out = append(out, cloneWorker(&w.Worker))
		}
	}
	return out, nil
}

func (m *memoryCalls) ForgetWorkers() (n int, err error) {
	for id, w := range m.workers {
		if !m.at.Before(w.until) {
			if n++; m.writes {
				delete(m.workers, id)
			}
		}
	}
	return n, nil
}

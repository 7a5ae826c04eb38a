package store

import (
	"cmp"
	"container/list"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/remote"
)

// Maximum number of calls and of workers in a [Memory].
const (
	maxCalls   = 100_000
	maxWorkers = 10_000
)

// memoryCalls contains the calls and the workers of a [Memory].
type memoryCalls struct {
	at      time.Time // time of the transaction
	writes  bool      // false: ForgetCalls and ForgetWorkers only count
	calls   map[string]*list.Element
	open    list.List // of *QueuedCall: calls that have not ended, in queue order
	workers map[string]*memoryWorker
	joined  int // number of workers so far
}

func callOf(e *list.Element) *QueuedCall { return e.Value.(*QueuedCall) }

type memoryWorker struct {
	remote.Worker
	order int
	until time.Time
}

func (m *memoryCalls) Call(key string) (*QueuedCall, error) {
	e := m.calls[key]
	if e == nil {
		return nil, lathe.ErrNotFound
	}
	return callOf(e), nil
}

func (m *memoryRows) PutCall(c *QueuedCall) error {
	e := m.calls[c.Key]
	if e == nil {
		if len(m.calls) >= maxCalls { // removes ended calls regardless of their age
			if n, _ := m.ForgetCalls(m.at); n == 0 {
				return fmt.Errorf("%d calls are kept, and no more can be", maxCalls)
			}
		}
		e = m.open.PushBack(c)
		m.calls[c.Key] = e
	}
	if c.State.Ended() {
		m.open.Remove(e)
	}
	return nil
}

func (m *memoryCalls) RenewCall(ref remote.Ref, until time.Time) (cancelled bool, err error) {
	c, err := m.Call(ref.Key)
	if err != nil || c.Ref() != ref || c.State != remote.Claimed && c.State != remote.Started {
		return false, lathe.ErrNotFound
	}
	c.Lease = until
	return c.Cancelled, nil
}

func (m *memoryCalls) QueuedCalls(definitions []string, limit int) (out []*QueuedCall, err error) {
	for e := m.open.Front(); e != nil && len(out) < limit; e = e.Next() {
		if c := callOf(e); c.State == remote.Queued && !c.due(m.at) && slices.Contains(definitions, c.Definition) {
			out = append(out, c)
		}
	}
	return out, nil
}

func (m *memoryCalls) DueCalls() (out []*QueuedCall, err error) {
	for e := m.open.Front(); e != nil; e = e.Next() {
		if c := callOf(e); c.due(m.at) {
			out = append(out, c)
		}
	}
	return out, nil
}

func (m *memoryRows) ForgetCalls(before time.Time) (n int, err error) {
	for key, e := range m.calls {
		c := callOf(e)
		j := m.kept.runs[c.RunID]
		runEnded := j == nil || j.over != nil
		if c.State.Ended() && c.Ended.Before(before) && runEnded {
			n++
			if m.writes {
				delete(m.calls, key)
			}
		}
	}
	return n, nil
}

// forgetCalls removes the calls of a deleted run.
func (m *memoryCalls) forgetCalls(runID string) {
	for key, e := range m.calls {
		if callOf(e).RunID == runID {
			m.open.Remove(e)
			delete(m.calls, key)
		}
	}
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
			out = append(out, clone(w.Worker))
		}
	}
	return out, nil
}

func (m *memoryCalls) ForgetWorkers() (n int, err error) {
	for id, w := range m.workers {
		if !m.at.Before(w.until) {
			n++
			if m.writes {
				delete(m.workers, id)
			}
		}
	}
	return n, nil
}

package budget

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

// Pauses between batches.
const (
	retryAfter  = time.Second // after a failed attempt
	recordEvery = time.Second // after a recorded batch, unless Flush is blocked: stores keep one row for each batch for a day
)

// pending has the usage of calls without a budget that is not recorded yet: one row for each day, key and model.
//
// [Meter.record] takes all rows at once as a batch, records the batch and then takes the next one. So the usage that rows has now is recorded
// when recorded has reached taken+1.
type pending struct {
	mu       sync.Mutex
	changed  *sync.Cond // signalled when any of the fields below has changed
	rows     map[store.UsageKey]*store.Counts
	taken    int64 // number of batches that take has returned
	recorded int64 // number of batches that the ledger has recorded
	failures int64 // number of failed attempts
	failed   error // of the last failed attempt
	closed   bool
	stop     chan struct{} // closed by close
	flush    chan struct{} // has an element if a call of Flush is blocked
}

func (p *pending) init() {
	p.rows, p.changed, p.stop = map[store.UsageKey]*store.Counts{}, sync.NewCond(&p.mu), make(chan struct{})
	p.flush = make(chan struct{}, 1)
}

func (p *pending) add(k store.UsageKey, c store.Counts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rows[k] == nil {
		p.rows[k] = &store.Counts{}
	}
	p.rows[k].Add(c)
	p.changed.Broadcast()
}

// take blocks until there are rows, and removes and returns them. ok is false if the meter is closed.
func (p *pending) take() (rows []store.UsageRow, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.rows) == 0 && !p.closed {
		p.changed.Wait()
	}
	if p.closed {
		return nil, false
	}
	for k, c := range p.rows {
		rows = append(rows, store.UsageRow{UsageKey: k, Counts: *c})
	}
	clear(p.rows)
	p.taken++
	return rows, true
}

// done counts a recorded batch, or a failed attempt if err is not nil.
func (p *pending) done(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.recorded++
	} else {
		p.failures, p.failed = p.failures+1, err
	}
	p.changed.Broadcast()
}

func (p *pending) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		close(p.stop)
		p.changed.Broadcast()
	}
}

// Flush blocks until the usage of all calls that have ended is recorded. It returns the error of an attempt that fails in the meantime.
func (m *Meter) Flush(ctx context.Context) error {
	p := &m.pending
	defer context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.changed.Broadcast()
	})()
	p.mu.Lock()
	defer p.mu.Unlock()
	last, failures := p.taken, p.failures
	if len(p.rows) > 0 {
		last++ // the current rows belong to the next batch
	}
	if p.recorded < last {
		select {
		case p.flush <- struct{}{}:
		default:
		}
	}
	for p.recorded < last && p.failures == failures && !p.closed {
		if err := ctx.Err(); err != nil {
			return lathe.CodeTimeout.Wrap("budget: record usage", err)
		}
		p.changed.Wait()
	}
	if p.recorded < last {
		return p.failed
	}
	return nil
}

// record records batches until the meter is closed. A batch that fails is repeated with the same id, so that it counts once.
func (m *Meter) record() {
	for {
		rows, ok := m.pending.take()
		if !ok {
			return
		}
		id := fmt.Sprintf("%s-%d", m.process, m.serial.Add(1))
		for {
			ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
			err := m.ledger.Record(ctx, id, m.now(), rows)
			cancel()
			m.pending.done(err)
			if err == nil {
				break
			}
			m.log.Error("what model calls used was not recorded: it is tried again", "code", lathe.CodeOf(err))
			if !m.pending.pause(retryAfter, nil) {
				return
			}
		}
		if !m.pending.pause(recordEvery, m.pending.flush) {
			return
		}
	}
}

// pause blocks for d, or until cut has an element. It returns false if the meter is closed.
func (p *pending) pause(d time.Duration, cut <-chan struct{}) bool {
	select {
	case <-time.After(d):
	case <-cut:
	case <-p.stop:
		return false
	}
	return true
}

// Reports returns the ledger for reports. It records the pending usage of this process before each query.
func (m *Meter) Reports() store.Ledger { return &reports{m.ledger, m} }

type reports struct {
	store.Ledger
	meter *Meter
}

// Balances implements [store.Ledger].
func (r *reports) Balances(ctx context.Context, accounts []store.Account) ([]store.Balance, error) {
	if err := r.meter.Flush(ctx); err != nil {
		return nil, err
	}
	return r.Ledger.Balances(ctx, accounts)
}

// Usage implements [store.Ledger].
func (r *reports) Usage(ctx context.Context, f *store.UsageFilter) ([]store.UsageRow, error) {
	if err := r.meter.Flush(ctx); err != nil {
		return nil, err
	}
	return r.Ledger.Usage(ctx, f)
}

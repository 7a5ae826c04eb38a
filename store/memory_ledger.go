package store

import (
	"context"
	"slices"
	"sync"
	"time"
)

var _ Ledger = (*LedgerRecords)(nil)

// maxLedgerRows bounds the rows of usage in a [Memory]. Beyond it those of the oldest day are removed.
const maxLedgerRows = 100_000

// LedgerRecords is the part of a [Memory] that implements [Ledger].
type LedgerRecords struct {
	mu       sync.Mutex
	balances map[Account]*Balance
	usage    map[UsageKey]*Counts
	open     map[string]*Reservation
	charged  map[string]*Reservation
	recorded map[string]time.Time // ids of Record
}

func newLedgerRecords() *LedgerRecords {
	return &LedgerRecords{balances: map[Account]*Balance{}, usage: map[UsageKey]*Counts{}, open: map[string]*Reservation{}, charged: map[string]*Reservation{},
		recorded: map[string]time.Time{}}
}

// Reserve implements [Ledger].
func (l *LedgerRecords) Reserve(ctx context.Context, r *Reservation) error {
	const op = "store: reserve"
	if err := ended(ctx, op); err != nil {
		return err
	}
	if err := CheckReservation(op, r); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[r.ID] != nil {
		return nil
	}
	var balances []Balance
	for _, a := range r.Accounts() {
		balances = append(balances, *l.balance(a))
	}
	if err := OverBudget(op, r, balances); err != nil {
		return err
	}
	kept := *r
	l.open[r.ID] = &kept
	for _, a := range r.Accounts() {
		b := l.balance(a)
		b.ReservedNanos += r.Nanos
		b.ReservedTokens += r.Tokens()
	}
	return nil
}

// Settle implements [Ledger].
func (l *LedgerRecords) Settle(ctx context.Context, id string, used Counts) error {
	if err := ended(ctx, "store: settle"); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	used = used.Bounded()
	if r := l.open[id]; r != nil {
		delete(l.open, id)
		l.release(r)
		l.book(r.UsageKey, used, 1)
	} else if r := l.charged[id]; r != nil {
		delete(l.charged, id)
		l.book(r.UsageKey, r.Charged(), -1)
		l.book(r.UsageKey, used, 1)
	}
	return nil
}

// release takes a reservation out of its accounts.
func (l *LedgerRecords) release(r *Reservation) {
	for _, a := range r.Accounts() {
		b := l.balance(a)
		b.ReservedNanos -= r.Nanos
		b.ReservedTokens -= r.Tokens()
	}
}

// book adds counts, or takes them off where sign is -1.
func (l *LedgerRecords) book(k UsageKey, c Counts, sign int64) {
	for _, p := range c.Fields() {
		*p *= sign
	}
	for _, a := range k.Accounts() {
		b := l.balance(a)
		b.SpentNanos = addBooked(b.SpentNanos, c.Nanos)
		b.SpentTokens = addBooked(b.SpentTokens, c.Tokens)
	}
	sum := l.usage[k]
	if sum == nil {
		sum = &Counts{}
		l.usage[k] = sum
		l.bound()
	}
	sum.Add(c)
}

// bound removes the rows of the oldest day if there are too many.
func (l *LedgerRecords) bound() {
	if len(l.usage) <= maxLedgerRows {
		return
	}
	oldest := ""
	for k := range l.usage {
		if oldest == "" || k.Day < oldest {
			oldest = k.Day
		}
	}
	for k := range l.usage {
		if k.Day == oldest {
			delete(l.usage, k)
		}
	}
}

func (l *LedgerRecords) balance(a Account) *Balance {
	b := l.balances[a]
	if b == nil {
		b = &Balance{Account: a}
		l.balances[a] = b
	}
	return b
}

// Record implements [Ledger].
func (l *LedgerRecords) Record(ctx context.Context, id string, at time.Time, entries []UsageRow) error {
	const op = "store: record the usage"
	if err := ended(ctx, op); err != nil {
		return err
	}
	if err := CheckEntries(op, id, entries); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.recorded[id]; ok {
		return nil
	}
	l.recorded[id] = at
	for _, e := range entries {
		l.book(e.UsageKey, e.Bounded(), 1)
	}
	return nil
}

// ChargedKept is how long a store remembers a reservation that was charged, and the id of a Record: a Settle within that time
// replaces what was charged, and a repeated Record is recognised.
const ChargedKept = 24 * time.Hour

// Sweep implements [Ledger].
func (l *LedgerRecords) Sweep(ctx context.Context, now time.Time) (charged int, err error) {
	if err := ended(ctx, "store: sweep the ledger"); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, r := range l.open {
		if r.Expires.After(now) {
			continue
		}
		delete(l.open, id)
		l.charged[id] = r
		l.release(r)
		l.book(r.UsageKey, r.Charged(), 1)
		charged++
	}
	for id, r := range l.charged {
		if now.Sub(r.Expires) > ChargedKept {
			delete(l.charged, id)
		}
	}
	for id, at := range l.recorded {
		if now.Sub(at) > ChargedKept {
			delete(l.recorded, id)
		}
	}
	first := LedgerBegins(now)
	for a := range l.balances {
		if a.Period < first {
			delete(l.balances, a)
		}
	}
	for k := range l.usage {
		if k.Day < first {
			delete(l.usage, k)
		}
	}
	return charged, nil
}

// LedgerBegins returns the month before which Sweep removes rows: "2025-10". It is compared with days and with months.
func LedgerBegins(now time.Time) string { return now.UTC().Add(-LedgerKept).Format("2006-01") }

// Balances implements [Ledger].
func (l *LedgerRecords) Balances(ctx context.Context, accounts []Account) ([]Balance, error) {
	if err := ended(ctx, "store: read the balances"); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Balance, len(accounts))
	for i, a := range accounts {
		out[i].Account = a
		if b := l.balances[a]; b != nil {
			out[i] = *b
		}
	}
	return out, nil
}

// Usage implements [Ledger].
func (l *LedgerRecords) Usage(ctx context.Context, f *UsageFilter) ([]UsageRow, error) {
	if err := ended(ctx, "store: read the usage"); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []UsageRow
	for k, c := range l.usage {
		if f.Selects(&k) {
			out = append(out, UsageRow{k, *c})
		}
	}
	slices.SortFunc(out, CompareUsage)
	if f.Limit > 0 {
		out = out[:min(len(out), f.Limit)]
	}
	return out, nil
}

package store

import (
	"maps"
	"slices"
	"time"
)

// maxLedgerRows is the maximum number of usage rows in a [Memory]. Beyond it, the rows of the oldest day are removed.
const maxLedgerRows = 100_000

// memoryLedger contains the rows of a [Ledger] in a [Memory].
type memoryLedger struct {
	balances     map[Account]*Balance
	usage        map[UsageKey]*Counts
	reservations map[string]memoryReservation
}

type memoryReservation struct {
	Reservation
	state string
}

func (m *memoryLedger) Reservation(id string) (*Reservation, string, error) {
	r := m.reservations[id]
	return &r.Reservation, r.state, nil
}

func (m *memoryLedger) PutReservation(r *Reservation, state string) error {
	if state == reservationRemoved {
		delete(m.reservations, r.ID)
	} else {
		m.reservations[r.ID] = memoryReservation{*r, state}
	}
	return nil
}

func (m *memoryLedger) ExpiredReservations(now time.Time) (out []*Reservation, err error) {
	for _, r := range m.reservations {
		if r.state == reservationOpen && !r.Expires.After(now) {
			out = append(out, &r.Reservation)
		}
	}
	return out, nil
}

func (m *memoryLedger) Balances(accounts []Account) ([]Balance, error) {
	out := make([]Balance, len(accounts))
	for i, a := range accounts {
		out[i].Account = a
		if m.balances[a] != nil {
			out[i] = *m.balances[a]
		}
	}
	return out, nil
}

func (m *memoryLedger) Book(k *UsageKey, by Balance, c *Counts) error {
	for _, a := range k.Accounts() {
		b := m.balances[a]
		if b == nil {
			b = &Balance{Account: a}
			m.balances[a] = b
		}
		b.SpentNanos, b.SpentTokens = addBooked(b.SpentNanos, by.SpentNanos), addBooked(b.SpentTokens, by.SpentTokens)
		b.ReservedNanos, b.ReservedTokens = b.ReservedNanos+by.ReservedNanos, b.ReservedTokens+by.ReservedTokens
	}
	if c == nil {
		return nil
	}
	sum := m.usage[*k]
	if sum == nil {
		sum = &Counts{}
		m.usage[*k] = sum
	}
	sum.Add(*c)
	if len(m.usage) > maxLedgerRows {
		oldest := k.Day
		for k := range m.usage {
			oldest = min(oldest, k.Day)
		}
		maps.DeleteFunc(m.usage, func(k UsageKey, _ *Counts) bool { return k.Day == oldest })
	}
	return nil
}

func (m *memoryLedger) Usage(f *UsageFilter) (out []UsageRow, err error) {
	for k, c := range m.usage {
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

func (m *memoryLedger) ForgetLedger(expired time.Time, first string) error {
	maps.DeleteFunc(m.reservations, func(_ string, r memoryReservation) bool {
		return r.state != reservationOpen && r.Expires.Before(expired)
	})
	maps.DeleteFunc(m.balances, func(a Account, _ *Balance) bool { return a.Period < first })
	maps.DeleteFunc(m.usage, func(k UsageKey, _ *Counts) bool { return k.Day < first })
	return nil
}

package store

import (
	"context"
	"time"
)

var _ Ledger = (*LedgerRecords)(nil)

// LedgerRecords is a [Ledger] over [LedgerRows]. [Memory] and store/sqlite have one; store/postgres, whose changes lock the accounts one
// by one, has the same rules in SQL.
type LedgerRecords struct {
	begin func(ctx context.Context, op string, write bool, fn func(rows LedgerRows) error) error
}

// NewLedgerRecords returns a ledger. begin executes fn with the rows of a store in one transaction, which changes nothing if fn returns
// an error or write is false. It returns a *[lathe.Error].
func NewLedgerRecords(begin func(ctx context.Context, op string, write bool, fn func(rows LedgerRows) error) error) *LedgerRecords {
	return &LedgerRecords{begin}
}

// LedgerRows are the rows of [LedgerRecords] in one transaction. A reservation is open, or charged because it expired; an id of a Record
// is one that is recorded, with its time in Expires.
type LedgerRows interface {
	// Reservation returns what PutReservation stored under an id; the state is "" if there is nothing.
	Reservation(id string) (r *Reservation, state string, err error)
	// PutReservation stores a reservation without its limits in the state open, charged or recorded, and removes it with the state "".
	PutReservation(r *Reservation, state string) error
	// Expired returns open reservations that expire at now or earlier. It may leave some for the next time.
	Expired(now time.Time) ([]*Reservation, error)
	// Balances returns the balance of each account, in the order of the accounts. One that nothing was booked on is 0.
	Balances(accounts []Account) ([]Balance, error)
	// Book adds by to the balances of the accounts of k and, unless c is nil, c to its usage, as [Counts.Add] does.
	Book(k *UsageKey, by Balance, c *Counts) error
	// Usage is that of [Ledger].
	Usage(f *UsageFilter) ([]UsageRow, error)
	// Forget removes the reservations that are not open and expired before that time, and the balances and usage of the periods before first.
	Forget(expired time.Time, first string) error
}

// Reserve implements [Ledger].
func (l *LedgerRecords) Reserve(ctx context.Context, r *Reservation) error {
	const op = "reserve"
	if err := CheckReservation("store: "+op, r); err != nil {
		return err
	}
	return l.begin(ctx, op, true, func(rows LedgerRows) error {
		if _, state, err := rows.Reservation(r.ID); err != nil || state != "" {
			return err
		}
		balances, err := rows.Balances(r.Accounts())
		if err == nil {
			err = OverBudget("store: "+op, r, balances)
		}
		if err == nil {
			err = rows.PutReservation(r, "open")
		}
		if err != nil {
			return err
		}
		return rows.Book(&r.UsageKey, Balance{ReservedNanos: r.Nanos, ReservedTokens: r.Tokens()}, nil)
	})
}

// Settle implements [Ledger].
func (l *LedgerRecords) Settle(ctx context.Context, id string, used Counts) error {
	used = used.Bounded()
	return l.begin(ctx, "settle", true, func(rows LedgerRows) error {
		r, state, err := rows.Reservation(id)
		if err == nil && (state == "open" || state == "charged") {
			if err = rows.PutReservation(r, ""); err == nil {
				err = closeReservation(rows, r, state, used)
			}
		}
		return err
	})
}

// closeReservation books what was used under a reservation, in place of what is reserved or was charged.
func closeReservation(rows LedgerRows, r *Reservation, state string, used Counts) error {
	by := Balance{ReservedNanos: -r.Nanos, ReservedTokens: -r.Tokens()}
	if state == "charged" {
		by = Balance{}
		back := r.Charged()
		for _, p := range back.Fields() {
			*p = -*p
		}
		used.Add(back)
	}
	by.SpentNanos, by.SpentTokens = used.Nanos, used.Tokens
	return rows.Book(&r.UsageKey, by, &used)
}

// Record implements [Ledger].
func (l *LedgerRecords) Record(ctx context.Context, id string, at time.Time, entries []UsageRow) error {
	const op = "record the usage"
	if err := CheckEntries("store: "+op, id, entries); err != nil {
		return err
	}
	return l.begin(ctx, op, true, func(rows LedgerRows) error {
		if _, state, err := rows.Reservation(id); err != nil || state != "" {
			return err
		}
		err := rows.PutReservation(&Reservation{ID: id, Expires: at}, "recorded")
		for i := 0; i < len(entries) && err == nil; i++ {
			c := entries[i].Bounded()
			err = rows.Book(&entries[i].UsageKey, Balance{SpentNanos: c.Nanos, SpentTokens: c.Tokens}, &c)
		}
		return err
	})
}

// Sweep implements [Ledger].
func (l *LedgerRecords) Sweep(ctx context.Context, now time.Time) (int, error) {
	charged := 0
	err := l.begin(ctx, "sweep the ledger", true, func(rows LedgerRows) error {
		due, err := rows.Expired(now)
		for i := 0; i < len(due) && err == nil; i++ {
			if err = rows.PutReservation(due[i], "charged"); err == nil {
				err = closeReservation(rows, due[i], "open", due[i].Charged())
			}
		}
		if charged = len(due); err != nil {
			return err
		}
		return rows.Forget(now.Add(-ChargedKept), LedgerBegins(now))
	})
	if err != nil {
		return 0, err
	}
	return charged, nil
}

// Balances implements [Ledger].
func (l *LedgerRecords) Balances(ctx context.Context, accounts []Account) (out []Balance, err error) {
	err = l.begin(ctx, "read the balances", false, func(rows LedgerRows) error {
		out, err = rows.Balances(accounts)
		return err
	})
	return out, err
}

// Usage implements [Ledger].
func (l *LedgerRecords) Usage(ctx context.Context, f *UsageFilter) (out []UsageRow, err error) {
	err = l.begin(ctx, "read the usage", false, func(rows LedgerRows) error {
		out, err = rows.Usage(f)
		return err
	})
	return out, err
}

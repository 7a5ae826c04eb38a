package store

import (
	"context"
	"time"
)

// The states of a reservation: see PutReservation of [Rows].
const (
	reservationOpen     = "open"
	reservationCharged  = "charged"
	reservationRecorded = "recorded"
	reservationRemoved  = ""
)

// ledgerRecords implements [Ledger] over [Rows].
type ledgerRecords struct{ begin transaction }

// Reserve implements [Ledger].
func (l ledgerRecords) Reserve(ctx context.Context, r *Reservation) error {
	const op = "reserve"
	if err := CheckReservation("store: "+op, r); err != nil {
		return err
	}
	return l.begin(ctx, op, readWrite, func(rows Rows, _ time.Time) error {
		if _, state, err := rows.Reservation(r.ID); err != nil || state != reservationRemoved {
			return err
		}
		balances, err := rows.Balances(r.Accounts())
		if err != nil {
			return err
		}
		if err := OverBudget("store: "+op, r, balances); err != nil {
			return err
		}
		if err := rows.PutReservation(r, reservationOpen); err != nil {
			return err
		}
		return rows.Book(&r.UsageKey, Balance{ReservedNanos: r.Nanos, ReservedTokens: r.Tokens()}, nil)
	})
}

// Settle implements [Ledger].
func (l ledgerRecords) Settle(ctx context.Context, id string, used Counts) error {
	used = used.Bounded()
	return l.begin(ctx, "settle", readWrite, func(rows Rows, _ time.Time) error {
		r, state, err := rows.Reservation(id)
		if err != nil || state != reservationOpen && state != reservationCharged {
			return err
		}
		if err := rows.PutReservation(r, reservationRemoved); err != nil {
			return err
		}
		return closeReservation(rows, r, state, used)
	})
}

// closeReservation books the usage of a reservation in place of its reserved amount if it was open, or of its charged amount.
func closeReservation(rows Rows, r *Reservation, state string, used Counts) error {
	var by Balance
	switch state {
	case reservationOpen:
		by.ReservedNanos, by.ReservedTokens = -r.Nanos, -r.Tokens()
	case reservationCharged:
		charged := r.Charged()
		for _, p := range charged.Fields() {
			*p = -*p
		}
		used.Add(charged)
	}
	by.SpentNanos, by.SpentTokens = used.Nanos, used.Tokens
	return rows.Book(&r.UsageKey, by, &used)
}

// Record implements [Ledger].
func (l ledgerRecords) Record(ctx context.Context, id string, at time.Time, entries []UsageRow) error {
	const op = "record the usage"
	if err := CheckEntries("store: "+op, id, entries); err != nil {
		return err
	}
	return l.begin(ctx, op, readWrite, func(rows Rows, _ time.Time) error {
		if _, state, err := rows.Reservation(id); err != nil || state != reservationRemoved {
			return err
		}
		if err := rows.PutReservation(&Reservation{ID: id, Expires: at}, reservationRecorded); err != nil {
			return err
		}
		for i := range entries {
			c := entries[i].Bounded()
			if err := rows.Book(&entries[i].UsageKey, Balance{SpentNanos: c.Nanos, SpentTokens: c.Tokens}, &c); err != nil {
				return err
			}
		}
		return nil
	})
}

// Sweep implements [Ledger].
func (l ledgerRecords) Sweep(ctx context.Context, now time.Time) (int, error) {
	charged := 0
	err := l.begin(ctx, "sweep the ledger", readWrite, func(rows Rows, _ time.Time) error {
		due, err := rows.ExpiredReservations(now)
		if err != nil {
			return err
		}
		for _, r := range due {
			if err := rows.PutReservation(r, reservationCharged); err != nil {
				return err
			}
			if err := closeReservation(rows, r, reservationOpen, r.Charged()); err != nil {
				return err
			}
		}
		charged = len(due)
		return rows.ForgetLedger(now.Add(-ChargedKept), LedgerBegins(now))
	})
	if err != nil {
		return 0, err
	}
	return charged, nil
}

// Balances implements [Ledger].
func (l ledgerRecords) Balances(ctx context.Context, accounts []Account) (out []Balance, err error) {
	if len(accounts) == 0 {
		return nil, nil
	}
	err = l.begin(ctx, "read the balances", readOnly, func(rows Rows, _ time.Time) error {
		out, err = rows.Balances(accounts)
		return err
	})
	return out, err
}

// Usage implements [Ledger].
func (l ledgerRecords) Usage(ctx context.Context, f *UsageFilter) (out []UsageRow, err error) {
	err = l.begin(ctx, "read the usage", readOnly, func(rows Rows, _ time.Time) error {
		out, err = rows.Usage(f)
		return err
	})
	return out, err
}

package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/lathe-run/lathe/store"
)

var (
	_ store.Ledger = (*LedgerRecords)(nil)
	_ store.Ledger = (*Store)(nil)
)

// LedgerRecords is the part of a [Store] that implements [store.Ledger]. Sums are bounded by [store.MaxBooked]: SQLite makes a floating point
// number of one that overflows. The writer makes each change in one transaction.
type LedgerRecords struct{ db *database }

// ledgerVersion is the first version of the schema with a ledger.
const ledgerVersion = 9

// Reserve implements [store.Ledger].
func (l *LedgerRecords) Reserve(ctx context.Context, r *store.Reservation) error {
	const op = "sqlite: reserve"
	if err := store.CheckReservation(op, r); err != nil {
		return err
	}
	_, err := l.db.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		var state string
		switch err := tx.QueryRowContext(ctx, "SELECT state FROM ledger_reservation WHERE id = ?", r.ID).Scan(&state); {
		case err == nil:
			return 0, nil
		case !errors.Is(err, sql.ErrNoRows):
			return 0, err
		}
		balances, err := balancesOf(ctx, tx, r.Accounts())
		if err != nil {
			return 0, err
		}
		if err := store.OverBudget(op, r, balances); err != nil {
			return 0, err
		}
		if err := move(ctx, tx, &r.UsageKey, store.Balance{ReservedNanos: r.Nanos, ReservedTokens: r.Tokens()}); err != nil {
			return 0, err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO ledger_reservation (id, state, expires, day, key, team, model, input_tokens, output_tokens, nanos)
			VALUES (?, 'open', ?, ?, ?, ?, ?, ?, ?, ?)`, r.ID, r.Expires.UnixNano(), r.Day, r.Key, r.Group, r.Model, r.InputTokens, r.OutputTokens, r.Nanos)
		return 0, err
	})
	if err != nil {
		return failure(ctx, op, err)
	}
	return nil
}

// A querier is a transaction or a database.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func balancesOf(ctx context.Context, q querier, accounts []store.Account) ([]store.Balance, error) {
	out := make([]store.Balance, len(accounts))
	for i, a := range accounts {
		b := &out[i]
		b.Account = a
		err := q.QueryRowContext(ctx, "SELECT spent_nanos, spent_tokens, reserved_nanos, reserved_tokens FROM ledger_balance WHERE kind = ? AND name = ? AND period = ?",
			a.Kind, a.Name, a.Period).Scan(&b.SpentNanos, &b.SpentTokens, &b.ReservedNanos, &b.ReservedTokens)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, err
		}
	}
	return out, nil
}

// move adds by to the accounts of a call.
func move(ctx context.Context, tx *sql.Tx, k *store.UsageKey, by store.Balance) error {
	for _, a := range k.Accounts() {
		if _, err := tx.ExecContext(ctx, `INSERT INTO ledger_balance (kind, name, period, spent_nanos, spent_tokens, reserved_nanos, reserved_tokens)
			VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (kind, name, period) DO UPDATE SET spent_nanos = min(spent_nanos, 8000000000000000000) + excluded.spent_nanos,
			spent_tokens = min(spent_tokens, 8000000000000000000) + excluded.spent_tokens, reserved_nanos = reserved_nanos + excluded.reserved_nanos,
			reserved_tokens = reserved_tokens + excluded.reserved_tokens`,
			a.Kind, a.Name, a.Period, by.SpentNanos, by.SpentTokens, by.ReservedNanos, by.ReservedTokens); err != nil {
			return err
		}
	}
	return nil
}

// book adds counts to the accounts and to the usage of a call, and takes released out of what is reserved.
func book(ctx context.Context, tx *sql.Tx, k *store.UsageKey, c store.Counts, released *store.Reservation) error {
	by := store.Balance{SpentNanos: c.Nanos, SpentTokens: c.Tokens}
	if released != nil {
		by.ReservedNanos, by.ReservedTokens = -released.Nanos, -released.Tokens()
	}
	if err := move(ctx, tx, k, by); err != nil {
		return err
	}
	args := []any{k.Day, k.Key, k.Group, k.Model}
	for _, p := range c.Fields() {
		args = append(args, *p)
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO ledger_usage (day, key, team, model, calls, estimated, unpriced, input_tokens, cached_tokens, cache_write_tokens, output_tokens, tokens, nanos)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (day, key, team, model) DO UPDATE SET calls = calls + excluded.calls,
		estimated = estimated + excluded.estimated, unpriced = unpriced + excluded.unpriced, input_tokens = min(input_tokens, 8000000000000000000) + excluded.input_tokens,
		cached_tokens = min(cached_tokens, 8000000000000000000) + excluded.cached_tokens, cache_write_tokens = min(cache_write_tokens, 8000000000000000000) + excluded.cache_write_tokens,
		output_tokens = min(output_tokens, 8000000000000000000) + excluded.output_tokens, tokens = min(tokens, 8000000000000000000) + excluded.tokens, nanos = min(nanos, 8000000000000000000) + excluded.nanos`, args...)
	return err
}

const reservationColumns = "id, state, expires, day, key, team, model, input_tokens, output_tokens, nanos"

func scanReservation(scan func(...any) error) (r store.Reservation, state string, err error) {
	var expires int64
	err = scan(&r.ID, &state, &expires, &r.Day, &r.Key, &r.Group, &r.Model, &r.InputTokens, &r.OutputTokens, &r.Nanos)
	r.Expires = time.Unix(0, expires).UTC()
	return r, state, err
}

// Settle implements [store.Ledger].
func (l *LedgerRecords) Settle(ctx context.Context, id string, used store.Counts) error {
	used = used.Bounded()
	_, err := l.db.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		r, state, err := scanReservation(tx.QueryRowContext(ctx, "SELECT "+reservationColumns+" FROM ledger_reservation WHERE id = ? AND state <> 'recorded'", id).Scan)
		if errors.Is(err, sql.ErrNoRows) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM ledger_reservation WHERE id = ?", id); err != nil {
			return 0, err
		}
		if state == "open" {
			return 0, book(ctx, tx, &r.UsageKey, used, &r)
		}
		charged := r.Charged()
		for _, p := range charged.Fields() {
			*p = -*p
		}
		charged.Add(used)
		return 0, book(ctx, tx, &r.UsageKey, charged, nil)
	})
	if err != nil {
		return failure(ctx, "sqlite: settle", err)
	}
	return nil
}

// Record implements [store.Ledger].
func (l *LedgerRecords) Record(ctx context.Context, id string, at time.Time, entries []store.UsageRow) error {
	const op = "sqlite: record the usage"
	if err := store.CheckEntries(op, id, entries); err != nil {
		return err
	}
	_, err := l.db.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		res, err := tx.ExecContext(ctx, "INSERT INTO ledger_reservation ("+reservationColumns+") VALUES (?, 'recorded', ?, '', '', '', '', 0, 0, 0) ON CONFLICT (id) DO NOTHING",
			id, at.UnixNano())
		if err != nil {
			return 0, err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return 0, err
		}
		for i := range entries {
			if err := book(ctx, tx, &entries[i].UsageKey, entries[i].Bounded(), nil); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	if err != nil {
		return failure(ctx, op, err)
	}
	return nil
}

// maxSwept bounds the reservations that one Sweep charges.
const maxSwept = 1000

// Sweep implements [store.Ledger].
func (l *LedgerRecords) Sweep(ctx context.Context, now time.Time) (int, error) {
	charged, err := l.db.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		due, err := expired(ctx, tx, now)
		if err != nil {
			return 0, err
		}
		for i := range due {
			r := &due[i]
			if _, err := tx.ExecContext(ctx, "UPDATE ledger_reservation SET state = 'charged' WHERE id = ?", r.ID); err != nil {
				return 0, err
			}
			if err := book(ctx, tx, &r.UsageKey, r.Charged(), r); err != nil {
				return 0, err
			}
		}
		first := store.LedgerBegins(now)
		for query, arg := range map[string]any{
			"DELETE FROM ledger_reservation WHERE state <> 'open' AND expires < ?": now.Add(-store.ChargedKept).UnixNano(),
			"DELETE FROM ledger_balance WHERE period < ?":                          first,
			"DELETE FROM ledger_usage WHERE day < ?":                               first,
		} {
			if _, err := tx.ExecContext(ctx, query, arg); err != nil {
				return 0, err
			}
		}
		return int64(len(due)), nil
	})
	if err != nil {
		return 0, failure(ctx, "sqlite: sweep the ledger", err)
	}
	return int(charged), nil
}

func expired(ctx context.Context, tx *sql.Tx, now time.Time) (due []store.Reservation, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT "+reservationColumns+" FROM ledger_reservation WHERE state = 'open' AND expires <= ? ORDER BY expires LIMIT ?", now.UnixNano(), maxSwept)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err returns the error that matters
	for rows.Next() {
		r, _, err := scanReservation(rows.Scan)
		if err != nil {
			return nil, err
		}
		due = append(due, r)
	}
	return due, rows.Err()
}

// Balances implements [store.Ledger].
func (l *LedgerRecords) Balances(ctx context.Context, accounts []store.Account) (out []store.Balance, err error) {
	if l.db.schema < ledgerVersion {
		out = make([]store.Balance, len(accounts))
		for i, a := range accounts {
			out[i].Account = a
		}
		return out, nil
	}
	const op = "sqlite: read the balances"
	tx, err := l.db.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // all of one moment
	if err != nil {
		return nil, failure(ctx, op, err)
	}
	defer func() { _ = tx.Rollback() }()
	if out, err = balancesOf(ctx, tx, accounts); err != nil {
		return nil, failure(ctx, op, err)
	}
	return out, nil
}

const (
	usageColumns = "SELECT u.day, key, team, model, calls, estimated, unpriced, input_tokens, cached_tokens, cache_write_tokens, output_tokens, tokens, nanos "
	usageOrder   = " ORDER BY u.day, key, team, model LIMIT ?3"
	usageOfAll   = usageColumns + "FROM ledger_usage u WHERE u.day >= ?1 AND u.day < ?2" + usageOrder
	// usageOfKey looks up the key on each day that has rows, and does not read those of other keys. SQLite joins in the order of
	// a CROSS JOIN.
	usageOfKey = `WITH RECURSIVE days(day) AS (
		SELECT min(day) FROM ledger_usage WHERE day >= ?1 AND day < ?2
		UNION ALL SELECT (SELECT min(l.day) FROM ledger_usage l WHERE l.day > days.day AND l.day < ?2) FROM days WHERE days.day IS NOT NULL
	) ` + usageColumns + "FROM days CROSS JOIN ledger_usage u ON u.day = days.day WHERE key = ?4" + usageOrder
	// afterDays sorts after every day.
	afterDays = "~"
)

// Usage implements [store.Ledger].
func (l *LedgerRecords) Usage(ctx context.Context, f *store.UsageFilter) ([]store.UsageRow, error) {
	const op = "sqlite: read the usage"
	if l.db.schema < ledgerVersion {
		return nil, nil
	}
	query, args := usageOfAll, []any{f.Since, cmp.Or(f.Until, afterDays), cmp.Or(f.Limit, -1)}
	if f.Key != "" {
		query, args = usageOfKey, append(args, f.Key)
	}
	rows, err := l.db.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, failure(ctx, op, err)
	}
	defer func() { _ = rows.Close() }() // Err returns the error that matters
	var out []store.UsageRow
	for rows.Next() {
		var u store.UsageRow
		to := []any{&u.Day, &u.Key, &u.Group, &u.Model}
		for _, p := range u.Fields() {
			to = append(to, p)
		}
		if err := rows.Scan(to...); err != nil {
			return nil, failure(ctx, op, err)
		}
		out = append(out, u)
	}
	if err := rows.Err(); err != nil {
		return nil, failure(ctx, op, err)
	}
	return out, nil
}

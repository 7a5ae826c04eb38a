package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/lathe-run/lathe/store"
)

var _ store.Ledger = (*Store)(nil)

// LedgerRecords is the part of a [Store] that implements [store.Ledger].
type LedgerRecords struct{ *store.LedgerRecords }

func newLedgerRecords(d *database) *LedgerRecords {
	return &LedgerRecords{store.NewLedgerRecords(func(ctx context.Context, op string, write bool, fn func(store.LedgerRows) error) error {
		op = "sqlite: " + op
		if !write {
			tx, err := d.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // all of one moment
			if err == nil {
				defer func() { _ = tx.Rollback() }()
				err = fn(&ledgerRows{ctx, tx, d.schema})
			}
			return failure(ctx, op, err)
		}
		_, err := d.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
			return 0, fn(&ledgerRows{ctx, tx, d.schema})
		})
		return failure(ctx, op, err)
	})}
}

// ledgerRows are the rows of a [store.Ledger] in a transaction. Sums are bounded by [store.MaxBooked]: SQLite makes a floating point
// number of one that overflows.
type ledgerRows struct {
	ctx    context.Context
	tx     *sql.Tx
	schema int
}

// ledgerVersion is the first version of the schema with a ledger.
const ledgerVersion = 9

const reservationColumns = "id, state, expires, day, key, team, model, input_tokens, output_tokens, nanos"

func scanReservation(scan func(...any) error) (r *store.Reservation, state string, err error) {
	r = &store.Reservation{}
	var expires int64
	err = scan(&r.ID, &state, &expires, &r.Day, &r.Key, &r.Group, &r.Model, &r.InputTokens, &r.OutputTokens, &r.Nanos)
	r.Expires = time.Unix(0, expires).UTC()
	return r, state, err
}

// Reservation implements [store.LedgerRows], as the methods below.
func (l *ledgerRows) Reservation(id string) (*store.Reservation, string, error) {
	r, state, err := scanReservation(l.tx.QueryRowContext(l.ctx, "SELECT "+reservationColumns+" FROM ledger_reservation WHERE id = ?", id).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, "", nil
	}
	return r, state, err
}

func (l *ledgerRows) PutReservation(r *store.Reservation, state string) error {
	if state == "" {
		_, err := l.tx.ExecContext(l.ctx, "DELETE FROM ledger_reservation WHERE id = ?", r.ID)
		return err
	}
	_, err := l.tx.ExecContext(l.ctx, "INSERT INTO ledger_reservation ("+reservationColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET state = excluded.state",
		r.ID, state, r.Expires.UnixNano(), r.Day, r.Key, r.Group, r.Model, r.InputTokens, r.OutputTokens, r.Nanos)
	return err
}

// maxSwept bounds the reservations that one Sweep charges.
const maxSwept = 1000

func (l *ledgerRows) Expired(now time.Time) (due []*store.Reservation, err error) {
	rows, err := l.tx.QueryContext(l.ctx, "SELECT "+reservationColumns+" FROM ledger_reservation WHERE state = 'open' AND expires <= ? ORDER BY expires LIMIT ?", now.UnixNano(), maxSwept)
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

func (l *ledgerRows) Balances(accounts []store.Account) ([]store.Balance, error) {
	out := make([]store.Balance, len(accounts))
	for i, a := range accounts {
		b := &out[i]
		if b.Account = a; l.schema < ledgerVersion {
			continue
		}
		err := l.tx.QueryRowContext(l.ctx, "SELECT spent_nanos, spent_tokens, reserved_nanos, reserved_tokens FROM ledger_balance WHERE kind = ? AND name = ? AND period = ?",
			a.Kind, a.Name, a.Period).Scan(&b.SpentNanos, &b.SpentTokens, &b.ReservedNanos, &b.ReservedTokens)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, err
		}
	}
	return out, nil
}

func (l *ledgerRows) Book(k *store.UsageKey, by store.Balance, c *store.Counts) error {
	for _, a := range k.Accounts() {
		if _, err := l.tx.ExecContext(l.ctx, `INSERT INTO ledger_balance (kind, name, period, spent_nanos, spent_tokens, reserved_nanos, reserved_tokens)
			VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (kind, name, period) DO UPDATE SET spent_nanos = min(spent_nanos, 8000000000000000000) + excluded.spent_nanos,
			spent_tokens = min(spent_tokens, 8000000000000000000) + excluded.spent_tokens, reserved_nanos = reserved_nanos + excluded.reserved_nanos,
			reserved_tokens = reserved_tokens + excluded.reserved_tokens`,
			a.Kind, a.Name, a.Period, by.SpentNanos, by.SpentTokens, by.ReservedNanos, by.ReservedTokens); err != nil {
			return err
		}
	}
	if c == nil {
		return nil
	}
	args := []any{k.Day, k.Key, k.Group, k.Model}
	for _, p := range c.Fields() {
		args = append(args, *p)
	}
	_, err := l.tx.ExecContext(l.ctx, `INSERT INTO ledger_usage (day, key, team, model, calls, estimated, unpriced, input_tokens, cached_tokens, cache_write_tokens, output_tokens, tokens, nanos)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (day, key, team, model) DO UPDATE SET calls = calls + excluded.calls,
		estimated = estimated + excluded.estimated, unpriced = unpriced + excluded.unpriced, input_tokens = min(input_tokens, 8000000000000000000) + excluded.input_tokens,
		cached_tokens = min(cached_tokens, 8000000000000000000) + excluded.cached_tokens, cache_write_tokens = min(cache_write_tokens, 8000000000000000000) + excluded.cache_write_tokens,
		output_tokens = min(output_tokens, 8000000000000000000) + excluded.output_tokens, tokens = min(tokens, 8000000000000000000) + excluded.tokens, nanos = min(nanos, 8000000000000000000) + excluded.nanos`, args...)
	return err
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

func (l *ledgerRows) Usage(f *store.UsageFilter) (out []store.UsageRow, err error) {
	if l.schema < ledgerVersion {
		return nil, nil
	}
	query, args := usageOfAll, []any{f.Since, cmp.Or(f.Until, afterDays), cmp.Or(f.Limit, -1)}
	if f.Key != "" {
		query, args = usageOfKey, append(args, f.Key)
	}
	rows, err := l.tx.QueryContext(l.ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err returns the error that matters
	for rows.Next() {
		var u store.UsageRow
		to := []any{&u.Day, &u.Key, &u.Group, &u.Model}
		for _, p := range u.Fields() {
			to = append(to, p)
		}
		if err := rows.Scan(to...); err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	return out, rows.Err()
}

func (l *ledgerRows) Forget(expired time.Time, first string) error {
	for query, arg := range map[string]any{
		"DELETE FROM ledger_reservation WHERE state <> 'open' AND expires < ?": expired.UnixNano(),
		"DELETE FROM ledger_balance WHERE period < ?":                          first,
		"DELETE FROM ledger_usage WHERE day < ?":                               first,
	} {
		if _, err := l.tx.ExecContext(l.ctx, query, arg); err != nil {
			return err
		}
	}
	return nil
}

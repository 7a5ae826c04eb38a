package postgres

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe/store"
)

// A ledger implements [store.Ledger]. Each change of an amount is one statement, which locks the balances of its accounts in the order of
// kind, name and period, and then rows of usage. Further statements of Reserve and Sweep only add rows of zero and delete rows that have
// expired. Sums are limited by [store.MaxBooked], because an overflow is an error.
type ledger struct{ *database }

// accountColumns returns the columns of the accounts: their kinds, names and periods.
func accountColumns(accounts []store.Account) (kinds, names, periods []string) {
	for _, a := range accounts {
		kinds, names, periods = append(kinds, a.Kind), append(names, a.Name), append(periods, a.Period)
	}
	return kinds, names, periods
}

// Reserve implements [store.Ledger].
func (l *ledger) Reserve(ctx context.Context, r *store.Reservation) error {
	const op = "postgres: reserve"
	if err := store.CheckReservation(op, r); err != nil {
		return err
	}
	kinds, names, periods := accountColumns(r.Accounts())
	var nanos, tokens []int64 // the limits of these accounts
	for _, b := range r.Bounds() {
		nanos, tokens = append(nanos, b.Limit.Nanos), append(tokens, b.Limit.Tokens)
	}
	args := []any{kinds, names, periods, nanos, tokens, r.Nanos, r.Tokens(), r.ID, r.Expires, r.Day, r.Key, r.Group, r.Model, r.InputTokens, r.OutputTokens}
	var balances []store.Balance
	var reserved bool
	err := l.retry(ctx, func(ctx context.Context) (err error) {
		if balances, reserved, err = l.tryReserve(ctx, args); err != nil || len(balances) == len(kinds) {
			return err
		}
		if _, err := l.pool.Exec(ctx, openStatement, kinds, names, periods); err != nil { // the first call of a day or month
			return err
		}
		if balances, reserved, err = l.tryReserve(ctx, args); err != nil || len(balances) == len(kinds) {
			return err
		}
		return errors.New("the rows of the budget are gone as soon as they are made")
	})
	if err != nil {
		return failure(ctx, op, err)
	}
	if reserved {
		return nil
	}
	if err := store.OverBudget(op, r, balances); err != nil {
		return err
	}
	return failure(ctx, op, errors.New("the budget was not reserved"))
}

// tryReserve executes reserveStatement. It reserves nothing if it returns fewer balances than there are accounts.
func (l *ledger) tryReserve(ctx context.Context, args []any) (balances []store.Balance, reserved bool, err error) {
	rows, err := l.pool.Query(ctx, reserveStatement, args...)
	if err != nil {
		return nil, false, err
	}
	var b store.Balance
	_, err = pgx.ForEachRow(rows, []any{&b.Kind, &b.Name, &b.Period, &b.SpentNanos, &b.SpentTokens, &b.ReservedNanos, &b.ReservedTokens, &reserved}, func() error {
		balances = append(balances, b)
		return nil
	})
	return balances, reserved, err
}

// Settle implements [store.Ledger].
func (l *ledger) Settle(ctx context.Context, id string, used store.Counts) error {
	used = used.Bounded()
	args := []any{id}
	for _, p := range used.Fields() {
		args = append(args, *p)
	}
	return l.exec(ctx, "postgres: settle", settleStatement, args...)
}

// Record implements [store.Ledger].
func (l *ledger) Record(ctx context.Context, id string, at time.Time, entries []store.UsageRow) error {
	const op = "postgres: record the usage"
	if err := store.CheckEntries(op, id, entries); err != nil {
		return err
	}
	// One array for each column, in the order of the parameters.
	words := make([][]string, 4)
	counts := make([][]int64, len((&store.Counts{}).Fields()))
	for _, e := range entries {
		for j, w := range []string{e.Day, e.Key, e.Group, e.Model} {
			words[j] = append(words[j], w)
		}
		bounded := e.Bounded()
		for j, p := range bounded.Fields() {
			counts[j] = append(counts[j], *p)
		}
	}
	args := []any{id, at}
	for _, w := range words {
		args = append(args, w)
	}
	for _, c := range counts {
		args = append(args, c)
	}
	return l.exec(ctx, op, recordStatement, args...)
}

// maxSwept is the maximum number of reservations that one Sweep charges.
const maxSwept = 1000

// Sweep implements [store.Ledger].
func (l *ledger) Sweep(ctx context.Context, now time.Time) (charged int, err error) {
	err = l.retry(ctx, func(ctx context.Context) error {
		if err := l.pool.QueryRow(ctx, sweepStatement, now, maxSwept).Scan(&charged); err != nil {
			return err
		}
		if _, err := l.pool.Exec(ctx, "DELETE FROM ledger_reservation WHERE state <> 'open' AND expires < $1", now.Add(-store.ChargedKept)); err != nil {
			return err
		}
		first := store.LedgerBegins(now)
		if _, err := l.pool.Exec(ctx, "DELETE FROM ledger_balance WHERE period < $1", first); err != nil {
			return err
		}
		_, err := l.pool.Exec(ctx, "DELETE FROM ledger_usage WHERE day < $1", first)
		return err
	})
	if err != nil {
		return 0, failure(ctx, "postgres: sweep the ledger", err)
	}
	return charged, nil
}

// Balances implements [store.Ledger].
func (l *ledger) Balances(ctx context.Context, accounts []store.Account) ([]store.Balance, error) {
	kinds, names, periods := accountColumns(accounts)
	return collect(ctx, l.database, "postgres: read the balances", pgx.RowToStructByPos[store.Balance], `SELECT w.kind, w.name, w.period, coalesce(spent_nanos, 0), coalesce(spent_tokens, 0), coalesce(reserved_nanos, 0), coalesce(reserved_tokens, 0)
		FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS w(kind, name, period, n) LEFT JOIN ledger_balance b USING (kind, name, period) ORDER BY w.n`,
		kinds, names, periods)
}

const (
	// The columns are in the order of the fields of store.UsageRow.
	usageColumns = "SELECT u.day, key, team, model, calls, estimated, unpriced, input_tokens, cached_tokens, cache_write_tokens, output_tokens, tokens, nanos "
	usageOrder   = " ORDER BY u.day, key, team, model LIMIT nullif($3::int, 0)"
	usageOfAll   = usageColumns + "FROM ledger_usage u WHERE u.day >= $1 AND u.day < $2" + usageOrder
	// usageOfKey looks up the key on each day with rows, and does not read rows of other keys. OFFSET 0 forces a look-up per day,
	// regardless of the statistics.
	usageOfKey = `WITH RECURSIVE days(day) AS (
		SELECT min(day) FROM ledger_usage WHERE day >= $1 AND day < $2
		UNION ALL SELECT (SELECT min(l.day) FROM ledger_usage l WHERE l.day > days.day AND l.day < $2) FROM days WHERE days.day IS NOT NULL
	) ` + usageColumns + "FROM days, LATERAL (SELECT * FROM ledger_usage l WHERE l.day = days.day AND l.key = $4 OFFSET 0) u" + usageOrder
	// afterDays sorts after every day.
	afterDays = "~"
)

// Usage implements [store.Ledger].
func (l *ledger) Usage(ctx context.Context, f *store.UsageFilter) ([]store.UsageRow, error) {
	query, args := usageOfAll, []any{f.Since, cmp.Or(f.Until, afterDays), f.Limit}
	if f.Key != "" {
		query, args = usageOfKey, append(args, f.Key)
	}
	return collect(ctx, l.database, "postgres: read the usage", pgx.RowToStructByPos[store.UsageRow], query, args...)
}

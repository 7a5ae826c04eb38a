package postgres

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe/store"
)

// A ledger implements [store.Ledger]. Each change is one statement, which locks the balances of its accounts in the order of kind, name and
// period, and then rows of usage. Sums are limited by [store.MaxBooked], because an overflow is an error.
type ledger struct{ *database }

// In the statements, 8000000000000000000 is [store.MaxBooked], and 1000000000000000000 is the maximum that is added to a sum at once. A
// reservation is open, charged or recorded: see PutReservation of [store.Rows].
//
// The statements that book amounts consist of the same parts: r are the reservations, e the rows of usage to add, sums the amounts to book by
// account, held the balances of these accounts, now locked, and moved the balances after the change.
const (
	// openStatement creates the missing rows of accounts, so that the next statement can lock them.
	openStatement = `INSERT INTO ledger_balance (kind, name, period) SELECT * FROM unnest($1::text[], $2::text[], $3::text[]) AS w(kind, name, period)
	ORDER BY 1, 2, 3 ON CONFLICT (kind, name, period) DO NOTHING`

	// reserveStatement adds the amount to the reserved amounts, unless that exceeds a limit, and returns the rows of held. held waits for
	// the locks, so it contains the newest version of rows that another transaction has changed.
	reserveStatement = `WITH want AS (
	SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[]) AS w(kind, name, period, max_nanos, max_tokens)
), held AS MATERIALIZED (
	SELECT b.* FROM ledger_balance b WHERE (b.kind, b.name, b.period) IN (SELECT kind, name, period FROM want) ORDER BY b.kind, b.name, b.period FOR NO KEY UPDATE
), fits AS MATERIALIZED (
	SELECT count(*) = (SELECT count(*) FROM want) AND NOT EXISTS (SELECT FROM ledger_reservation WHERE id = $8) AND coalesce(bool_and(
		(max_nanos < 0 OR spent_nanos + reserved_nanos + $6 <= max_nanos) AND (max_tokens < 0 OR spent_tokens + reserved_tokens + $7 <= max_tokens)), false) AS yes
	FROM held JOIN want USING (kind, name, period)
), added AS (
	UPDATE ledger_balance b SET reserved_nanos = b.reserved_nanos + $6, reserved_tokens = b.reserved_tokens + $7
	FROM held h WHERE b.kind = h.kind AND b.name = h.name AND b.period = h.period AND (SELECT yes FROM fits)
	RETURNING b.kind
), kept AS (
	INSERT INTO ledger_reservation (id, state, expires, day, key, team, model, input_tokens, output_tokens, nanos)
	SELECT $8, 'open', $9, $10, $11, $12, $13, $14, $15, $6 WHERE (SELECT count(*) FROM added) > 0
	RETURNING id
) SELECT kind, name, period, spent_nanos, spent_tokens, reserved_nanos, reserved_tokens,
	EXISTS (SELECT FROM kept) OR EXISTS (SELECT FROM ledger_reservation WHERE id = $8) FROM held`

	// accountsOf joins each row of r with its accounts, as store.UsageKey.Accounts returns them.
	accountsOf = `LATERAL (VALUES ('group', r.team, left(r.day, 7)), ('group', r.team, r.day), ('key', r.key, left(r.day, 7)), ('key', r.key, r.day))
		AS a(kind, name, period) WHERE (a.kind <> 'group' OR r.team <> '')`

	// addUsage adds the rows of e to the sums of their day, key, group and model. The condition on moved is always true: it makes the
	// balances change first.
	addUsage = `INSERT INTO ledger_usage AS u (day, key, team, model, calls, estimated, unpriced, input_tokens, cached_tokens, cache_write_tokens, output_tokens, tokens, nanos)
	SELECT day, key, team, model, sum(calls)::bigint, sum(estimated)::bigint, sum(unpriced)::bigint, least(sum(input_tokens), 1000000000000000000)::bigint, least(sum(cached_tokens), 1000000000000000000)::bigint,
		least(sum(cache_write_tokens), 1000000000000000000)::bigint, least(sum(output_tokens), 1000000000000000000)::bigint, least(sum(tokens), 1000000000000000000)::bigint, least(sum(nanos), 1000000000000000000)::bigint
	FROM e WHERE (SELECT count(*) FROM moved) >= 0 GROUP BY day, key, team, model ORDER BY day, key, team, model
	ON CONFLICT (day, key, team, model) DO UPDATE SET calls = u.calls + excluded.calls, estimated = u.estimated + excluded.estimated,
		unpriced = u.unpriced + excluded.unpriced, input_tokens = least(u.input_tokens, 8000000000000000000) + excluded.input_tokens, cached_tokens = least(u.cached_tokens, 8000000000000000000) + excluded.cached_tokens,
		cache_write_tokens = least(u.cache_write_tokens, 8000000000000000000) + excluded.cache_write_tokens, output_tokens = least(u.output_tokens, 8000000000000000000) + excluded.output_tokens,
		tokens = least(u.tokens, 8000000000000000000) + excluded.tokens, nanos = least(u.nanos, 8000000000000000000) + excluded.nanos`

	// lockAndMove changes the balances by the amounts in sums. It locks them in the same order as all statements.
	lockAndMove = `held AS MATERIALIZED (
	SELECT b.kind, b.name, b.period FROM ledger_balance b WHERE (b.kind, b.name, b.period) IN (SELECT kind, name, period FROM sums)
	ORDER BY b.kind, b.name, b.period FOR NO KEY UPDATE
), moved AS (
	UPDATE ledger_balance b SET spent_nanos = least(b.spent_nanos, 8000000000000000000) + s.spent_nanos, spent_tokens = least(b.spent_tokens, 8000000000000000000) + s.spent_tokens,
		reserved_nanos = b.reserved_nanos - s.released_nanos, reserved_tokens = b.reserved_tokens - s.released_tokens
	FROM held h JOIN sums s USING (kind, name, period) WHERE b.kind = h.kind AND b.name = h.name AND b.period = h.period
	RETURNING b.kind
)`

	// settleStatement replaces a reservation by the counts $2 to $10, in the order of [store.Counts].Fields. done is 1 for a charged reservation:
	// its amount is booked already, and is subtracted from the counts.
	settleStatement = `WITH r AS (
	DELETE FROM ledger_reservation WHERE id = $1 AND state <> 'recorded' RETURNING *
), e AS (
	SELECT day, key, team, model, $2::bigint - done AS calls, $3::bigint - done AS estimated, $4::bigint AS unpriced, $5::bigint - done * input_tokens AS input_tokens,
		$6::bigint AS cached_tokens, $7::bigint AS cache_write_tokens, $8::bigint - done * output_tokens AS output_tokens,
		$9::bigint - done * (input_tokens + output_tokens) AS tokens, $10::bigint - done * nanos AS nanos,
		(1 - done) * nanos AS released_nanos, (1 - done) * (input_tokens + output_tokens) AS released_tokens
	FROM (SELECT r.*, CASE state WHEN 'charged' THEN 1 ELSE 0 END AS done FROM r) r
), sums AS (
	SELECT a.kind, a.name, a.period, r.nanos AS spent_nanos, r.tokens AS spent_tokens, r.released_nanos, r.released_tokens FROM e r, ` + accountsOf + `
), ` + lockAndMove + ` ` + addUsage

	// sweepStatement charges the reservations that have expired at $1. It skips those that are being settled.
	sweepStatement = `WITH due AS (
	SELECT id FROM ledger_reservation WHERE state = 'open' AND expires <= $1 ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED
), r AS (
	UPDATE ledger_reservation x SET state = 'charged' FROM due WHERE x.id = due.id RETURNING x.*
), e AS (
	SELECT day, key, team, model, 1::bigint AS calls, 1::bigint AS estimated, 0::bigint AS unpriced, input_tokens, 0::bigint AS cached_tokens,
		0::bigint AS cache_write_tokens, output_tokens, input_tokens + output_tokens AS tokens, nanos FROM r
), sums AS (
	SELECT a.kind, a.name, a.period, sum(r.nanos)::bigint AS spent_nanos, sum(r.tokens)::bigint AS spent_tokens, sum(r.nanos)::bigint AS released_nanos,
		sum(r.tokens)::bigint AS released_tokens FROM e r, ` + accountsOf + ` GROUP BY 1, 2, 3
), ` + lockAndMove + `, counted AS (` + addUsage + `) SELECT count(*) FROM r`

	// recordStatement adds the entries with the columns $3 to $15, unless entries with the id $1 were added before.
	recordStatement = `WITH mark AS (
	INSERT INTO ledger_reservation (id, state, expires, day, key, team, model, input_tokens, output_tokens, nanos)
	VALUES ($1, 'recorded', $2, '', '', '', '', 0, 0, 0) ON CONFLICT (id) DO NOTHING RETURNING id
), e AS (
	SELECT * FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[],
		$13::bigint[], $14::bigint[], $15::bigint[]) AS w(day, key, team, model, calls, estimated, unpriced, input_tokens, cached_tokens, cache_write_tokens,
		output_tokens, tokens, nanos) WHERE EXISTS (SELECT FROM mark)
), moved AS (
	INSERT INTO ledger_balance AS b (kind, name, period, spent_nanos, spent_tokens)
	SELECT a.kind, a.name, a.period, least(sum(r.nanos), 1000000000000000000)::bigint, least(sum(r.tokens), 1000000000000000000)::bigint FROM e r, ` + accountsOf + ` GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
	ON CONFLICT (kind, name, period) DO UPDATE SET spent_nanos = least(b.spent_nanos, 8000000000000000000) + excluded.spent_nanos,
		spent_tokens = least(b.spent_tokens, 8000000000000000000) + excluded.spent_tokens
	RETURNING b.kind
) ` + addUsage
)

// Reserve implements [store.Ledger].
func (l *ledger) Reserve(ctx context.Context, r *store.Reservation) error {
	const op = "postgres: reserve"
	if err := store.CheckReservation(op, r); err != nil {
		return err
	}
	var kinds, names, periods []string
	var nanos, tokens []int64
	for _, b := range r.Bounds() {
		kinds, names, periods = append(kinds, b.Kind), append(names, b.Name), append(periods, b.Period)
		nanos, tokens = append(nanos, b.Limit.Nanos), append(tokens, b.Limit.Tokens)
	}
	var balances []store.Balance
	var reserved bool
	err := l.retry(ctx, func(ctx context.Context) error {
		for range 2 { // a second time after the rows of a new day were created
			rows, err := l.pool.Query(ctx, reserveStatement, kinds, names, periods, nanos, tokens, r.Nanos, r.Tokens(), r.ID, r.Expires, r.Day, r.Key, r.Group, r.Model,
				r.InputTokens, r.OutputTokens)
			if err != nil {
				return err
			}
			balances, reserved = balances[:0], false
			var b store.Balance
			_, err = pgx.ForEachRow(rows, []any{&b.Kind, &b.Name, &b.Period, &b.SpentNanos, &b.SpentTokens, &b.ReservedNanos, &b.ReservedTokens, &reserved}, func() error {
				balances = append(balances, b)
				return nil
			})
			if err != nil || len(balances) == len(kinds) {
				return err
			}
			if _, err := l.pool.Exec(ctx, openStatement, kinds, names, periods); err != nil {
				return err
			}
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
	var kinds, names, periods []string
	for _, a := range accounts {
		kinds, names, periods = append(kinds, a.Kind), append(names, a.Name), append(periods, a.Period)
	}
	return collect(ctx, l.database, "postgres: read the balances", func(r pgx.CollectableRow) (b store.Balance, err error) {
		err = r.Scan(&b.Kind, &b.Name, &b.Period, &b.SpentNanos, &b.SpentTokens, &b.ReservedNanos, &b.ReservedTokens)
		return b, err
	}, `SELECT w.kind, w.name, w.period, coalesce(spent_nanos, 0), coalesce(spent_tokens, 0), coalesce(reserved_nanos, 0), coalesce(reserved_tokens, 0)
		FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS w(kind, name, period, n) LEFT JOIN ledger_balance b USING (kind, name, period) ORDER BY w.n`,
		kinds, names, periods)
}

const (
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
	return collect(ctx, l.database, "postgres: read the usage", func(r pgx.CollectableRow) (u store.UsageRow, err error) {
		to := []any{&u.Day, &u.Key, &u.Group, &u.Model}
		for _, p := range u.Fields() {
			to = append(to, p)
		}
		err = r.Scan(to...)
		return u, err
	}, query, args...)
}

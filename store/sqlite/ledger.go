package sqlite

import (
	"cmp"
	"encoding/json"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

const reservationColumns = "id, state, expires, day, key, team, model, input_tokens, output_tokens, nanos"

func scanReservation(scan scanner) (r *store.Reservation, state string, err error) {
	r = &store.Reservation{}
	var expires int64
	err = scan(&r.ID, &state, &expires, &r.Day, &r.Key, &r.Group, &r.Model, &r.InputTokens, &r.OutputTokens, &r.Nanos)
	r.Expires = time.Unix(0, expires).UTC()
	return r, state, err
}

func (r *rows) Reservation(id string) (*store.Reservation, string, error) {
	found, state, err := scanReservation(r.one("SELECT "+reservationColumns+" FROM ledger_reservation WHERE id = ?", id))
	if errors.Is(err, lathe.ErrNotFound) {
		return nil, "", nil
	}
	return found, state, err
}

func (r *rows) PutReservation(v *store.Reservation, state string) error {
	if state == "" {
		return r.put("DELETE FROM ledger_reservation WHERE id = ?", v.ID)
	}
	return r.put("INSERT INTO ledger_reservation ("+reservationColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET state = excluded.state",
		v.ID, state, v.Expires.UnixNano(), v.Day, v.Key, v.Group, v.Model, v.InputTokens, v.OutputTokens, v.Nanos)
}

// maxSwept is the maximum number of reservations that one Sweep charges.
const maxSwept = 1000

func (r *rows) ExpiredReservations(now time.Time) ([]*store.Reservation, error) {
	return collect(r.ctx, r.db, func(scan scanner) (*store.Reservation, error) {
		v, _, err := scanReservation(scan)
		return v, err
	}, "SELECT "+reservationColumns+" FROM ledger_reservation WHERE state = 'open' AND expires <= ? ORDER BY expires LIMIT ?", now.UnixNano(), maxSwept)
}

// Balances implements [store.Rows] with one statement for all accounts.
func (r *rows) Balances(accounts []store.Account) ([]store.Balance, error) {
	if r.schema < ledgerVersion {
		out := make([]store.Balance, len(accounts))
		for i := range out {
			out[i].Account = accounts[i]
		}
		return out, nil
	}
	list, err := json.Marshal(accounts)
	if err != nil {
		return nil, err
	}
	return collect(r.ctx, r.db, func(scan scanner) (b store.Balance, err error) {
		err = scan(&b.Kind, &b.Name, &b.Period, &b.SpentNanos, &b.SpentTokens, &b.ReservedNanos, &b.ReservedTokens)
		return b, err
	}, `SELECT w.value ->> 'Kind', w.value ->> 'Name', w.value ->> 'Period', coalesce(spent_nanos, 0), coalesce(spent_tokens, 0), coalesce(reserved_nanos, 0), coalesce(reserved_tokens, 0)
		FROM json_each(?) w LEFT JOIN ledger_balance b ON b.kind = w.value ->> 'Kind' AND b.name = w.value ->> 'Name' AND b.period = w.value ->> 'Period' ORDER BY w.key`, string(list))
}

// Book implements [store.Rows]. In the statements, 8000000000000000000 is [store.MaxBooked].
func (r *rows) Book(k *store.UsageKey, by store.Balance, c *store.Counts) error {
	for _, a := range k.Accounts() {
		if err := r.put(`INSERT INTO ledger_balance (kind, name, period, spent_nanos, spent_tokens, reserved_nanos, reserved_tokens)
			VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (kind, name, period) DO UPDATE SET
			spent_nanos = min(spent_nanos, 8000000000000000000) + excluded.spent_nanos,
			spent_tokens = min(spent_tokens, 8000000000000000000) + excluded.spent_tokens,
			reserved_nanos = reserved_nanos + excluded.reserved_nanos,
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
	return r.put(`INSERT INTO ledger_usage (day, key, team, model, calls, estimated, unpriced, input_tokens, cached_tokens, cache_write_tokens, output_tokens, tokens, nanos)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (day, key, team, model) DO UPDATE SET
		calls = calls + excluded.calls,
		estimated = estimated + excluded.estimated,
		unpriced = unpriced + excluded.unpriced,
		input_tokens = min(input_tokens, 8000000000000000000) + excluded.input_tokens,
		cached_tokens = min(cached_tokens, 8000000000000000000) + excluded.cached_tokens,
		cache_write_tokens = min(cache_write_tokens, 8000000000000000000) + excluded.cache_write_tokens,
		output_tokens = min(output_tokens, 8000000000000000000) + excluded.output_tokens,
		tokens = min(tokens, 8000000000000000000) + excluded.tokens,
		nanos = min(nanos, 8000000000000000000) + excluded.nanos`, args...)
}

const (
	usageColumns = "SELECT u.day, key, team, model, calls, estimated, unpriced, input_tokens, cached_tokens, cache_write_tokens, output_tokens, tokens, nanos "
	usageOrder   = " ORDER BY u.day, key, team, model LIMIT ?3"
	usageOfAll   = usageColumns + "FROM ledger_usage u WHERE u.day >= ?1 AND u.day < ?2" + usageOrder
	// usageOfKey looks up the key on each day with rows, and does not read rows of other keys. SQLite joins in the order of a CROSS JOIN.
	usageOfKey = `WITH RECURSIVE days(day) AS (
		SELECT min(day) FROM ledger_usage WHERE day >= ?1 AND day < ?2
		UNION ALL SELECT (SELECT min(l.day) FROM ledger_usage l WHERE l.day > days.day AND l.day < ?2) FROM days WHERE days.day IS NOT NULL
	) ` + usageColumns + "FROM days CROSS JOIN ledger_usage u ON u.day = days.day WHERE key = ?4" + usageOrder
	// afterDays sorts after every day.
	afterDays = "~"
)

func (r *rows) Usage(f *store.UsageFilter) ([]store.UsageRow, error) {
	if r.schema < ledgerVersion {
		return nil, nil
	}
	query, args := usageOfAll, []any{f.Since, cmp.Or(f.Until, afterDays), cmp.Or(f.Limit, -1)}
	if f.Key != "" {
		query, args = usageOfKey, append(args, f.Key)
	}
	return collect(r.ctx, r.db, func(scan scanner) (u store.UsageRow, err error) {
		to := []any{&u.Day, &u.Key, &u.Group, &u.Model}
		for _, p := range u.Fields() {
			to = append(to, p)
		}
		err = scan(to...)
		return u, err
	}, query, args...)
}

func (r *rows) ForgetLedger(expired time.Time, first string) error {
	for query, arg := range map[string]any{
		"DELETE FROM ledger_reservation WHERE state <> 'open' AND expires < ?": expired.UnixNano(),
		"DELETE FROM ledger_balance WHERE period < ?":                          first,
		"DELETE FROM ledger_usage WHERE day < ?":                               first,
	} {
		if err := r.put(query, arg); err != nil {
			return err
		}
	}
	return nil
}

package postgres

// A reservation is open until Settle replaces it by the actual usage. If it expires first, it is charged: its amount is booked as an estimate,
// and a later Settle books only the difference. Record stores its ID as a recorded reservation, so that a repetition adds nothing.
//
// The statements that book amounts consist of the same parts: used are the rows of usage to add, sums the amounts to book by account, held
// the balances of these accounts, now locked, and moved the balances after the change. 8000000000000000000 is [store.MaxBooked], and
// 1000000000000000000 is the maximum that is added to a sum at once.

// openStatement creates the missing rows of accounts, so that the next statement can lock them.
const openStatement = `INSERT INTO ledger_balance (kind, name, period) SELECT * FROM unnest($1::text[], $2::text[], $3::text[]) AS w(kind, name, period)
	ORDER BY 1, 2, 3 ON CONFLICT (kind, name, period) DO NOTHING`

// reserveStatement adds the amount ($6 nano-dollars, $7 tokens) to the reserved amounts of the accounts $1 to $3, unless that exceeds one of
// their limits, $4 and $5. It returns the rows of held, and whether the reservation exists. held waits for the locks, so it contains the
// newest version of rows that another transaction has changed.
const reserveStatement = `WITH want AS (
	SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[]) AS w(kind, name, period, max_nanos, max_tokens)
), held AS MATERIALIZED (
	SELECT b.* FROM ledger_balance b WHERE (b.kind, b.name, b.period) IN (SELECT kind, name, period FROM want)
	ORDER BY b.kind, b.name, b.period FOR NO KEY UPDATE
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

// usedByAccount joins each row of used with its accounts, as [store.UsageKey.Accounts] returns them.
const usedByAccount = `used u, LATERAL (
		VALUES ('group', u.team, left(u.day, 7)), ('group', u.team, u.day), ('key', u.key, left(u.day, 7)), ('key', u.key, u.day)
	) AS a(kind, name, period) WHERE (a.kind <> 'group' OR u.team <> '')`

// addUsage adds the rows of used to the sums of their day, key, group and model. The condition on moved is always true: it makes the
// balances change first.
const addUsage = `INSERT INTO ledger_usage AS u (day, key, team, model, calls, estimated, unpriced, input_tokens, cached_tokens, cache_write_tokens,
		output_tokens, tokens, nanos)
	SELECT day, key, team, model, sum(calls)::bigint, sum(estimated)::bigint, sum(unpriced)::bigint,
		least(sum(input_tokens), 1000000000000000000)::bigint,
		least(sum(cached_tokens), 1000000000000000000)::bigint,
		least(sum(cache_write_tokens), 1000000000000000000)::bigint,
		least(sum(output_tokens), 1000000000000000000)::bigint,
		least(sum(tokens), 1000000000000000000)::bigint,
		least(sum(nanos), 1000000000000000000)::bigint
	FROM used WHERE (SELECT count(*) FROM moved) >= 0 GROUP BY day, key, team, model ORDER BY day, key, team, model
	ON CONFLICT (day, key, team, model) DO UPDATE SET calls = u.calls + excluded.calls, estimated = u.estimated + excluded.estimated,
		unpriced = u.unpriced + excluded.unpriced,
		input_tokens = least(u.input_tokens, 8000000000000000000) + excluded.input_tokens,
		cached_tokens = least(u.cached_tokens, 8000000000000000000) + excluded.cached_tokens,
		cache_write_tokens = least(u.cache_write_tokens, 8000000000000000000) + excluded.cache_write_tokens,
		output_tokens = least(u.output_tokens, 8000000000000000000) + excluded.output_tokens,
		tokens = least(u.tokens, 8000000000000000000) + excluded.tokens,
		nanos = least(u.nanos, 8000000000000000000) + excluded.nanos`

// lockAndMove changes the balances by the amounts in sums. It locks them in the same order as all statements.
const lockAndMove = `held AS MATERIALIZED (
	SELECT b.kind, b.name, b.period FROM ledger_balance b WHERE (b.kind, b.name, b.period) IN (SELECT kind, name, period FROM sums)
	ORDER BY b.kind, b.name, b.period FOR NO KEY UPDATE
), moved AS (
	UPDATE ledger_balance b SET spent_nanos = least(b.spent_nanos, 8000000000000000000) + s.spent_nanos,
		spent_tokens = least(b.spent_tokens, 8000000000000000000) + s.spent_tokens,
		reserved_nanos = b.reserved_nanos - s.released_nanos, reserved_tokens = b.reserved_tokens - s.released_tokens
	FROM held h JOIN sums s USING (kind, name, period) WHERE b.kind = h.kind AND b.name = h.name AND b.period = h.period
	RETURNING b.kind
)`

// settleStatement replaces the reservation $1 by the counts $2 to $10, in the order of [store.Counts].Fields. booked is 1 for a charged
// reservation: its amount is subtracted from the counts, and nothing is released.
const settleStatement = `WITH reservation AS (
	DELETE FROM ledger_reservation WHERE id = $1 AND state <> 'recorded' RETURNING *, CASE state WHEN 'charged' THEN 1 ELSE 0 END AS booked
), used AS (
	SELECT day, key, team, model, $2::bigint - booked AS calls, $3::bigint - booked AS estimated, $4::bigint AS unpriced,
		$5::bigint - booked * input_tokens AS input_tokens, $6::bigint AS cached_tokens, $7::bigint AS cache_write_tokens,
		$8::bigint - booked * output_tokens AS output_tokens, $9::bigint - booked * (input_tokens + output_tokens) AS tokens, $10::bigint - booked * nanos AS nanos,
		(1 - booked) * nanos AS released_nanos, (1 - booked) * (input_tokens + output_tokens) AS released_tokens
	FROM reservation
), sums AS (
	SELECT a.kind, a.name, a.period, u.nanos AS spent_nanos, u.tokens AS spent_tokens, u.released_nanos, u.released_tokens FROM ` + usedByAccount + `
), ` + lockAndMove + ` ` + addUsage

// sweepStatement charges at most $2 reservations that have expired at $1. It skips those that are being settled.
const sweepStatement = `WITH due AS (
	SELECT id FROM ledger_reservation WHERE state = 'open' AND expires <= $1 ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED
), reservation AS (
	UPDATE ledger_reservation x SET state = 'charged' FROM due WHERE x.id = due.id RETURNING x.*
), used AS (
	SELECT day, key, team, model, 1::bigint AS calls, 1::bigint AS estimated, 0::bigint AS unpriced, input_tokens, 0::bigint AS cached_tokens,
		0::bigint AS cache_write_tokens, output_tokens, input_tokens + output_tokens AS tokens, nanos FROM reservation
), sums AS (
	SELECT a.kind, a.name, a.period, sum(u.nanos)::bigint AS spent_nanos, sum(u.tokens)::bigint AS spent_tokens, sum(u.nanos)::bigint AS released_nanos,
		sum(u.tokens)::bigint AS released_tokens FROM ` + usedByAccount + ` GROUP BY 1, 2, 3
), ` + lockAndMove + `, counted AS (` + addUsage + `) SELECT count(*) FROM reservation`

// recordStatement adds the entries with the columns $3 to $15, unless entries with the ID $1 were added before.
const recordStatement = `WITH mark AS (
	INSERT INTO ledger_reservation (id, state, expires, day, key, team, model, input_tokens, output_tokens, nanos)
	VALUES ($1, 'recorded', $2, '', '', '', '', 0, 0, 0) ON CONFLICT (id) DO NOTHING RETURNING id
), used AS (
	SELECT * FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[],
		$13::bigint[], $14::bigint[], $15::bigint[]) AS w(day, key, team, model, calls, estimated, unpriced, input_tokens, cached_tokens,
		cache_write_tokens, output_tokens, tokens, nanos)
	WHERE EXISTS (SELECT FROM mark)
), moved AS (
	INSERT INTO ledger_balance AS b (kind, name, period, spent_nanos, spent_tokens)
	SELECT a.kind, a.name, a.period, least(sum(u.nanos), 1000000000000000000)::bigint, least(sum(u.tokens), 1000000000000000000)::bigint
	FROM ` + usedByAccount + ` GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
	ON CONFLICT (kind, name, period) DO UPDATE SET spent_nanos = least(b.spent_nanos, 8000000000000000000) + excluded.spent_nanos,
		spent_tokens = least(b.spent_tokens, 8000000000000000000) + excluded.spent_tokens
	RETURNING b.kind
) ` + addUsage

package postgres

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/lathe-run/lathe/store"
)

// A new claim has its own expiry. The first Renew after it puts it under the lease of its node, which is one row; later ones renew only
// that row. A transaction that treats a lease as ended locks its row, so that no renewal can happen at the same time. An ended lease is
// never renewed.
const (
	prolongLease = `WITH kept AS (UPDATE lease SET until = now() + $2 * interval '1 microsecond' WHERE node = $1 AND until > now() RETURNING id)
		INSERT INTO lease (node, until) SELECT $1, now() + $2 * interval '1 microsecond' WHERE NOT EXISTS (SELECT FROM kept)`

	// putUnderLease puts the new claims of the node under its lease. It locks the rows in the same order as appends. putFreeUnderLease leaves
	// out the rows that another transaction has locked.
	putUnderLease = `WITH fresh AS MATERIALIZED (
			SELECT run_id FROM run WHERE owner = $1 AND NOT ended AND lease_until > now() AND lease_until < 'infinity' ORDER BY run_id FOR NO KEY UPDATE
		) UPDATE run SET lease_until = 'infinity', lease = (SELECT max(id) FROM lease WHERE node = $1 AND until > now())
		FROM fresh WHERE run.run_id = fresh.run_id`
	putFreeUnderLease = `WITH fresh AS MATERIALIZED (
			SELECT run_id FROM run WHERE owner = $1 AND NOT ended AND lease_until > now() AND lease_until < 'infinity' ORDER BY run_id FOR NO KEY UPDATE SKIP LOCKED
		) UPDATE run SET lease_until = 'infinity', lease = (SELECT max(id) FROM lease WHERE node = $1 AND until > now())
		FROM fresh WHERE run.run_id = fresh.run_id`

	heldUnderLease = `SELECT run_id, epoch, facts FROM run WHERE owner = $1 AND NOT ended AND lease_until = 'infinity'
		AND lease IN (SELECT id FROM lease WHERE node = $1 AND until > now())`

	forgetLeases = `DELETE FROM lease WHERE id IN (SELECT id FROM lease l WHERE until <= now()
		AND NOT EXISTS (SELECT FROM run WHERE owner = l.node AND NOT ended AND lease = l.id) FOR UPDATE SKIP LOCKED)`
)

// Renew implements [store.Shared]. It writes the row of the node's lease, and the rows of the runs that the node has claimed since the last
// renewal. If another transaction has locked the row of such a run, Renew renews only the claims on the other runs.
func (s *Store) Renew(ctx context.Context, node string, lease time.Duration) ([]store.Claim, error) {
	const op = "postgres: renew"
	if err := mayClaim(op, node, lease); err != nil {
		return nil, err
	}
	out, err := s.renew(ctx, node, lease, putUnderLease)
	if sqlState(err) == lockNotAvailable {
		out, err = s.renewFree(ctx, node, lease)
	}
	if err != nil {
		return nil, failure(ctx, op, err)
	}
	return out, nil
}

// renew renews the claims of the node and returns them. put is putUnderLease or putFreeUnderLease.
func (s *Store) renew(ctx context.Context, node string, lease time.Duration, put string) (out []store.Claim, err error) {
	err = s.retry(ctx, func(ctx context.Context) error {
		b := &pgx.Batch{} // one transaction; each statement sees what was committed before it
		b.Queue(prolongLease, node, micros(lease))
		b.Queue(put, node)
		b.Queue(heldUnderLease, node).Query(func(rows pgx.Rows) (err error) {
			out, err = pgx.CollectRows(rows, claimOf(node, lease))
			return err
		})
		b.Queue(forgetLeases)
		return s.pool.SendBatch(ctx, b).Close()
	})
	return out, err
}

// renewFree renews the claims on runs whose rows no other transaction has locked. It tries five times, because appends lock rows only
// briefly.
func (s *Store) renewFree(ctx context.Context, node string, lease time.Duration) ([]store.Claim, error) {
	byRun := map[string]store.Claim{}
	for range 5 {
		got, err := s.renew(ctx, node, lease, putFreeUnderLease)
		if err != nil {
			return nil, err
		}
		for _, c := range got {
			byRun[c.RunID] = c
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return slices.Collect(maps.Values(byRun)), nil
}

// lockNotAvailable is the code of a statement that has waited for a lock longer than lockTimeout.
const lockNotAvailable = "55P03"

package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

// Claim implements [store.Shared]. It claims first the runs that have waited longest. If a connection breaks before the response arrives,
// the node may have claims that Claim has not returned: Renew returns them.
func (s *Store) Claim(ctx context.Context, node string, lease time.Duration, limit int) ([]store.Claim, error) {
	const op = "postgres: claim"
	if err := mayClaim(op, node, lease); err != nil {
		return nil, err
	}
	if limit <= 0 {
		return nil, nil
	}
	return collect(ctx, s.database, op, claimOf(node, lease), `WITH free AS MATERIALIZED (
			SELECT run_id, due_at AS since FROM run WHERE due_at <= now() ORDER BY due_at LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED
		), abandoned AS MATERIALIZED (
			SELECT r.run_id, l.until AS since FROM lease l JOIN run r ON r.lease = l.id AND r.due_at = 'infinity'
			WHERE l.until <= now() AND (r.status <> 'parked' OR r.last_id > r.seen_id OR r.facts > r.seen_facts OR r.wake_at <= now())
			LIMIT $3 FOR SHARE OF l SKIP LOCKED FOR NO KEY UPDATE OF r SKIP LOCKED
		), first AS (
			SELECT * FROM free UNION ALL SELECT * FROM abandoned ORDER BY since LIMIT $3
		) UPDATE run SET owner = $1, epoch = epoch + 1, lease = NULL, lease_until = now() + $2 * interval '1 microsecond'
		FROM first WHERE run.run_id = first.run_id RETURNING run.run_id, epoch, facts`, node, micros(lease), limit)
}

// claimOf returns a function that scans a claim of the node.
func claimOf(node string, lease time.Duration) pgx.RowToFunc[store.Claim] {
	return func(r pgx.CollectableRow) (store.Claim, error) {
		c := store.Claim{Node: node, Lease: lease}
		err := r.Scan(&c.RunID, &c.Epoch, &c.Signals)
		return c, err
	}
}

// mayClaim returns an error if the node or the lease is not set.
func mayClaim(op, node string, lease time.Duration) error {
	if node == "" || lease <= 0 {
		return lathe.CodeInvalidRequest.Errorf(op, "a claim wants the name of a node and a lease")
	}
	return nil
}

// ClaimRun implements [store.Shared].
func (s *Store) ClaimRun(ctx context.Context, node, runID string, lease time.Duration) (store.Claim, error) {
	const op = "postgres: claim run"
	if err := mayClaim(op, node, lease); err != nil {
		return store.Claim{}, err
	}
	c := store.Claim{RunID: runID, Node: node, Lease: lease}
	args := []any{node, micros(lease), runID}
	err := s.retry(ctx, func(ctx context.Context) error { // of both statements: if claimAbandoned is repeated, claimFree finds what it has claimed
		err := s.pool.QueryRow(ctx, claimFree, args...).Scan(&c.Epoch, &c.Signals)
		if errors.Is(err, pgx.ErrNoRows) {
			err = s.pool.QueryRow(ctx, claimAbandoned, args...).Scan(&c.Epoch, &c.Signals)
		}
		if errors.Is(err, pgx.ErrNoRows) {
			return s.refusal(ctx, op, runID)
		}
		return err
	})
	if err != nil {
		return store.Claim{}, failure(ctx, op, err)
	}
	return c, nil
}

// claimFree claims a run that no node owns, or whose own claim has ended.
const claimFree = `UPDATE run SET owner = $1, epoch = epoch + 1, lease = NULL, lease_until = now() + $2 * interval '1 microsecond'
		WHERE run_id = $3 AND NOT ended AND (owner IS NULL OR owner = $1 OR lease_until <= now()) RETURNING epoch, facts`

// claimAbandoned claims a run whose claim is under a node lease that has ended. It does not wait for a lease row that is being renewed.
const claimAbandoned = `WITH abandoned AS MATERIALIZED (
		SELECT r.run_id FROM lease l JOIN run r ON r.lease = l.id WHERE r.run_id = $3 AND NOT r.ended AND r.lease_until = 'infinity' AND l.until <= now()
		FOR SHARE OF l SKIP LOCKED FOR NO KEY UPDATE OF r
	) UPDATE run SET owner = $1, epoch = epoch + 1, lease = NULL, lease_until = now() + $2 * interval '1 microsecond'
	FROM abandoned WHERE run.run_id = abandoned.run_id RETURNING epoch, facts`

// refusal returns the error for a run that cannot be changed: not_found if it does not exist, conflict in all other cases.
func (s *Store) refusal(ctx context.Context, op, runID string) error {
	found, err := s.one(ctx, "SELECT run_id FROM run WHERE run_id = $1", []any{runID}, &runID)
	switch {
	case err != nil:
		return err
	case !found:
		return notFound(op)
	}
	return conflict(op)
}

// Release implements [store.Shared].
func (s *Store) Release(ctx context.Context, c store.Claim, seen int64) error {
	const op = "postgres: release"
	err := s.exec(ctx, op, "UPDATE run SET owner = NULL, lease = NULL, lease_until = now(), seen_id = $4, seen_facts = $5 WHERE run_id = $1 AND owner = $2 AND epoch = $3",
		c.RunID, c.Node, c.Epoch, seen, c.Signals)
	if err != nil {
		return err
	}
	s.runs.add(c.RunID)
	return nil
}

// Owner implements [store.Shared].
func (s *Store) Owner(ctx context.Context, runID string) (node string, err error) {
	_, err = s.one(ctx, `SELECT owner FROM run WHERE run_id = $1 AND owner IS NOT NULL AND NOT ended AND lease_until > now()
		AND (lease_until < 'infinity' OR EXISTS (SELECT FROM lease WHERE id = run.lease AND until > now()))`, []any{runID}, &node)
	return node, failure(ctx, "postgres: owner", err)
}

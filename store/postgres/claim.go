package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe"
)

// Claim implements [lathe.SharedStore]. Those that have waited longest come first. Where a connection
// broke before its answer came, there may be claims of the node that nobody knows of: Renew shows them.
func (s *Store) Claim(ctx context.Context, node string, lease time.Duration, limit int) ([]lathe.Claim, error) {
	const op = "postgres: claim"
	if err := mayClaim(op, node, lease); err != nil {
		return nil, err
	}
	if limit <= 0 {
		return nil, nil
	}
	var out []lathe.Claim
	err := s.again(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, `WITH free AS MATERIALIZED (
				SELECT run_id, due_at AS since FROM run WHERE due_at <= now() ORDER BY due_at LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED
			), abandoned AS MATERIALIZED (
				SELECT r.run_id, l.until AS since FROM lease l JOIN run r ON r.lease = l.id AND r.due_at = 'infinity'
				WHERE l.until <= now() AND (r.status <> 'parked' OR r.last_id > r.seen_id OR r.facts > r.seen_facts OR r.wake_at <= now())
				LIMIT $3 FOR SHARE OF l SKIP LOCKED FOR NO KEY UPDATE OF r SKIP LOCKED
			), first AS (
				SELECT * FROM free UNION ALL SELECT * FROM abandoned ORDER BY since LIMIT $3
			) UPDATE run SET owner = $1, epoch = epoch + 1, lease = NULL, lease_until = now() + $2 * interval '1 microsecond'
			FROM first WHERE run.run_id = first.run_id RETURNING run.run_id, epoch, facts`, node, micros(lease), limit)
		if err == nil {
			out, err = claims(rows, node, lease)
		}
		return err
	})
	if err != nil {
		return nil, failure(ctx, op, err)
	}
	return out, nil
}

func claims(rows pgx.Rows, node string, lease time.Duration) ([]lathe.Claim, error) {
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (lathe.Claim, error) {
		c := lathe.Claim{Node: node, Lease: lease}
		return c, r.Scan(&c.RunID, &c.Epoch, &c.Facts)
	})
}

// mayClaim says what is wrong with who asks for claims.
func mayClaim(op, node string, lease time.Duration) error {
	if node == "" || lease <= 0 {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: op, Err: errors.New("a claim wants the name of a node and a lease")}
	}
	return nil
}

// Take implements [lathe.SharedStore].
func (s *Store) Take(ctx context.Context, node, runID string, lease time.Duration) (lathe.Claim, error) {
	const op = "postgres: take"
	if err := mayClaim(op, node, lease); err != nil {
		return lathe.Claim{}, err
	}
	c := lathe.Claim{RunID: runID, Node: node, Lease: lease}
	err := s.again(ctx, func(ctx context.Context) error {
		err := s.pool.QueryRow(ctx, `UPDATE run SET owner = $1, epoch = epoch + 1, lease = NULL, lease_until = now() + $2 * interval '1 microsecond'
			WHERE run_id = $3 AND NOT ended AND (owner IS NULL OR owner = $1 OR lease_until <= now()) RETURNING epoch, facts`, node, micros(lease), runID).Scan(&c.Epoch, &c.Facts)
		if errors.Is(err, pgx.ErrNoRows) {
			err = s.pool.QueryRow(ctx, takeAbandoned, node, micros(lease), runID).Scan(&c.Epoch, &c.Facts)
		}
		if errors.Is(err, pgx.ErrNoRows) {
			return s.refusal(ctx, op, runID)
		}
		return err
	})
	if err != nil {
		return lathe.Claim{}, failure(ctx, op, err)
	}
	return c, nil
}

// takeAbandoned takes a run whose claim is under a lease that has ended. A lease that is being renewed has not.
const takeAbandoned = `WITH abandoned AS MATERIALIZED (
		SELECT r.run_id FROM lease l JOIN run r ON r.lease = l.id WHERE r.run_id = $3 AND NOT r.ended AND r.lease_until = 'infinity' AND l.until <= now()
		FOR SHARE OF l SKIP LOCKED FOR NO KEY UPDATE OF r
	) UPDATE run SET owner = $1, epoch = epoch + 1, lease = NULL, lease_until = now() + $2 * interval '1 microsecond'
	FROM abandoned WHERE run.run_id = abandoned.run_id RETURNING epoch, facts`

// refusal says why nothing can be done to a run: it is not there, or has ended, or is another's.
func (s *Store) refusal(ctx context.Context, op, runID string) error {
	var there bool
	if err := s.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM run WHERE run_id = $1)", runID).Scan(&there); err != nil {
		return err
	}
	if !there {
		return &lathe.Error{Code: lathe.CodeNotFound, Op: op, Err: lathe.ErrNotFound}
	}
	return &lathe.Error{Code: lathe.CodeConflict, Op: op, Err: lathe.ErrConflict}
}

// Release implements [lathe.SharedStore].
func (s *Store) Release(ctx context.Context, c lathe.Claim, seen int64) error {
	const op = "postgres: release"
	err := s.again(ctx, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, "UPDATE run SET owner = NULL, lease = NULL, lease_until = now(), seen_id = $4, seen_facts = $5 WHERE run_id = $1 AND owner = $2 AND epoch = $3",
			c.RunID, c.Node, c.Epoch, seen, c.Facts)
		return err
	})
	if err != nil {
		return failure(ctx, op, err)
	}
	s.hints.add(c.RunID)
	return nil
}

// Owner implements [lathe.SharedStore].
func (s *Store) Owner(ctx context.Context, runID string) (node string, err error) {
	const op = "postgres: owner"
	err = s.again(ctx, func(ctx context.Context) error {
		err := s.pool.QueryRow(ctx, `SELECT owner FROM run WHERE run_id = $1 AND owner IS NOT NULL AND NOT ended AND lease_until > now()
			AND (lease_until < 'infinity' OR EXISTS (SELECT FROM lease WHERE id = run.lease AND until > now()))`, runID).Scan(&node)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil {
		return "", failure(ctx, op, err)
	}
	return node, nil
}

package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Advertise implements [store.Shared].
func (s *Store) Advertise(ctx context.Context, node, address string, ttl time.Duration) error {
	const op = "postgres: advertise"
	if err := mayClaim(op, node, ttl); err != nil {
		return err
	}
	err := s.again(ctx, func(ctx context.Context) error {
		// Those that are long gone are forgotten on the way.
		_, err := s.pool.Exec(ctx, `WITH gone AS (DELETE FROM node WHERE until < now() - interval '1 day' AND name <> $1)
			INSERT INTO node (name, address, until) VALUES ($1, $2, now() + $3 * interval '1 microsecond')
			ON CONFLICT (name) DO UPDATE SET address = excluded.address, until = excluded.until`, node, address, micros(ttl))
		return err
	})
	if err != nil {
		return failure(ctx, op, err)
	}
	return nil
}

// Address implements [store.Shared].
func (s *Store) Address(ctx context.Context, node string) (address string, err error) {
	const op = "postgres: address"
	err = s.again(ctx, func(ctx context.Context) error {
		err := s.pool.QueryRow(ctx, "SELECT address FROM node WHERE name = $1 AND until > now()", node).Scan(&address)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil {
		return "", failure(ctx, op, err)
	}
	return address, nil
}

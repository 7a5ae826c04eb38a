package postgres

import (
	"context"
	"time"
)

// Advertise implements [store.Shared].
func (s *Store) Advertise(ctx context.Context, node, address string, ttl time.Duration) error {
	const op = "postgres: advertise"
	if err := mayClaim(op, node, ttl); err != nil {
		return err
	}
	// The statement also deletes nodes whose addresses expired more than a day ago.
	return s.exec(ctx, op, `WITH gone AS (DELETE FROM node WHERE until < now() - interval '1 day' AND name <> $1)
		INSERT INTO node (name, address, until) VALUES ($1, $2, now() + $3 * interval '1 microsecond')
		ON CONFLICT (name) DO UPDATE SET address = excluded.address, until = excluded.until`, node, address, micros(ttl))
}

// Address implements [store.Shared].
func (s *Store) Address(ctx context.Context, node string) (address string, err error) {
	_, err = s.one(ctx, "SELECT address FROM node WHERE name = $1 AND until > now()", []any{node}, &address)
	return address, failure(ctx, "postgres: address", err)
}

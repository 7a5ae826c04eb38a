package postgres

import (
	"context"

	"github.com/lathe-run/lathe/store"
)

var (
	_ store.SecretKeeper = (*SharedSecrets)(nil)
	_ store.SecretKeeper = (*Store)(nil)
)

// SharedSecrets is the part of a [Store] that implements [store.SecretKeeper].
type SharedSecrets struct{ db *database }

// SharedSecret implements [store.SecretKeeper].
func (s *SharedSecrets) SharedSecret(ctx context.Context, name string, value []byte) ([]byte, error) {
	const op = "postgres: keep the secret"
	if err := store.FitsSecret(op, name, value); err != nil {
		return nil, err
	}
	var kept []byte
	err := s.db.again(ctx, func(ctx context.Context) error {
		if _, err := s.db.pool.Exec(ctx, "INSERT INTO secret (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING", name, value); err != nil {
			return err
		}
		return s.db.pool.QueryRow(ctx, "SELECT value FROM secret WHERE name = $1", name).Scan(&kept)
	})
	if err != nil {
		return nil, failure(ctx, op, err)
	}
	return kept, nil
}

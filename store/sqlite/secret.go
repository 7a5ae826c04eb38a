package sqlite

import (
	"context"
	"database/sql"

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
	const op = "sqlite: keep the secret"
	if err := store.FitsSecret(op, name, value); err != nil {
		return nil, err
	}
	var kept []byte
	_, err := s.db.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		if _, err := tx.ExecContext(ctx, "INSERT INTO secret (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING", name, value); err != nil {
			return 0, err
		}
		return 0, tx.QueryRowContext(ctx, "SELECT value FROM secret WHERE name = ?", name).Scan(&kept)
	})
	if err != nil {
		return nil, failure(ctx, op, err)
	}
	return kept, nil
}

package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe/store"
)

// named implements [store.SecretKeeper] and [store.ValueKeeper].
type named struct{ *database }

// SharedSecret implements [store.SecretKeeper].
func (n *named) SharedSecret(ctx context.Context, name string, value []byte) (kept []byte, err error) {
	const op = "postgres: keep the secret"
	if err := store.FitsSecret(op, name, value); err != nil {
		return nil, err
	}
	if err := n.exec(ctx, op, "INSERT INTO secret (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING", name, value); err != nil {
		return nil, err
	}
	_, err = n.one(ctx, "SELECT value FROM secret WHERE name = $1", []any{name}, &kept)
	return kept, failure(ctx, op, err)
}

// SetValue implements [store.ValueKeeper].
func (n *named) SetValue(ctx context.Context, name string, value []byte) error {
	const op = "postgres: set a value"
	if err := store.FitsValue(op, name, value); err != nil {
		return err
	}
	if len(value) == 0 {
		return n.exec(ctx, op, "DELETE FROM named_value WHERE name = $1", name)
	}
	return n.exec(ctx, op, "INSERT INTO named_value (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value", name, value)
}

// Values implements [store.ValueKeeper].
func (n *named) Values(ctx context.Context, prefix string) (map[string][]byte, error) {
	type row struct {
		Name  string
		Value []byte
	}
	rows, err := collect(ctx, n.database, "postgres: read values", pgx.RowToStructByPos[row], "SELECT name, value FROM named_value WHERE starts_with(name, $1) ORDER BY name LIMIT $2", prefix, store.MaxValues)
	out := map[string][]byte{}
	for _, r := range rows {
		out[r.Name] = r.Value
	}
	return out, err
}

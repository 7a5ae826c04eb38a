package sqlite

import (
	"context"
	"database/sql"

	"github.com/lathe-run/lathe/store"
)

var (
	_ store.ValueKeeper = (*NamedValues)(nil)
	_ store.ValueKeeper = (*Store)(nil)
)

// NamedValues is the part of a [Store] that implements [store.ValueKeeper]. The values are in the table of the secrets, under
// names that begin with valuePrefix: a table of their own would be a new schema, which older versions refuse to open.
type NamedValues struct{ db *database }

// valuePrefix begins the names of values. [store.SecretKeeper] has no name that begins so.
const valuePrefix = "value:"

// SetValue implements [store.ValueKeeper].
func (s *NamedValues) SetValue(ctx context.Context, name string, value []byte) error {
	const op = "sqlite: set a value"
	if err := store.FitsValue(op, name, value); err != nil {
		return err
	}
	_, err := s.db.submit(ctx, func(ctx context.Context, tx *sql.Tx) (int64, error) {
		query, args := "INSERT INTO secret (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", []any{valuePrefix + name, value}
		if len(value) == 0 {
			query, args = "DELETE FROM secret WHERE name = ?", args[:1]
		}
		_, err := tx.ExecContext(ctx, query, args...)
		return 0, err
	})
	return failure(ctx, op, err)
}

// Values implements [store.ValueKeeper].
func (s *NamedValues) Values(ctx context.Context, prefix string) (map[string][]byte, error) {
	const op = "sqlite: read values"
	from := valuePrefix + prefix
	rows, err := s.db.read.QueryContext(ctx, "SELECT name, value FROM secret WHERE name >= ?1 AND substr(name, 1, length(?1)) = ?1 ORDER BY name LIMIT ?2", from, store.MaxValues)
	if err != nil {
		return nil, failure(ctx, op, err)
	}
	defer func() { _ = rows.Close() }() // Err returns the error that matters
	out := map[string][]byte{}
	for rows.Next() {
		var name string
		var value []byte
		if err := rows.Scan(&name, &value); err != nil {
			return nil, failure(ctx, op, err)
		}
		out[name[len(valuePrefix):]] = value
	}
	if err := rows.Err(); err != nil {
		return nil, failure(ctx, op, err)
	}
	return out, nil
}

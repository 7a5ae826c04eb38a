package postgres

import (
	"context"

	"github.com/lathe-run/lathe/store"
)

var (
	_ store.ValueKeeper = (*NamedValues)(nil)
	_ store.ValueKeeper = (*Store)(nil)
)

// NamedValues is the part of a [Store] that implements [store.ValueKeeper].
type NamedValues struct{ db *database }

// SetValue implements [store.ValueKeeper].
func (s *NamedValues) SetValue(ctx context.Context, name string, value []byte) error {
	const op = "postgres: set a value"
	if err := store.FitsValue(op, name, value); err != nil {
		return err
	}
	query, args := "INSERT INTO named_value (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value", []any{name, value}
	if len(value) == 0 {
		query, args = "DELETE FROM named_value WHERE name = $1", args[:1]
	}
	err := s.db.again(ctx, func(ctx context.Context) error {
		_, err := s.db.pool.Exec(ctx, query, args...)
		return err
	})
	if err != nil {
		return failure(ctx, op, err)
	}
	return nil
}

// Values implements [store.ValueKeeper].
func (s *NamedValues) Values(ctx context.Context, prefix string) (map[string][]byte, error) {
	const op = "postgres: read values"
	var out map[string][]byte
	err := s.db.again(ctx, func(ctx context.Context) error {
		out = map[string][]byte{}
		rows, err := s.db.pool.Query(ctx, `SELECT name, value FROM named_value WHERE starts_with(name, $1) ORDER BY name LIMIT $2`, prefix, store.MaxValues)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			var value []byte
			if err := rows.Scan(&name, &value); err != nil {
				return err
			}
			out[name] = value
		}
		return rows.Err()
	})
	if err != nil {
		return nil, failure(ctx, op, err)
	}
	return out, nil
}

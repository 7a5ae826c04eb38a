package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lathe-run/lathe/internal/migrate"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is the first half of the key of the advisory lock for schema changes. The other half is a hash of the schema's name.
const migrationLock = 0x6c617468 // "lath"

// lockEvery is the interval between two attempts to obtain the lock for migrations.
const lockEvery = 50 * time.Millisecond

// schema contains the migrations. The version of a database is the greatest version in the table lathe_schema.
var schema = migrate.Schema{
	Files: migrations,
	Newer: "the schema was made by a newer version (schema %d, known is %d): install the version that made it or a later one (`lathe version --json` prints the schemas of a binary), or restore a backup from before the upgrade",
}

// concurrently is the beginning of a statement that builds an index while other processes use the table. A script with such a statement
// contains no other.
const concurrently = "CREATE INDEX CONCURRENTLY "

// SchemaVersion returns the version of the database schema that this package writes. [Open] migrates a database with an older schema and
// refuses one with a newer schema.
func SchemaVersion() int { return schema.Version() }

// A migration implements [migrate.Database] for a schema of PostgreSQL.
type migration struct {
	conn *pgx.Conn
	// acquire returns a second connection, for a script that builds an index.
	acquire func(context.Context) (*pgxpool.Conn, error)
}

func (m *migration) Version(ctx context.Context) (int, error) { return schemaVersion(ctx, m.conn) }

// Apply implements [migrate.Database]. While another process migrates the database, Apply blocks without a time limit.
func (m *migration) Apply(ctx context.Context, has int, scripts []migrate.Script) error {
	tx, err := lockMigrations(ctx, m.conn)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // no effect after a commit
	if _, err := tx.Exec(ctx, `SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true),
		set_config('idle_in_transaction_session_timeout', '0', true)`); err != nil {
		return err
	}
	if now, err := schemaVersion(ctx, tx); err != nil || now != has {
		return err
	}
	if has == 0 {
		if _, err := tx.Exec(ctx, "CREATE TABLE lathe_schema (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())"); err != nil {
			return mayMigrate(err)
		}
	}
	for _, s := range scripts {
		if err := m.execute(ctx, tx, s, has == 0); err != nil {
			return mayMigrate(err)
		}
	}
	return tx.Commit(ctx)
}

// execute executes a script and records its version. Unless the tables are empty, it builds an index concurrently, outside of the
// transaction.
func (m *migration) execute(ctx context.Context, tx pgx.Tx, s migrate.Script, empty bool) error {
	var err error
	_, afterCreate, buildsIndex := strings.Cut(s.Text, concurrently)
	if buildsIndex && !empty {
		name, _, _ := strings.Cut(afterCreate, " ")
		err = m.buildIndex(ctx, tx, name, s.Text)
	} else {
		_, err = tx.Exec(ctx, strings.Replace(s.Text, concurrently, "CREATE INDEX ", 1)) // without arguments, so that several statements can be sent at once
	}
	if err == nil {
		_, err = tx.Exec(ctx, "INSERT INTO lathe_schema (version) VALUES ($1)", s.Version)
	}
	return err
}

// lockMigrations begins a transaction with the lock for migrations. While it waits for the lock, it has no open transaction, because the
// index build of another process waits for the snapshots of all transactions.
func lockMigrations(ctx context.Context, conn *pgx.Conn) (pgx.Tx, error) {
	for {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return nil, err
		}
		var locked bool
		err = tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1, hashtext(current_schema()))", migrationLock).Scan(&locked)
		if err == nil && locked {
			return tx, nil
		}
		if err = errors.Join(err, tx.Rollback(ctx)); err != nil {
			return nil, err
		}
		select {
		case <-time.After(lockEvery):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// buildIndex builds an index without a lock that blocks appends. It first removes an invalid index, which a process leaves if it stops
// during a build. The caller has the lock for migrations, in the transaction tx of another connection.
func (m *migration) buildIndex(ctx context.Context, tx pgx.Tx, index, script string) error {
	// The build would wait for the snapshot of the last query of tx. A statement without arguments releases it.
	if _, err := tx.Exec(ctx, "SELECT"); err != nil {
		return err
	}
	conn, err := m.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	// The connection returns to the pool, so its settings are restored below.
	var statement, lock string
	if err := conn.QueryRow(ctx, "SELECT current_setting('statement_timeout'), current_setting('lock_timeout')").Scan(&statement, &lock); err != nil {
		return err
	}
	const set = "SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false)"
	if _, err := conn.Exec(ctx, set, "0", "0"); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "DROP INDEX CONCURRENTLY IF EXISTS "+index)
	if err == nil {
		_, err = conn.Exec(ctx, script)
	}
	_, failed := conn.Exec(ctx, set, statement, lock)
	return errors.Join(err, failed)
}

// schemaVersion returns the version of the schema, or 0 if the tables do not exist.
func schemaVersion(ctx context.Context, db interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}) (int, error) {
	var schema *string
	var there bool
	// Not to_regclass: within a transaction it may not see a table that another transaction has created since.
	if err := db.QueryRow(ctx, `SELECT current_schema(), EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = current_schema() AND c.relname = 'lathe_schema')`).Scan(&schema, &there); err != nil {
		return 0, err
	}
	if schema == nil {
		return 0, errors.New("the search_path names no schema that is there: make it, or name another")
	}
	if !there {
		return 0, nil
	}
	var has int
	if err := db.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM lathe_schema").Scan(&has); err != nil {
		return 0, err
	}
	return has, nil
}

// mayMigrate adds the next step to errors that an operator can correct.
func mayMigrate(err error) error {
	switch sqlState(err) {
	case "42501":
		return fmt.Errorf("the schema is not there or old, and this role may not change it: start once with a role that may create tables: %w", err)
	case "42P07":
		return fmt.Errorf("the schema holds tables of something else: use a database or schema of its own: %w", err)
	}
	return err
}

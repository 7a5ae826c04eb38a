package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is the first half of the key of the advisory lock under which a schema is changed. The
// other half is of the schema's name.
const migrationLock = 0x6c617468 // "lath"

// lockEvery is the time between two attempts to lock out other migrations.
const lockEvery = 50 * time.Millisecond

// A script brings the schema from one version to the next.
type script struct {
	text string
	// index is the name of the index that the script builds concurrently, with its one statement and outside a transaction; "" if
	// the script builds none and is executed in a transaction.
	index string
}

// concurrently begins the statement of a script that builds an index while other processes use the table.
const concurrently = "CREATE INDEX CONCURRENTLY "

// versions returns the scripts in their order: the first makes version 1.
func versions() ([]script, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	scripts := make([]script, len(names))
	for i, name := range names {
		b, err := migrations.ReadFile(name)
		if err != nil {
			return nil, err
		}
		scripts[i].text = string(b)
		if _, statement, ok := strings.Cut(scripts[i].text, concurrently); ok {
			scripts[i].index, _, _ = strings.Cut(statement, " ")
		}
	}
	return scripts, nil
}

// SchemaVersion returns the version of the schema that this package writes. It migrates every older one.
func SchemaVersion() int {
	names, _ := fs.Glob(migrations, "migrations/*.sql") // the pattern is well formed
	return len(names)
}

// migrate updates the schema to this package's version. If it has that version already, migrate only
// reads. acquire returns a second connection, for a script that builds an index.
func migrate(ctx context.Context, conn *pgx.Conn, acquire func(context.Context) (*pgxpool.Conn, error)) error {
	scripts, err := versions()
	if err != nil {
		return err
	}
	for {
		has, err := schemaVersion(ctx, conn)
		if err != nil || has == len(scripts) {
			return err
		}
		if err := migrateSome(ctx, conn, acquire, scripts); err != nil {
			return err
		}
	}
}

// migrateSome executes the next scripts: those up to the next one that builds an index, or this one alone.
func migrateSome(ctx context.Context, conn *pgx.Conn, acquire func(context.Context) (*pgxpool.Conn, error), scripts []script) error {
	// Only one process does it. The others wait, however long it takes, and find it done.
	tx, err := lockMigrations(ctx, conn)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // after a commit it does nothing
	if _, err := tx.Exec(ctx, `SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true),
		set_config('idle_in_transaction_session_timeout', '0', true)`); err != nil {
		return err
	}
	has, err := schemaVersion(ctx, tx)
	if err != nil {
		return err
	}
	for first := has; has < len(scripts); has++ {
		s := scripts[has]
		if first == 0 { // the tables are empty, and no other process uses them
			s = script{text: strings.Replace(s.text, concurrently, "CREATE INDEX ", 1)}
		}
		if s.index != "" && has > first {
			break // the transaction may hold locks on its table
		}
		if has == 0 {
			if _, err := tx.Exec(ctx, "CREATE TABLE lathe_schema (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())"); err != nil {
				return mayMigrate(err)
			}
		}
		if s.index == "" {
			_, err = tx.Exec(ctx, s.text) // several statements: sent as they are
		} else if _, err = tx.Exec(ctx, "SELECT"); err == nil { // without arguments: it ends the query before it, whose snapshot the index would wait for
			err = buildIndex(ctx, acquire, s)
		}
		if err != nil {
			return mayMigrate(err)
		}
		if _, err := tx.Exec(ctx, "INSERT INTO lathe_schema (version) VALUES ($1)", has+1); err != nil {
			return mayMigrate(err)
		}
		if s.index != "" {
			break
		}
	}
	return tx.Commit(ctx)
}

// lockMigrations begins a transaction that locks out the migrations of other processes until it ends. While it waits for the lock
// it has no transaction: the index that the holder of the lock builds waits for snapshots of others.
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

// buildIndex builds an index without a lock that appends wait for. It first removes an index that is not valid,
// which a process leaves if it ends while it builds one. The caller holds the lock of migrations in a transaction of another connection.
func buildIndex(ctx context.Context, acquire func(context.Context) (*pgxpool.Conn, error), s script) error {
	conn, err := acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	// The settings of the connection are set again below: it goes back to the pool.
	var statement, lock string
	if err := conn.QueryRow(ctx, "SELECT current_setting('statement_timeout'), current_setting('lock_timeout')").Scan(&statement, &lock); err != nil {
		return err
	}
	const set = "SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false)"
	if _, err := conn.Exec(ctx, set, "0", "0"); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "DROP INDEX CONCURRENTLY IF EXISTS "+s.index)
	if err == nil {
		_, err = conn.Exec(ctx, s.text)
	}
	if _, failed := conn.Exec(ctx, set, statement, lock); failed != nil {
		err = errors.Join(err, failed)
	}
	return err
}

// schemaVersion returns the version of the schema, or 0 if the tables do not exist. A version newer than this
// package's is an error.
func schemaVersion(ctx context.Context, db interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}) (int, error) {
	var schema *string
	var there bool
	// Not to_regclass: within a transaction it may not see what another one has made meanwhile.
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
	if scripts, err := versions(); err != nil || has > len(scripts) {
		return 0, errors.Join(err, fmt.Errorf("the schema was made by a newer version (schema %d, known is %d): install the version that made it or a later one (`lathe version --json` prints the schemas of a binary), or restore a backup from before the upgrade", has, len(scripts)))
	}
	return has, nil
}

// mayMigrate adds the next step to the errors that an operator can do something about.
func mayMigrate(err error) error {
	switch sqlState(err) {
	case "42501":
		return fmt.Errorf("the schema is not there or old, and this role may not change it: start once with a role that may create tables: %w", err)
	case "42P07":
		return fmt.Errorf("the schema holds tables of something else: use a database or schema of its own: %w", err)
	}
	return err
}

package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/jackc/pgx/v5"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is the first half of the key of the advisory lock under which a schema is changed. The
// other half is of the schema's name.
const migrationLock = 0x6c617468 // "lath"

// versions returns the scripts that bring the schema from each version to the next: the first makes
// version 1.
func versions() ([]string, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	scripts := make([]string, len(names))
	for i, name := range names {
		b, err := migrations.ReadFile(name)
		if err != nil {
			return nil, err
		}
		scripts[i] = string(b)
	}
	return scripts, nil
}

// SchemaVersion returns the version of the schema that this package writes. It migrates every older one.
func SchemaVersion() int {
	names, _ := fs.Glob(migrations, "migrations/*.sql") // the pattern is well formed
	return len(names)
}

// migrate updates the schema to this package's version. If it has that version already, migrate only
// reads.
func migrate(ctx context.Context, conn *pgx.Conn) error {
	scripts, err := versions()
	if err != nil {
		return err
	}
	has, err := schemaVersion(ctx, conn)
	if err != nil || has == len(scripts) {
		return err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // after a commit it does nothing
	// Only one process does it. The others wait, however long it takes, and find it done.
	if _, err := tx.Exec(ctx, "SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true)"); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1, hashtext(current_schema()))", migrationLock); err != nil {
		return err
	}
	if has, err = schemaVersion(ctx, tx); err != nil {
		return err
	}
	for ; has < len(scripts); has++ {
		if has == 0 {
			if _, err := tx.Exec(ctx, "CREATE TABLE lathe_schema (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())"); err != nil {
				return mayMigrate(err)
			}
		}
		if _, err := tx.Exec(ctx, scripts[has]); err != nil { // several statements: sent as they are
			return mayMigrate(err)
		}
		if _, err := tx.Exec(ctx, "INSERT INTO lathe_schema (version) VALUES ($1)", has+1); err != nil {
			return mayMigrate(err)
		}
	}
	return tx.Commit(ctx)
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

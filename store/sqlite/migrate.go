package sqlite

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
)

//go:embed migrations/0001_runs.sql
var schema string

// version is that of the schema that this package writes. Older ones are brought forward when a file
// is opened; newer ones are refused.
const version = 10

// principalStatusIndex is what version 10 adds: the runs of a principal with a status, in the order in which runs are listed.
const principalStatusIndex = "CREATE INDEX run_principal_status ON run (principal, status, started DESC, run_id DESC)"

// migrate brings the file to the schema of this version, and refuses settings that lose what was kept.
func (d *database) migrate(ctx context.Context) error {
	tx, err := d.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	var has int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&has); err != nil {
		return err
	}
	if has > version {
		return tooNew(has)
	}
	if has == 0 {
		var tables int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(&tables); err != nil {
			return err
		}
		if tables > 0 {
			return errors.New("the file is a database of something else")
		}
		if _, err := tx.ExecContext(ctx, schema); err != nil {
			return err
		}
	}
	if has < 2 {
		if err := addSignalTable(ctx, tx); err != nil {
			return err
		}
	}
	if has < 3 {
		if _, err := tx.ExecContext(ctx, queueTables); err != nil {
			return err
		}
	}
	if has < 4 {
		if _, err := tx.ExecContext(ctx, goneTable); err != nil {
			return err
		}
	}
	if has < 5 {
		if _, err := tx.ExecContext(ctx, traceColumns); err != nil {
			return err
		}
	}
	if has < 6 {
		if _, err := tx.ExecContext(ctx, endedIndex); err != nil {
			return err
		}
	}
	if has < 7 {
		if _, err := tx.ExecContext(ctx, requestTable); err != nil {
			return err
		}
	}
	if has < 8 {
		if _, err := tx.ExecContext(ctx, secretTable); err != nil {
			return err
		}
	}
	if has < ledgerVersion {
		if _, err := tx.ExecContext(ctx, ledgerTables); err != nil {
			return err
		}
	}
	if has < 10 {
		if _, err := tx.ExecContext(ctx, principalStatusIndex); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version)); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	var mode string
	var sync int
	if err := d.write.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	if err := d.write.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&sync); err != nil {
		return err
	}
	if mode != "wal" || sync < 2 {
		return fmt.Errorf("the file is in mode %s with synchronous %d, where wal and 2 are needed to keep what was written", mode, sync)
	}
	return nil
}

// SchemaVersion is the version of the schema that this package writes. It reads and migrates every older one.
const SchemaVersion = version

func tooNew(has int) error {
	return fmt.Errorf("the file was written by a newer version (schema %d, known is %d): install the version that wrote it or a later one (`lathe version --json` prints the schemas of a binary), or restore a backup from before the upgrade", has, version)
}

// refuse reports an error for a schema that this version cannot read.
func refuse(has int) error {
	switch {
	case has == 0:
		return errors.New("the file is no store of runs")
	case has > version:
		return tooNew(has)
	}
	return nil
}

// known reports an error for a file that this version cannot read.
func (d *database) known(ctx context.Context) error {
	if err := d.read.QueryRowContext(ctx, "PRAGMA user_version").Scan(&d.schema); err != nil {
		return err
	}
	return refuse(d.schema)
}

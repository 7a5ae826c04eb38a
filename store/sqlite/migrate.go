package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lathe-run/lathe/internal/migrate"
	"github.com/lathe-run/lathe/store"
)

//go:embed migrations/*.sql
var migrations embed.FS

// schema contains the migrations. The version of a file is its user_version.
var schema = migrate.Schema{
	Files: migrations,
	Newer: "the file was written by a newer version (schema %d, known is %d): install the version that wrote it or a later one (`lathe version --json` prints the schemas of a binary), or restore a backup from before the upgrade",
}

// The versions of the schema that added tables which a file that is open for reading only may lack.
const (
	signalsVersion  = 2
	goneVersion     = 4
	requestsVersion = 7
	ledgerVersion   = 9
	messagesVersion = 11 // messages that are stored apart from the events
)

// hooks are functions for changes of a version that SQL cannot express. A hook is executed after the script of its version, in the same
// transaction.
var hooks = map[int]func(context.Context, *sql.Tx) error{
	2: addWakeTimes,
}

// SchemaVersion returns the version of the database schema that this package writes. [Open] migrates a file with an older schema and
// refuses one with a newer schema.
func SchemaVersion() int { return schema.Version() }

// A migration implements [migrate.Database] for a file. The lock of the file excludes other processes that write it.
type migration struct{ db *sql.DB }

func (m migration) Version(ctx context.Context) (int, error) { return userVersion(ctx, m.db) }

func (m migration) Apply(ctx context.Context, has int, scripts []migrate.Script) error {
	tx, err := m.db.BeginTx(ctx, nil) // an immediate transaction, by the setting of the connection
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect after a commit
	if now, err := userVersion(ctx, tx); err != nil || now != has {
		return err
	}
	for _, s := range scripts {
		if err := put(ctx, tx, s.Text); err != nil {
			return err
		}
		if hook := hooks[s.Version]; hook != nil {
			if err := hook(ctx, tx); err != nil {
				return err
			}
		}
	}
	if err := put(ctx, tx, setVersion(has+len(scripts))); err != nil {
		return err
	}
	return tx.Commit()
}

// userVersion returns the version of a file's schema, or 0 for a file without tables. For a file with other tables it returns an error.
func userVersion(ctx context.Context, q querier) (has int, err error) {
	if err := q.QueryRowContext(ctx, "PRAGMA user_version").Scan(&has); err != nil || has != 0 {
		return has, err
	}
	var tables int
	if err = q.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(&tables); err == nil && tables > 0 {
		err = errors.New("the file is a database of something else")
	}
	return 0, err
}

func setVersion(version int) string { return fmt.Sprintf("PRAGMA user_version = %d", version) }

// migrate migrates the file to the schema of this version. It returns an error if the file cannot be written or its settings would lose
// confirmed data.
func (d *database) migrate(ctx context.Context) error {
	if err := schema.Update(ctx, migration{d.write}); err != nil {
		return err
	}
	if err := put(ctx, d.write, setVersion(schema.Version())); err != nil { // a write without a change
		return err
	}
	var mode string
	var sync int
	if err := d.write.QueryRowContext(ctx, "SELECT journal_mode, synchronous FROM pragma_journal_mode, pragma_synchronous").Scan(&mode, &sync); err != nil {
		return err
	}
	if mode != "wal" || sync < 2 {
		return fmt.Errorf("the file is in mode %s with synchronous %d, where wal and 2 are needed to keep what was written", mode, sync)
	}
	return nil
}

// readVersion returns the version of the schema of a store, or an error if this version cannot read it.
func readVersion(ctx context.Context, db querier) (has int, err error) {
	if err = db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&has); err != nil {
		return 0, err
	}
	if has == 0 {
		return 0, errors.New("the file is no store of runs")
	}
	return has, schema.Check(has)
}

// addWakeTimes is the hook of version 2, which added WakeAt to the rows of parked runs. It computes these rows again from the events.
func addWakeTimes(ctx context.Context, tx *sql.Tx) error {
	parked, err := parkedRuns(ctx, tx)
	if err != nil {
		return err
	}
	for id, last := range parked {
		sum := &store.Summary{}
		if err := summarize(ctx, tx, sum, selectBodies, id, last); err != nil {
			return err
		}
		row, err := json.Marshal(&sum.Run)
		if err != nil {
			return err
		}
		if err := put(ctx, tx, "UPDATE run SET summary = ? WHERE run_id = ?", row, id); err != nil {
			return err
		}
	}
	return nil
}

// parkedRuns returns the id of the last event of each parked run, by the id of the run.
func parkedRuns(ctx context.Context, tx *sql.Tx) (map[string]int64, error) {
	out := map[string]int64{}
	err := each(ctx, tx, func(scan scanner) error {
		var id string
		var last int64
		err := scan(&id, &last)
		out[id] = last
		return err
	}, "SELECT run_id, last_id FROM run WHERE status = 'parked'")
	return out, err
}

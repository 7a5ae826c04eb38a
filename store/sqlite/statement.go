package sqlite

import (
	"context"
	"database/sql"
)

// The statements of an append, which are made ready once.
const (
	lastEvent = "SELECT last_id FROM run WHERE run_id = ?"
	addEvent  = "INSERT INTO event (run_id, id, body) VALUES (?, ?, ?)"
	addRun    = "INSERT INTO run (run_id, last_id, started, updated, session_id, principal, status, summary) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
	moveRun   = "UPDATE run SET last_id = ?, updated = ?, summary = ? WHERE run_id = ?"
	turnRun   = "UPDATE run SET last_id = ?, updated = ?, summary = ?, status = ? WHERE run_id = ?"
	addCall   = `INSERT INTO model_call (run_id, event_id, time, summary) VALUES (?, ?, ?, ?)
		ON CONFLICT (run_id, event_id) DO UPDATE SET summary = excluded.summary`
	setPoint     = "SAVEPOINT one"
	releasePoint = "RELEASE one"
)

// statements are those that are ready. They belong to the writer.
type statements map[string]*sql.Stmt

// prepare makes the statements of an append ready. They are closed with the file.
func (d *database) prepare(ctx context.Context) error {
	d.does = statements{}
	for _, query := range []string{lastEvent, addEvent, addRun, moveRun, turnRun, addCall, setPoint, releasePoint} {
		st, err := d.write.PrepareContext(ctx, query)
		if err != nil {
			return err
		}
		d.does[query] = st
	}
	return nil
}

func (d statements) exec(ctx context.Context, tx *sql.Tx, query string, args ...any) error {
	_, err := tx.StmtContext(ctx, d[query]).ExecContext(ctx, args...)
	return err
}

func (d statements) query(ctx context.Context, tx *sql.Tx, query string, args ...any) *sql.Row {
	return tx.StmtContext(ctx, d[query]).QueryRowContext(ctx, args...)
}

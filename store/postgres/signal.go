package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/store"
)

// PutSignal implements [store.SignalStore].
func (s *Store) PutSignal(ctx context.Context, f store.Signal) error {
	const op = "postgres: put signal"
	if err := store.CheckSignal(&f); err != nil {
		return lathe.CodeInvalidRequest.Wrap(op, err)
	}
	mark := rand.Int64() // stored with the signal, so that a repeated try recognizes it
	err := s.retry(ctx, func(ctx context.Context) error {
		// The statement locks the row of the run, so the signal is stored before the run ends, or refused. If the same signal is already
		// stored, the statement fails and increments nothing.
		done, err := s.pool.Exec(ctx, `WITH r AS (UPDATE run SET facts = facts + 1 WHERE run_id = $1 AND NOT ended RETURNING facts)
			INSERT INTO fact (run_id, kind, key, seq, mark, body, time) SELECT $1, $2, $3, r.facts, $4, $5, clock_timestamp() FROM r`,
			f.RunID, f.Kind, f.Key, mark, []byte(f.Body))
		switch {
		case err == nil && done.RowsAffected() == 1:
			return nil
		case err != nil && sqlState(err) != uniqueViolation:
			return err
		}
		var mine bool // an earlier try has stored the signal, but its response was lost
		err = s.pool.QueryRow(ctx, "SELECT mark = $4 FROM fact WHERE run_id = $1 AND kind = $2 AND key = $3", f.RunID, f.Kind, f.Key, mark).Scan(&mine)
		switch {
		case mine:
			return nil
		case err != nil && !errors.Is(err, pgx.ErrNoRows):
			return err
		}
		return s.refusal(ctx, op, f.RunID)
	})
	if err != nil {
		return failure(ctx, op, err)
	}
	s.runs.add(f.RunID)
	return nil
}

// uniqueViolation is the code of an insert of a row that exists.
const uniqueViolation = "23505"

// Signals implements [store.SignalStore].
func (s *Store) Signals(ctx context.Context, runID string) ([]store.Signal, error) {
	return collect(ctx, s.database, "postgres: signals", func(r pgx.CollectableRow) (store.Signal, error) {
		f := store.Signal{RunID: runID}
		var at time.Time
		err := r.Scan(&f.Kind, &f.Key, (*[]byte)(&f.Body), &at)
		f.Time = at.UTC()
		return f, err
	}, "SELECT kind, key, body, time FROM fact WHERE run_id = $1 ORDER BY seq", runID)
}

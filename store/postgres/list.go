package postgres

import (
	"context"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/store"
)

// A listing is the query of a list of runs or of model calls.
type listing[T any] struct {
	query string
	order []string // columns: the time, the run and, of a model call, its event; newest first
	at    func(*T) store.Cursor
}

var runs = &listing[store.RunSummary]{"SELECT summary FROM run WHERE true", []string{"started", "run_id"}, (*store.RunSummary).Cursor}

var calls = callListing("model_call c JOIN run USING (run_id)")

func callListing(from string) *listing[store.CallSummary] {
	return &listing[store.CallSummary]{"SELECT c.summary FROM " + from + " WHERE true", []string{"c.time", "c.run_id", "c.event_id"}, (*store.CallSummary).Cursor}
}

// The model calls of a principal, in plans that do not depend on statistics: OFFSET 0 keeps a subquery as it is. The calls of a principal
// with few runs are looked up by run. For other principals, all calls are read in their order and the run of each is looked up.
var (
	callsByRun  = callListing("run CROSS JOIN LATERAL (SELECT * FROM model_call m WHERE m.run_id = run.run_id OFFSET 0) c")
	callsByTime = callListing("model_call c CROSS JOIN LATERAL (SELECT * FROM run r WHERE r.run_id = c.run_id OFFSET 0) run")
)

// fewRuns is the maximum number of runs of a principal whose calls are looked up by run.
const fewRuns = 2_000

// Runs implements [store.RunIndex].
func (s *Store) Runs(ctx context.Context, f *store.RunFilter) ([]store.RunSummary, string, error) {
	return list(ctx, s, runs, f)
}

// ModelCalls implements [store.RunIndex].
func (s *Store) ModelCalls(ctx context.Context, f *store.RunFilter) ([]store.CallSummary, string, error) {
	if f == nil || f.Principal == "" || f.RunID != "" || f.SessionID != "" {
		return list(ctx, s, calls, f)
	}
	var n int
	switch _, err := s.one(ctx, "SELECT count(*) FROM (SELECT FROM run WHERE principal = $1 LIMIT $2) few", []any{f.Principal, fewRuns + 1}, &n); {
	case err != nil:
		return nil, "", failure(ctx, "postgres: list", err)
	case n > fewRuns:
		return list(ctx, s, callsByTime, f)
	default:
		return list(ctx, s, callsByRun, f)
	}
}

func list[T any](ctx context.Context, s *Store, l *listing[T], f *store.RunFilter) ([]T, string, error) {
	const op = "postgres: list"
	var q strings.Builder
	q.WriteString(l.query)
	var args []any
	arg := func(v any) string {
		args = append(args, v)
		return "$" + strconv.Itoa(len(args))
	}
	if f != nil {
		for _, c := range []struct{ column, value string }{{"run.run_id", f.RunID}, {"session_id", f.SessionID}, {"principal", f.Principal}, {"status", f.Status}} {
			if c.value != "" {
				q.WriteString(" AND " + c.column + " = " + arg(c.value))
			}
		}
		if !f.Since.IsZero() {
			q.WriteString(" AND " + l.order[0] + " >= " + arg(f.Since.UnixNano()))
		}
		if !f.Until.IsZero() {
			q.WriteString(" AND " + l.order[0] + " < " + arg(f.Until.UnixNano()))
		}
		if f.Signaled {
			q.WriteString(" AND status = 'parked' AND facts > seen_facts")
		}
		if f.After != "" {
			c, err := store.ParseCursor(f.After)
			if err != nil {
				return nil, "", err
			}
			after := []string{arg(c.Nanos), arg(c.RunID)}
			if len(l.order) == 3 {
				after = append(after, arg(c.EventID))
			}
			q.WriteString(" AND (" + strings.Join(l.order, ", ") + ") < (" + strings.Join(after, ", ") + ")")
		}
	}
	n := store.Page(f)
	q.WriteString(" ORDER BY " + strings.Join(l.order, " DESC, ") + " DESC LIMIT " + strconv.Itoa(n+1)) // not a parameter, because the plan depends on it
	out, err := collect(ctx, s.database, op, scanJSON[T], q.String(), args...)
	if err != nil {
		return nil, "", err
	}
	if len(out) > n {
		return out[:n], l.at(&out[n-1]).String(), nil
	}
	return out, "", nil
}

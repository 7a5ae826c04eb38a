package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/lathe-run/lathe/store/postgres"
)

const (
	kept      = 7   // of the simulated days, by retention
	templates = 100 // runs that are made; those of the days are copies of their rows
)

// days simulates days of runs: each day adds runs that have ended on it, and removes those that ended more than a week before,
// as nodes do with `retention.max_age`. It prints what the tables take and how fast runs are removed.
func (r *rig) days(ctx context.Context, out io.Writer) error {
	o := r.opts
	if err := r.fresh(ctx); err != nil {
		return err
	}
	if err := r.startNodes(ctx, 1, r.lathe); err != nil {
		return err
	}
	l := drive(ctx, newBalancer(r.nodes), "day", "plain", o.clients)
	for l.finished() < templates {
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	l.end()
	r.stopNodes()
	// The nodes' retention, and autovacuum as it is by default but without its pauses between tables, since a day takes seconds.
	for _, statement := range []string{"ALTER SYSTEM SET autovacuum_naptime = '1s'", "SELECT pg_reload_conf()",
		"CREATE TABLE template_run AS TABLE run", "CREATE TABLE template_event AS TABLE event", "CREATE TABLE template_model_call AS TABLE model_call",
		"CREATE INDEX ON template_event (run_id)", "CREATE INDEX ON template_model_call (run_id)", "TRUNCATE run, event, model_call, request", "ANALYZE"} {
		if _, err := r.conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	s, err := postgres.Open(ctx, r.store, nil)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // it is only measured
	fmt.Fprintf(out, "%d days of %d runs, kept for %d days\n", o.days, o.perDay, kept)
	fmt.Fprintf(out, "%4s %9s %10s %10s %11s %11s %12s %12s %13s %13s\n", "day", "runs", "tables", "indexes", "dead events", "dead runs", "inserted/s", "removed/s", "db CPU/added", "db CPU/removed")
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for day := range o.days {
		today := start.AddDate(0, 0, day)
		cpu, began := treeCPU(r.db.PID()), time.Now()
		if err := r.addDay(ctx, day, o.perDay, today); err != nil {
			return err
		}
		added, addCPU := time.Since(began), treeCPU(r.db.PID())-cpu
		var before, after int64
		if err := r.conn.QueryRow(ctx, "SELECT count(*) FROM run").Scan(&before); err != nil {
			return err
		}
		cpu, began = treeCPU(r.db.PID()), time.Now()
		if err := s.DeleteBefore(ctx, today.AddDate(0, 0, 1-kept)); err != nil {
			return err
		}
		removed, removeCPU := time.Since(began), treeCPU(r.db.PID())-cpu
		if err := r.conn.QueryRow(ctx, "SELECT count(*) FROM run").Scan(&after); err != nil {
			return err
		}
		var heap, indexes, deadEvents, deadRuns int64
		if err := r.conn.QueryRow(ctx, `SELECT sum(pg_table_size(relid))::bigint, sum(pg_indexes_size(relid))::bigint, sum(n_dead_tup) FILTER (WHERE relname = 'event'), sum(n_dead_tup) FILTER (WHERE relname = 'run')
			FROM pg_stat_user_tables WHERE relname IN ('run', 'event', 'model_call')`).Scan(&heap, &indexes, &deadEvents, &deadRuns); err != nil {
			return err
		}
		fmt.Fprintf(out, "%4d %9d %6d MiB %6d MiB %11d %11d %12.0f %12.0f %10.2f ms %10.2f ms\n", day+1, after, heap>>20, indexes>>20, deadEvents, deadRuns,
			float64(o.perDay)/added.Seconds(), float64(before-after)/removed.Seconds(), per(addCPU, int64(o.perDay)), per(removeCPU, before-after))
	}
	return nil
}

// addDay inserts copies of the template's runs, which end on a day.
func (r *rig) addDay(ctx context.Context, day, n int, on time.Time) error {
	if _, err := r.conn.Exec(ctx, fmt.Sprintf(`CREATE TEMP TABLE copied AS SELECT run_id AS was, 'run_' || left(upper(md5(run_id || '%d' || k)), 26) AS id
		FROM template_run, generate_series(1, %d) k LIMIT %d`, day, n/templates+1, n)); err != nil {
		return err
	}
	for _, table := range []string{"run", "event", "model_call"} {
		names, values, err := r.columns(ctx, table)
		if err != nil {
			return err
		}
		if _, err := r.conn.Exec(ctx, fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM template_%s t JOIN copied c ON t.run_id = c.was", table, names, values, table)); err != nil {
			return err
		}
	}
	if _, err := r.conn.Exec(ctx, "UPDATE run SET updated = $1 + (random() * 86399e9)::bigint, started = $1 WHERE run_id IN (SELECT id FROM copied)", on.UnixNano()); err != nil {
		return err
	}
	_, err := r.conn.Exec(ctx, "DROP TABLE copied")
	return err
}

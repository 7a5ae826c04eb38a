package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

// throughput measures the load of plain runs on each number of nodes, each on an empty database, and prints a row for each.
func (r *rig) throughput(ctx context.Context, out io.Writer) error {
	o := r.opts
	fmt.Fprintf(out, "model %s, %d clients, %v each, database limited to: %s\n", o.model, o.clients, o.span, r.limits)
	fmt.Fprintf(out, "%5s %7s %7s %8s %8s %14s %14s %9s %10s %10s %9s %11s\n", "nodes", "runs", "runs/s", "p50", "p99", "node CPU/run", "db CPU/run", "events/run", "bytes/run", "WAL/event", "FPI/run", "connections")
	for _, n := range o.nodes {
		if err := r.row(ctx, out, n); err != nil {
			return err
		}
	}
	return nil
}

func (r *rig) row(ctx context.Context, out io.Writer, n int) error {
	o := r.opts
	if err := r.fresh(ctx); err != nil {
		return err
	}
	if err := r.startNodes(ctx, n, r.lathe); err != nil {
		return err
	}
	defer r.stopNodes()
	b := newBalancer(r.nodes)
	warm := drive(ctx, b, "warm", o.model, o.clients) // connections, plans, pages of the tables
	if err := wait(ctx, o.span/5); err != nil {
		return err
	}
	warm.end()
	if o.statements {
		if _, err := r.conn.Exec(ctx, "SELECT pg_stat_statements_reset()"); err != nil {
			return err
		}
	}
	before, err := r.figures(ctx)
	if err != nil {
		return err
	}
	l := drive(ctx, b, "load", o.model, o.clients)
	most := 0
	for end := before.at.Add(o.span); time.Now().Before(end); {
		if err := wait(ctx, min(time.Second, time.Until(end))); err != nil {
			return err
		}
		now, err := r.connected(ctx)
		if err != nil {
			return err
		}
		most = max(most, now)
	}
	runs := l.end()
	after, err := r.figures(ctx)
	if err != nil {
		return err
	}
	var times []time.Duration
	for _, run := range runs {
		if run.tail.Whole {
			times = append(times, run.took)
		}
	}
	done, events := int64(len(times)), after.events-before.events
	if done == 0 || len(b.failed) > 0 {
		return fmt.Errorf("%d runs on %d nodes, failed requests: %v", done, n, b.failed)
	}
	took := after.at.Sub(before.at)
	fmt.Fprintf(out, "%5d %7d %7.1f %8s %8s %11.2f ms %11.2f ms %10.1f %10.0f %9.0f B %8.2f %11d\n", n, done, float64(done)/took.Seconds(),
		quantile(times, 0.5).Round(time.Millisecond), quantile(times, 0.99).Round(time.Millisecond), per(after.nodes-before.nodes, done), per(after.database-before.database, done),
		float64(events)/float64(done), float64(after.bytes-before.bytes)/float64(done), float64(after.wal-before.wal)/float64(events), float64(after.fullPages-before.fullPages)/float64(done), most)
	if o.statements {
		if err := r.statements(ctx, out, done); err != nil {
			return err
		}
	}
	if n == o.nodes[len(o.nodes)-1] {
		return r.tables(out, before, after, done)
	}
	return nil
}

// tables prints what a run takes in each table.
func (r *rig) tables(out io.Writer, before, after *figures, runs int64) error {
	fmt.Fprintf(out, "bytes of a run by table, and of its indexes:\n")
	for _, name := range []string{"event", "run", "model_call", "fact", "request", "call"} {
		was, is := before.tables[name], after.tables[name]
		fmt.Fprintf(out, "  %-12s %6.0f %6.0f\n", name, float64(is.heap-was.heap)/float64(runs), float64(is.indexes-was.indexes)/float64(runs))
	}
	return nil
}

// statements prints the statements that were executed most often since the statistics were reset, for each run.
func (r *rig) statements(ctx context.Context, out io.Writer, runs int64) error {
	rows, err := r.conn.Query(ctx, `SELECT calls, rows, left(regexp_replace(query, '\s+', ' ', 'g'), 100) FROM pg_stat_statements
		WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY calls DESC LIMIT 8`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var calls, n int64
		var query string
		if err := rows.Scan(&calls, &n, &query); err != nil {
			return err
		}
		fmt.Fprintf(out, "  %7.2f a run, %7.2f rows: %s\n", float64(calls)/float64(runs), float64(n)/float64(runs), query)
	}
	return rows.Err()
}

// wait blocks for d, or until ctx is done.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

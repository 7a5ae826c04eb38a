package main

import (
	"context"
	"slices"
	"time"
)

// Figures are what the nodes and the database have used up to a moment.
type figures struct {
	at           time.Time
	nodes        time.Duration // CPU of all nodes
	database     time.Duration // CPU of the database server
	generator    time.Duration // CPU of this process
	wal          int64         // bytes
	fullPages    int64         // pages that were written to the WAL as a whole, after a checkpoint
	runs, events int64         // stored
	bytes        int64         // of tables and indexes
	tables       map[string]size
}

// A size is what one table takes.
type size struct{ heap, indexes int64 }

// figures reads the counters now.
func (r *rig) figures(ctx context.Context) (*figures, error) {
	f := &figures{at: time.Now(), nodes: r.nodeCPU(), database: treeCPU(r.db.PID()), generator: ownCPU(), tables: map[string]size{}}
	if err := r.conn.QueryRow(ctx, "SELECT wal_bytes::bigint, wal_fpi FROM pg_stat_wal").Scan(&f.wal, &f.fullPages); err != nil {
		return nil, err
	}
	// The counter of WAL lags; the position does not.
	if err := r.conn.QueryRow(ctx, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint, (SELECT count(*) FROM run), (SELECT count(*) FROM event)").Scan(&f.wal, &f.runs, &f.events); err != nil {
		return nil, err
	}
	rows, err := r.conn.Query(ctx, "SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var s size
		if err := rows.Scan(&name, &s.heap, &s.indexes); err != nil {
			return nil, err
		}
		f.tables[name] = s
		f.bytes += s.heap + s.indexes
	}
	return f, rows.Err()
}

func ownCPU() time.Duration {
	own, _ := cpuOf(pidSelf)
	return own
}

// connected returns how many connections clients have to the database server, this command's left out.
func (r *rig) connected(ctx context.Context) (n int, err error) {
	err = r.conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()").Scan(&n)
	return n, err
}

// quantile returns the value below which so much of all values is, 0 if none exist.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[min(int(q*float64(len(all))), len(all)-1)]
}

// per returns d for each of n, in milliseconds.
func per(d time.Duration, n int64) float64 {
	if n == 0 {
		return 0
	}
	return float64(d) / float64(time.Millisecond) / float64(n)
}

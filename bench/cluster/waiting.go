package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// seeds is how many waiting runs are made through the API. The others are copies of their rows.
const seeds = 500

// waiting measures nodes that have runs which wait for an approval, active runs, and watchers: what they take at idle, and how
// long requests take meanwhile.
func (r *rig) waiting(ctx context.Context, out io.Writer) error {
	o := r.opts
	if err := r.fresh(ctx); err != nil {
		return err
	}
	if err := r.startNodes(ctx, o.nodes[0], r.lathe); err != nil {
		return err
	}
	b := newBalancer(r.nodes)
	fmt.Fprintf(out, "%d nodes, each state for %v, database limited to: %s\n", len(r.nodes), o.span, r.limits)
	fmt.Fprintf(out, "%-44s %16s %16s %12s %12s %12s\n", "state", "nodes: CPU ms/s", "db: CPU ms/s", "RSS a node", "connections", "watchers")
	if err := r.idle(ctx, out, "nothing", 0); err != nil {
		return err
	}
	ids, err := r.makeWaiting(ctx, b, o.waiting)
	if err != nil {
		return err
	}
	if err := r.idle(ctx, out, fmt.Sprintf("%d runs wait", o.waiting), 0); err != nil {
		return err
	}
	active, err := r.makeActive(ctx, b, o.active)
	if err != nil {
		return err
	}
	if err := r.idle(ctx, out, fmt.Sprintf("%d runs wait, %d are active", o.waiting, o.active), 0); err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer stop()
	var watching atomic.Int64
	for i := range o.watchers { // half of them watch active runs
		id := ids[i%len(ids)]
		if i%2 == 0 && len(active) > 0 {
			id = active[i%len(active)]
		}
		watchers.Go(func() { b.watch(following, id, &watching) })
	}
	if err := until(ctx, func() bool { return int(watching.Load()) >= o.watchers }); err != nil {
		return fmt.Errorf("%d of %d watchers: %w", watching.Load(), o.watchers, err)
	}
	if err := r.idle(ctx, out, fmt.Sprintf("%d wait, %d are active, %d watchers", o.waiting, o.active, o.watchers), int(watching.Load())); err != nil {
		return err
	}
	if err := r.requests(ctx, out, b, ids); err != nil {
		return err
	}
	if o.active > 0 {
		if err := r.failover(ctx, out); err != nil {
			return err
		}
	}
	b.print(out)
	if len(b.failed) > 0 {
		return errors.New("requests failed")
	}
	return nil
}

// idle prints what nodes and database take without requests.
func (r *rig) idle(ctx context.Context, out io.Writer, state string, watchers int) error {
	if err := wait(ctx, r.opts.span/3); err != nil { // what the state has caused is over
		return err
	}
	nodes, db, began := r.nodeCPU(), treeCPU(r.db.PID()), time.Now()
	if err := wait(ctx, r.opts.span); err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	nodes, db = r.nodeCPU()-nodes, treeCPU(r.db.PID())-db
	conns, err := r.connected(ctx)
	if err != nil {
		return err
	}
	var rss int64
	for _, n := range r.nodes {
		rss += resident(n.pid())
	}
	fmt.Fprintf(out, "%-44s %16.1f %16.1f %8.0f MiB %12d %12d\n", state, float64(nodes.Milliseconds())/took, float64(db.Milliseconds())/took, float64(rss)/float64(len(r.nodes))/(1<<20), conns, watchers)
	return nil
}

// nodeCPU returns the CPU time of all nodes.
func (r *rig) nodeCPU() (sum time.Duration) {
	for _, n := range r.nodes {
		sum += n.cpu()
	}
	return sum
}

// makeWaiting makes runs that wait for an approval, and returns the ids of some of them.
func (r *rig) makeWaiting(ctx context.Context, b *balancer, n int) ([]string, error) {
	made, err := r.begin(ctx, b, "wait", min(n, seeds))
	if err != nil {
		return nil, err
	}
	if err := until(ctx, func() bool {
		var parked int
		return r.conn.QueryRow(ctx, "SELECT count(*) FROM run WHERE status = 'parked' AND owner IS NULL").Scan(&parked) == nil && parked == len(made)
	}); err != nil {
		return nil, fmt.Errorf("making runs that wait: %w", err)
	}
	if n > len(made) {
		if err := r.copyRuns(ctx, n-len(made)); err != nil {
			return nil, fmt.Errorf("copying runs that wait: %w", err)
		}
	}
	rows, err := r.conn.Query(ctx, "SELECT run_id FROM run ORDER BY md5(run_id) LIMIT 2000")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// copyRuns copies the rows of the runs that there are until there are n more. The JSON in them names the run.
func (r *rig) copyRuns(ctx context.Context, n int) error {
	if _, err := r.conn.Exec(ctx, fmt.Sprintf(`CREATE TEMP TABLE copied AS SELECT run_id AS was, 'run_' || left(upper(md5(run_id || k)), 26) AS id
		FROM run, generate_series(1, %d) k LIMIT %d`, n/seeds+1, n)); err != nil {
		return err
	}
	for _, table := range []string{"run", "event", "model_call"} {
		names, values, err := r.columns(ctx, table)
		if err != nil {
			return err
		}
		if _, err := r.conn.Exec(ctx, fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s t JOIN copied c ON t.run_id = c.was", table, names, values, table)); err != nil {
			return err
		}
	}
	_, err := r.conn.Exec(ctx, "DROP TABLE copied")
	if err == nil {
		_, err = r.conn.Exec(ctx, "VACUUM ANALYZE")
	}
	return err
}

// columns returns the columns of a table, and what a copy of a row of t has in each: the id of the run c.id in place of c.was.
func (r *rig) columns(ctx context.Context, table string) (names, values string, err error) {
	err = r.conn.QueryRow(ctx, `SELECT string_agg(quote_ident(column_name), ', ' ORDER BY ordinal_position),
			string_agg(CASE WHEN column_name = 'run_id' THEN 'c.id' WHEN data_type = 'bytea'
				THEN 'convert_to(replace(convert_from(t.' || quote_ident(column_name) || ', ''UTF8''), c.was, c.id), ''UTF8'')'
				ELSE 't.' || quote_ident(column_name) END, ', ' ORDER BY ordinal_position)
		FROM information_schema.columns WHERE table_schema = 'public' AND table_name = $1 AND is_generated = 'NEVER'`, table).Scan(&names, &values)
	return names, values, err
}

// begin begins n runs of a model and returns their ids.
func (r *rig) begin(ctx context.Context, b *balancer, model string, n int) ([]string, error) {
	const atOnce = 32
	ids := make([]string, n)
	var next atomic.Int64
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if run := b.begin(ctx, model, fmt.Sprintf("%s-%d", model, i)); run != nil {
					ids[i] = run.id
				}
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		if id == "" {
			return nil, fmt.Errorf("not all of %d runs could be begun: %v %v", n, b.failed, b.repeated)
		}
	}
	return ids, ctx.Err()
}

// makeActive makes runs whose model call does not end.
func (r *rig) makeActive(ctx context.Context, b *balancer, n int) ([]string, error) {
	ids, err := r.begin(ctx, b, "hold", n)
	if err != nil {
		return nil, err
	}
	if err := until(ctx, func() bool { return r.world.held() >= n }); err != nil {
		return nil, fmt.Errorf("%d of %d runs are active: %w", r.world.held(), n, err)
	}
	return ids, nil
}

// watch follows a run, over as many connections as it takes.
func (b *balancer) watch(ctx context.Context, id string, watching *atomic.Int64) {
	for ctx.Err() == nil {
		resp, err := b.send(ctx, "GET", b.address()+"/api/runs/"+id+"/events", "", nil)
		if err == nil && resp.StatusCode == http.StatusOK {
			lines := bufio.NewReader(resp.Body)
			if _, err = lines.ReadString('\n'); err == nil {
				watching.Add(1)
				_, _ = io.Copy(io.Discard, lines) // until the run or the connection ends
				watching.Add(-1)
			}
		}
		if err == nil {
			_ = resp.Body.Close()
		}
		if ctx.Err() == nil {
			b.repeat("a watcher's stream broke")
			_ = wait(ctx, 100*time.Millisecond)
		}
	}
}

// requests prints how long single requests take, one after the other.
func (r *rig) requests(ctx context.Context, out io.Writer, b *balancer, ids []string) error {
	const each = 100
	get := func(path string) func(int) error {
		return func(int) error {
			if _, ok := b.do(ctx, "GET", path, "", nil, http.StatusOK); !ok {
				return fmt.Errorf("GET %s: %v", path, b.failed)
			}
			return nil
		}
	}
	fmt.Fprintf(out, "%-60s %10s %10s\n", "request, one at a time", "p50", "p99")
	for _, row := range []struct {
		name string
		do   func(i int) error
	}{
		{"GET /api/runs, 50 runs", get("/api/runs?limit=50")},
		{"GET /api/runs?status=parked, 50 runs", get("/api/runs?limit=50&status=parked")},
		{"GET /api/approvals, 50 calls", get("/api/approvals?limit=50")},
		{"a run is begun, and its first event is received", func(i int) error {
			run := b.begin(ctx, "plain", fmt.Sprintf("probe-%d", i))
			if run == nil {
				return errors.New("a run could not be begun")
			}
			resp, err := b.send(ctx, "GET", b.address()+"/api/runs/"+run.id+"/events", "", nil)
			if err != nil {
				return err
			}
			defer func() { _ = resp.Body.Close() }() // no more is read
			_, err = bufio.NewReader(resp.Body).ReadString('\n')
			return err
		}},
		{"an approval of a run that waits, until its answer is stored", func(i int) error { return b.decide(ctx, ids[len(ids)-1-i]) }},
	} {
		times := make([]time.Duration, each)
		for i := range times {
			began := time.Now()
			if err := row.do(i); err != nil {
				return fmt.Errorf("%s: %w", row.name, err)
			}
			times[i] = time.Since(began)
		}
		fmt.Fprintf(out, "%-60s %10s %10s\n", row.name, quantile(times, 0.5).Round(100*time.Microsecond), quantile(times, 0.99).Round(100*time.Microsecond))
	}
	return nil
}

// decide approves the call that a run waits for, and waits until the run has ended.
func (b *balancer) decide(ctx context.Context, id string) error {
	run := &run{id: id}
	b.unpause(ctx, run)
	if len(run.approved) != 1 {
		return fmt.Errorf("%d calls of %s were approved: %v", len(run.approved), id, b.failed)
	}
	if !b.see(ctx, run) {
		return errors.Join(fmt.Errorf("the end of %s was not seen: %v", id, b.failed), ctx.Err())
	}
	var last struct{ Data struct{ Reason string } }
	if err := json.Unmarshal([]byte(run.tail.Lines[len(run.tail.Lines)-1]), &last); err != nil || !strings.HasPrefix(last.Data.Reason, "answered") {
		return fmt.Errorf("%s ended with %q, %v", id, last.Data.Reason, err)
	}
	return nil
}

// failover kills one node and prints how long it takes until the others have resumed its runs.
func (r *rig) failover(ctx context.Context, out io.Writer) error {
	before := r.world.held()
	r.nodes[0].stop(syscall.SIGKILL)
	began := time.Now()
	fewest := before
	if err := until(ctx, func() bool {
		now := r.world.held()
		fewest = min(fewest, now)
		return fewest < before && now >= before
	}); err != nil {
		return fmt.Errorf("%d of %d runs are active after a node was killed: %w", r.world.held(), before, err)
	}
	fmt.Fprintf(out, "one node killed: its %d active runs are executed by the others %v later, lease %v\n", before-fewest, time.Since(began).Round(100*time.Millisecond), r.opts.lease)
	return r.nodes[0].start(ctx)
}

// until polls a condition until it holds, for patience at most.
func until(ctx context.Context, holds func() bool) error {
	const patience = 10 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !holds() {
		if err := wait(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

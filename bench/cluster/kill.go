package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testkit/enginetest"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/postgres"
)

// kill has clients make runs while one node is killed again and again, and compares that with the same load before and after,
// without kills. It is an error if one of the checks does not hold.
func (r *rig) kill(ctx context.Context, out io.Writer) error {
	o := r.opts
	n := o.nodes[0]
	if err := r.fresh(ctx); err != nil {
		return err
	}
	if err := r.startNodes(ctx, n, r.lathe); err != nil {
		return err
	}
	b := newBalancer(r.nodes)
	warm := drive(ctx, b, "warm", "asks", o.clients)
	if err := wait(ctx, o.span/5); err != nil {
		return err
	}
	all := warm.end()
	calm := func(ctx context.Context) error { return wait(ctx, o.quiet) }
	kills := 0
	rng := rand.New(rand.NewPCG(o.seed, 1))
	befall := func(ctx context.Context) error {
		if err := wait(ctx, o.kill); err != nil {
			return err
		}
		victim := r.nodes[rng.IntN(len(r.nodes))]
		victim.stop(syscall.SIGKILL)
		kills++
		return victim.start(ctx)
	}
	fmt.Fprintf(out, "%d nodes, %d clients, lease %v, one of them killed every %v\n", n, o.clients, o.lease, o.kill)
	var calmRate, killedRate rate
	// Half of the load without kills is before the other, and half after it: the machine may have other work meanwhile.
	for _, phase := range []struct {
		name   string
		span   time.Duration
		befall func(context.Context) error
		into   *rate
	}{{"before", o.quiet / 2, calm, &calmRate}, {"killed", o.span, befall, &killedRate}, {"after", o.quiet / 2, calm, &calmRate}} {
		runs, got, err := r.under(ctx, b, phase.name, phase.span, phase.befall)
		if err != nil {
			return err
		}
		all = append(all, runs...)
		phase.into.add(got)
	}
	fmt.Fprintf(out, "without kills: %s\nwith kills:    %s\n", &calmRate, &killedRate)
	fmt.Fprintf(out, "runs a second and surviving node with kills: %.0f %% of those without; runs of a second of CPU: %.0f %%\n",
		100*killedRate.perNode()/calmRate.perNode(), 100*killedRate.perCPU()/calmRate.perCPU())
	table, lost, err := r.judge(ctx, all, kills, out)
	if err != nil {
		return err
	}
	fmt.Fprint(out, table)
	fmt.Fprintf(out, "%-30s %8d\n", "acknowledged answers lost", lost)
	b.print(out)
	if table.Broken() || lost > 0 || len(b.failed) > 0 {
		return errors.New("not all of these are zero")
	}
	return nil
}

// A rate is what a load came to.
type rate struct {
	done int           // runs that were finished
	took time.Duration // of the load
	up   time.Duration // that nodes accepted requests, summed up
	cpu  time.Duration // of the nodes and the database
}

func (a *rate) add(b rate) {
	a.done, a.took, a.up, a.cpu = a.done+b.done, a.took+b.took, a.up+b.up, a.cpu+b.cpu
}

func (a *rate) perNode() float64 { return float64(a.done) / a.up.Seconds() }
func (a *rate) perCPU() float64  { return float64(a.done) / a.cpu.Seconds() }

// String returns the rate in one line.
func (a *rate) String() string {
	return fmt.Sprintf("%d runs in %v, %.1f a second, %.2f a second and node that was up (%.2f on average), %.1f ms of CPU each",
		a.done, a.took.Round(time.Second), float64(a.done)/a.took.Seconds(), a.perNode(), a.up.Seconds()/a.took.Seconds(), per(a.cpu, int64(a.done)))
}

// under has clients make runs for span, while befall happens again and again.
func (r *rig) under(ctx context.Context, b *balancer, name string, span time.Duration, befall func(context.Context) error) ([]*run, rate, error) {
	up, cpu, began := r.uptime(), r.cpu(), time.Now()
	l := drive(ctx, b, name, "asks", r.opts.clients)
	within, cancel := context.WithDeadline(ctx, began.Add(span))
	defer cancel()
	for within.Err() == nil {
		if err := befall(within); err != nil && within.Err() == nil {
			return nil, rate{}, err
		}
	}
	if ctx.Err() != nil {
		return nil, rate{}, ctx.Err()
	}
	for _, n := range r.nodes { // the end of the span may have broken off the start of one
		if n.pid() == 0 {
			if err := n.start(ctx); err != nil {
				return nil, rate{}, err
			}
		}
	}
	got := rate{done: l.finished(), took: time.Since(began), up: r.uptime() - up, cpu: r.cpu() - cpu}
	return l.end(), got, nil
}

// cpu returns the CPU time of all nodes and the database.
func (r *rig) cpu() time.Duration { return treeCPU(r.db.PID()) + r.nodeCPU() }

func (r *rig) uptime() (sum time.Duration) {
	for _, n := range r.nodes {
		sum += n.uptime()
	}
	return sum
}

// judge compares the logs of runs with what clients, the model and the tools have seen. It returns the counts, and how many
// answers were acknowledged and are not in the log of their run.
func (r *rig) judge(ctx context.Context, runs []*run, kills int, out io.Writer) (*enginetest.Table, int, error) {
	s, err := postgres.Open(ctx, r.store, nil)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = s.Close() }() // it was only read
	table, lost := &enginetest.Table{Kills: kills}, 0
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	const shown = 20
	for part := range slices.Chunk(runs, 100) { // the checks compare each run with each execution
		h := &enginetest.History{Tools: tools}
		for _, run := range part {
			l, missing, err := r.logOf(ctx, s, run)
			if err != nil {
				return nil, 0, err
			}
			lost += missing
			h.Runs, h.Tails = append(h.Runs, *l), append(h.Tails, run.tail)
			h.Deeds = append(h.Deeds, r.deedsOf(run, l)...)
		}
		bad := h.Check()
		for i, v := range bad {
			if i < shown {
				fmt.Fprintln(out, v)
			}
		}
		table.Add(h, bad)
	}
	return table, lost, nil
}

// logOf reads the log of a run, and counts the acknowledged answers that it lacks.
func (r *rig) logOf(ctx context.Context, s *postgres.Store, run *run) (*enginetest.RunLog, int, error) {
	l := &enginetest.RunLog{ID: run.id, Acked: true, Asked: r.world.asked[run.tag]}
	approved := map[string]bool{}
	for e, err := range s.Read(ctx, run.id, 0) {
		if errors.Is(err, lathe.ErrNotFound) {
			break // the check reports it
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", run.id, err)
		}
		l.Events = append(l.Events, e)
		if d, ok := e.Data.(*event.ApprovalResolved); ok && d.Decision == "approved" {
			approved[d.ToolCallID] = true
		}
	}
	rows, _, err := s.Runs(ctx, &store.RunFilter{RunID: run.id})
	if err != nil {
		return nil, 0, err
	}
	if len(rows) == 1 {
		l.Row = &rows[0]
	}
	lost := 0
	for _, id := range run.approved {
		if !approved[id] {
			lost++
		}
	}
	return l, lost, nil
}

// deedsOf returns the executions of a run's calls. The world knows them by the run's tag and the arguments.
func (r *rig) deedsOf(run *run, l *enginetest.RunLog) []enginetest.Deed {
	calls := map[string]string{} // ids by arguments
	for i := range l.Events {
		d, ok := l.Events[i].Data.(*event.ModelCallFinished)
		if !ok || d.Message == nil {
			continue
		}
		for _, p := range d.Message.Parts {
			if c, ok := p.(lathe.ToolCall); ok {
				calls[c.Arguments] = c.ID
			}
		}
	}
	deeds := slices.Clone(r.world.deeds[run.tag])
	for i := range deeds {
		deeds[i].RunID, deeds[i].CallID = run.id, calls[string(deeds[i].Args)]
	}
	return deeds
}

// print prints how requests fared.
func (b *balancer) print(out io.Writer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintf(out, "%-30s %8d\n", "requests", b.requests)
	for _, cause := range slices.Sorted(keysOf(b.repeated)) {
		fmt.Fprintf(out, "%-30s %8d\n", "  repeated: "+cause, b.repeated[cause])
	}
	failed := 0
	for _, cause := range slices.Sorted(keysOf(b.failed)) {
		failed += b.failed[cause]
		fmt.Fprintf(out, "  failed: %s: %d\n", cause, b.failed[cause])
	}
	fmt.Fprintf(out, "%-30s %8d\n", "requests failed", failed)
}

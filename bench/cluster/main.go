package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var pidSelf = os.Getpid()

// Options are what the flags say.
type options struct {
	nodes       []int
	clients     int
	model       string
	span        time.Duration
	quiet       time.Duration
	kill        time.Duration
	waiting     int
	active      int
	watchers    int
	upgrade     string
	rows        int
	days        int
	perDay      int
	bouncer     int
	lease       time.Duration
	drain       time.Duration
	seed        uint64
	databaseCPU float64
	statements  bool
	dir, lathe  string
	serve       string                    // more settings of `serve`
	through     func(store string) string // the URL that nodes use; nil: that of the database
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

// command does what the arguments say.
func command(ctx context.Context, args []string, out io.Writer) error {
	o := &options{}
	f := flag.NewFlagSet("cluster", flag.ContinueOnError)
	nodes := f.String("nodes", "1,2,4,8", "nodes; `numbers` for the table of throughput, one number for all else")
	f.IntVar(&o.clients, "clients", 32, "clients, each of which makes one run after the other")
	f.StringVar(&o.model, "model", "plain", "plain or asks: what the runs of the table of throughput do")
	f.DurationVar(&o.span, "for", 30*time.Second, "how long each load takes")
	f.DurationVar(&o.quiet, "quiet", 0, "how long the load without faults takes that is compared with the one with faults; default: as long")
	f.DurationVar(&o.kill, "kill", 0, "kill one node, chosen at random, each `interval`, and start it again")
	f.IntVar(&o.waiting, "waiting", 0, "measure with so many runs that wait for an approval, and nothing else; see -active and -watchers")
	f.IntVar(&o.active, "active", 0, "with -waiting: so many runs whose model call does not end")
	f.IntVar(&o.watchers, "watchers", 0, "with -waiting: so many streams of events, half of them of active runs")
	f.StringVar(&o.upgrade, "upgrade", "", "replace nodes of an older `version`, a commit or the path of a binary, one by one under load")
	f.IntVar(&o.rows, "rows", 0, "with -upgrade: so many runs that wait are in the tables which are migrated")
	f.IntVar(&o.days, "days", 0, "simulate so many days of runs, of which a week is kept")
	f.IntVar(&o.perDay, "per-day", 20_000, "with -days: runs of a day")
	f.IntVar(&o.bouncer, "bouncer", 0, "have the nodes use the database through PgBouncer in transaction mode, with so many `connections` to it")
	f.DurationVar(&o.lease, "lease", 10*time.Second, "cluster.lease of the nodes")
	f.DurationVar(&o.drain, "drain", 5*time.Second, "serve.drain_timeout of the nodes")
	f.Uint64Var(&o.seed, "seed", 1, "which nodes are killed")
	f.Float64Var(&o.databaseCPU, "database-cpu", 0, "bound the database server to so many `cores`; 0: it may use all")
	f.BoolVar(&o.statements, "statements", false, "print the most frequent statements of a run in the table of throughput; the server needs pg_stat_statements, which takes some CPU")
	f.StringVar(&o.dir, "dir", "", "folder of the data; default: that of temporary files")
	f.StringVar(&o.lathe, "lathe", "", "`path` of a binary of lathe; default: one is built")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%q is no flag: see -help", f.Arg(0))
	}
	for _, text := range strings.Split(*nodes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxNodes {
			return fmt.Errorf("-nodes %s: want numbers from 1 to %d", *nodes, maxNodes)
		}
		o.nodes = append(o.nodes, n)
	}
	if o.clients < 1 || o.span <= 0 {
		return fmt.Errorf("-clients %d -for %v: both must be positive", o.clients, o.span)
	}
	if o.waiting < 0 || o.active < 0 || o.watchers < 0 || o.waiting == 0 && o.active+o.watchers > 0 {
		return fmt.Errorf("-waiting %d -active %d -watchers %d: want no negative number, and -waiting with the others", o.waiting, o.active, o.watchers)
	}
	if scripts[o.model] == nil || o.model == "hold" || o.model == "wait" {
		return fmt.Errorf("-model %s: want plain or asks", o.model)
	}
	if o.active > 0 {
		o.serve = fmt.Sprintf(", max_runs: %d", max(2*o.active, 1024))
	}
	if o.quiet <= 0 {
		o.quiet = o.span
	}
	if o.rows < 0 || o.days < 0 || o.perDay < 1 || o.bouncer < 0 {
		return fmt.Errorf("-rows %d -days %d -per-day %d -bouncer %d: want no negative number", o.rows, o.days, o.perDay, o.bouncer)
	}
	one := o.kill > 0 || o.waiting > 0 || o.upgrade != ""
	if one && len(o.nodes) > 1 {
		return fmt.Errorf("-nodes %s: name one number of nodes for this measurement, such as -nodes 8", *nodes)
	}
	fmt.Fprintf(out, "%s %s/%s, %d cores, %s, %s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), time.Now().UTC().Format("2006-01-02"), "cluster "+strings.Join(args, " "))
	return withRig(ctx, o, func(r *rig) error {
		switch {
		case o.kill > 0:
			return r.kill(ctx, out)
		case o.waiting > 0:
			return r.waiting(ctx, out)
		case o.upgrade != "":
			return r.upgrade(ctx, out)
		case o.days > 0:
			return r.days(ctx, out)
		}
		return r.throughput(ctx, out)
	})
}

// maxNodes bounds the nodes: each has at most 13 connections to the database.
const maxNodes = 16

func keysOf(m map[string]int) iter.Seq[string] { return maps.Keys(m) }

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/lathe-run/lathe/bench/internal/load"
	"github.com/lathe-run/lathe/bench/internal/proc"
	"github.com/lathe-run/lathe/internal/report"
)

const (
	atOnce = 10  // requests at once, but for the sweep
	warmUp = 300 // requests before those that are measured
)

func main() {
	serve := flag.Bool("serve", false, "be the model server")
	requests := flag.Int("n", 20_000, "requests of each variant in a round")
	rounds := flag.Int("rounds", 5, "rounds")
	span := flag.Duration("span", 8*time.Second, "time of each load of the sweep")
	lathe := flag.String("lathe", "", "`path` of the binary of lathe to measure; without it the one of this source is built")
	gomodel := flag.String("gomodel", "", "`path` of the program of GoModel, which is measured beside lathe")
	portkey := flag.String("portkey", "", "`path` of build/start-server.js of Portkey's gateway, which is measured beside lathe")
	flag.Parse()
	var err error
	if *serve {
		err = proc.Serve(modelServer())
	} else {
		err = measure(os.Stdout, *lathe, *gomodel, *portkey, *requests, *rounds, *span)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "public:", err)
		os.Exit(1)
	}
}

// A rig is the model server, the gateways, and what their rounds came to.
type rig struct {
	mock     *proc.Process
	gateways []*gateway
	results  map[string]*result // by the name of the gateway
	requests int
	span     time.Duration
}

// A result is what the rounds of one gateway came to, in milliseconds, MiB and requests a second.
type result struct {
	cold, idle, peak      []float64
	p50, p99, first, rate map[variant][]float64
	cpu                   map[variant][]float64 // µs a request
	sweep                 map[int]float64
	failed                map[variant]int
}

func newResult() *result {
	of := func() map[variant][]float64 { return map[variant][]float64{} }
	return &result{p50: of(), p99: of(), first: of(), rate: of(), cpu: of(), sweep: map[int]float64{}, failed: map[variant]int{}}
}

// measure writes the tables to w.
func measure(w io.Writer, lathe, gomodel, portkey string, requests, rounds int, span time.Duration) error {
	dir, err := os.MkdirTemp("", "bench-public-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if lathe == "" {
		lathe = filepath.Join(dir, "lathe")
		if err := proc.BuildLathe(context.Background(), lathe); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	r := &rig{results: map[string]*result{}, requests: requests, span: span}
	if r.mock, err = proc.Start("the model server", -1, self, "-serve"); err != nil {
		return err
	}
	defer r.mock.Stop()
	if r.gateways, err = gateways(dir, r.mock.Base, lathe, gomodel, portkey); err != nil {
		return err
	}
	for _, g := range r.gateways {
		r.results[g.name] = newResult()
	}
	for round := range rounds {
		order := slices.Clone(r.gateways)
		rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, g := range order {
			if err := r.round(g, round == 0); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "round %d of %d: %s is done\n", round+1, rounds, g.name)
		}
	}
	fmt.Fprintf(w, "%s %s/%s, %d cores for all processes, %d rounds of %d requests, medians\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), rounds, requests)
	return r.report(w)
}

// round starts a gateway, measures it, and stops it. The sweep is made once.
func (r *rig) round(g *gateway, sweep bool) error {
	p := r.mock
	if g.run != nil {
		var err error
		if p, err = g.start(); err != nil {
			return err
		}
		defer p.Stop()
	}
	x := r.results[g.name]
	x.cold = append(x.cold, p.Ready.Seconds()*1e3)
	x.idle = append(x.idle, float64(p.Memory())/1024)
	peak := 0
	for _, v := range variants {
		if !g.serves(v) {
			continue
		}
		c := g.client(p.Base, v)
		load.Run(p, c, atOnce, warmUp/atOnce, 0)
		s := load.Run(p, c, atOnce, r.requests/atOnce, 0)
		if x.failed[v] += s.Failed; s.Failed > 0 {
			fmt.Fprintf(os.Stderr, "%s, %s: %d requests failed: %v\n", g.name, v, s.Failed, s.First)
		}
		if len(s.Answers) == 0 {
			continue
		}
		x.p50[v] = append(x.p50[v], s.At(0.5, load.Whole).Seconds()*1e3)
		x.p99[v] = append(x.p99[v], s.At(0.99, load.Whole).Seconds()*1e3)
		x.first[v] = append(x.first[v], s.At(0.5, load.First).Seconds()*1e3)
		x.rate[v] = append(x.rate[v], float64(len(s.Answers))/s.Took.Seconds())
		x.cpu[v] = append(x.cpu[v], float64(s.CPU.Microseconds())/float64(len(s.Answers)))
		peak = max(peak, s.RSS)
	}
	x.peak = append(x.peak, float64(peak)/1024)
	if sweep && g.serves(variants[0]) {
		for _, n := range connections {
			s := load.Run(p, g.client(p.Base, variants[0]), n, 0, r.span)
			x.sweep[n] = float64(len(s.Answers)) / s.Took.Seconds()
		}
	}
	return nil
}

var connections = []int{1, 2, 4, 8, 16, 32, 64, 128, 256}

// report writes one table for each variant, and those of the sweep, starts and memory.
func (r *rig) report(w io.Writer) error {
	for _, v := range variants {
		var t report.Table
		t.Row("gateway", "protocol", "p50 ms", "p99 ms", "first byte ms", "requests/s", "CPU µs a request", "failed")
		for _, g := range r.gateways {
			x := r.results[g.name]
			if g.serves(v) {
				t.Row(g.name, g.form[v.api], formatMedian("%.2f", x.p50[v]), formatMedian("%.2f", x.p99[v]), formatMedian("%.2f", x.first[v]), formatMedian("%.0f", x.rate[v]), formatMedian("%.0f", x.cpu[v]), x.failed[v])
			}
		}
		fmt.Fprintf(w, "\n**%s, %d at once**\n\n", v, atOnce)
		if err := t.WriteMarkdown(w, "llrrrrrr"); err != nil {
			return err
		}
	}
	var sweep, process report.Table
	head := []any{"gateway"}
	for _, n := range connections {
		head = append(head, n)
	}
	sweep.Row(head...)
	process.Row("gateway", "first answer after ms", "idle MiB", "under load MiB", "does not serve")
	for _, g := range r.gateways {
		x := r.results[g.name]
		if len(x.sweep) > 0 {
			row := []any{g.name}
			for _, n := range connections {
				row = append(row, fmt.Sprintf("%.0f", x.sweep[n]))
			}
			sweep.Row(row...)
		}
		if g.run != nil {
			process.Row(g.name, formatMedian("%.0f", x.cold), formatMedian("%.1f", x.idle), formatMedian("%.1f", x.peak), g.notServed())
		}
	}
	fmt.Fprint(w, "\n**requests/s by connections, chat, whole**\n\n")
	if err := sweep.WriteMarkdown(w, "lrrrrrrrrr"); err != nil {
		return err
	}
	fmt.Fprint(w, "\n**the process**\n\n")
	return process.WriteMarkdown(w, "lrrrl")
}

// formatMedian formats the median of v. It returns a dash if v is empty.
func formatMedian(format string, v []float64) string {
	if len(v) == 0 {
		return "–"
	}
	return fmt.Sprintf(format, load.Median(v))
}

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe/bench/internal/load"
	"github.com/lathe-run/lathe/internal/report"
)

// A row is what one contender came to in each round.
type row struct {
	p50, p99, first      []time.Duration
	request, event       []float64 // µs
	rate                 []float64 // a second
	rss, failed, answers int
}

// tables measures all contenders in alternation, under the loads whose title has only in it.
func (r *rig) tables(only string, rounds int, span time.Duration) error {
	fmt.Printf("%s %s/%s, gateways on core 0, model server and clients on core 1, %d rounds, medians\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, rounds)
	time.Sleep(time.Second) // nothing is at work: the memory is that of a process that waits
	idle := map[string]int{}
	for _, p := range r.gateways {
		idle[p.Name] = p.Memory()
	}
	for _, l := range []struct {
		what, model   string
		stream        bool
		clients, most int
		span          time.Duration
	}{
		{"one request at a time, stream false, 50 tokens", "t50", false, 1, 150, 0},
		{"32 connections, stream false, 50 tokens", "t50", false, 32, 0, span},
		{"one request at a time, stream true, 50 tokens", "t50", true, 1, 150, 0},
		{"32 connections, stream true, 50 tokens", "t50", true, 32, 0, span},
		{"32 connections, stream true, 500 tokens", "t500", true, 32, 0, span},
		{"64 paced streams of 100 tokens, one each 5 ms", "p100", true, 64, 1, 0},
	} {
		if !strings.Contains(l.what, only) {
			continue
		}
		if err := r.table(l.what, l.model, l.stream, l.clients, rounds, l.most, l.span); err != nil {
			return err
		}
	}
	var t report.Table
	t.Row("gateway", "RSS idle MiB", "listens after ms")
	for _, p := range r.gateways {
		t.Row(p.Name, fmt.Sprintf("%.1f", float64(idle[p.Name])/1024), p.Ready.Milliseconds())
	}
	fmt.Print("\n**idle**\n\n")
	if err := t.WriteMarkdown(os.Stdout, "lrr"); err != nil {
		return err
	}
	fmt.Printf("\nlathe's binary, stripped: %.1f MB\n", float64(r.size)/1e6)
	return nil
}

func (r *rig) table(what, model string, stream bool, clients, rounds, most int, span time.Duration) error {
	rows := make([]row, len(r.gateways))
	var failed error
	for range rounds {
		for i, p := range r.gateways {
			s := load.Run(p, newClient(p.Base, model, stream), clients, most, span)
			x := &rows[i]
			x.failed, x.answers, x.rss = x.failed+s.Failed, x.answers+len(s.Answers), max(x.rss, s.RSS)
			if len(s.Answers) == 0 {
				return fmt.Errorf("%s, %s: %w", what, p.Name, s.First)
			}
			failed = errors.Join(failed, s.First)
			x.p50, x.p99, x.first = append(x.p50, s.At(0.5, load.Whole)), append(x.p99, s.At(0.99, load.Whole)), append(x.first, s.At(0.5, load.First))
			cpu := float64(s.CPU.Nanoseconds()) / 1e3
			x.request, x.event = append(x.request, cpu/float64(len(s.Answers))), append(x.event, cpu/float64(max(s.Events, 1)))
			x.rate = append(x.rate, float64(len(s.Answers))/s.Took.Seconds())
		}
	}
	var t report.Table
	t.Row("gateway", "p50 µs", "added", "p99 µs", "added", "first byte p50 µs", "CPU µs a request", "CPU µs an event", "requests/s", "RSS MiB", "failed")
	added := func(d time.Duration) string { return fmt.Sprintf("%+d", us(d)) }
	for i, p := range r.gateways {
		x := &rows[i]
		event := "–"
		if stream {
			event = fmt.Sprintf("%.2f", load.Median(x.event))
		}
		t.Row(p.Name, us(load.Median(x.p50)), added(load.Median(x.p50)-load.Median(rows[0].p50)), us(load.Median(x.p99)), added(load.Median(x.p99)-load.Median(rows[0].p99)), us(load.Median(x.first)),
			fmt.Sprintf("%.1f", load.Median(x.request)), event, fmt.Sprintf("%.0f", load.Median(x.rate)), fmt.Sprintf("%.1f", float64(x.rss)/1024), x.failed)
	}
	fmt.Printf("\n**%s**\n\n", what)
	if err := t.WriteMarkdown(os.Stdout, "lrrrrrrrrrr"); err != nil {
		return err
	}
	if failed != nil {
		fmt.Fprintln(os.Stderr, "some requests failed:", failed)
	}
	return nil
}

func us(d time.Duration) int64 { return d.Microseconds() }

// soak holds many streams open on lathe for a while, and says whether its memory stays flat: whether it
// comes down, in the last third of the time, to what it had in the middle one, but for a tenth.
func (r *rig) soak(streams int, length time.Duration) error {
	p := r.gateways[3]
	fmt.Printf("%d streams of 2 000 tokens on lathe, one token each 5 ms, for %s; idle %.1f MiB\n", streams, length, float64(p.Memory())/1024)
	c := newClient(p.Base, "p2000", true)
	done := make(chan *load.Sample, 1)
	go func() { done <- load.Run(p, c, streams, 0, length) }()
	began := time.Now()
	var thirds [3][]int
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last := time.Duration(0)
	for {
		select {
		case s := <-done:
			middle, end := load.Median(thirds[1]), slices.Min(thirds[2])
			fmt.Printf("%d answers, %d failed, %d events, %.2f µs of CPU an event, %.1f MiB at most, %.1f in the middle third, %.1f at least in the last\n",
				len(s.Answers), s.Failed, s.Events, float64(s.CPU.Nanoseconds())/1e3/float64(max(s.Events, 1)), float64(s.RSS)/1024, float64(middle)/1024, float64(end)/1024)
			if s.Failed > 0 {
				return fmt.Errorf("%d requests failed: %w", s.Failed, s.First)
			}
			if end > middle+middle/10 {
				return errors.New("the memory is not flat")
			}
			return nil
		case <-tick.C:
			at := time.Since(began)
			third := min(int(3*at/length), 2)
			thirds[third] = append(thirds[third], p.Memory())
			if at-last > 10*time.Second {
				last = at
				fmt.Printf("%4.0f s  %.1f MiB\n", at.Seconds(), float64(p.Memory())/1024)
			}
		}
	}
}

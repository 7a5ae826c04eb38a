package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lathe-run/lathe/internal/report"
)

// A figure is what one contender cost per operation.
type figure struct {
	cpu    float64 // µs
	allocs float64
	kib    float64
}

// A lane is one contender of a table: a name and the operation to measure.
type lane struct {
	name string
	op   func() error
	got  []figure
	err  error
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// race runs the lanes in alternation: each round measures each lane once, for about budget.
func race(lanes []*lane, rounds int, budget time.Duration) {
	iters := make([]int, len(lanes))
	for i, l := range lanes {
		if l.err == nil {
			l.err = l.op()
		}
		if l.err != nil {
			continue
		}
		start := time.Now()
		n := 0
		for time.Since(start) < budget/4 {
			if l.err = l.op(); l.err != nil {
				break
			}
			n++
		}
		iters[i] = max(1, n*4)
	}
	for range rounds {
		for i, l := range lanes {
			if l.err == nil {
				l.measure(iters[i])
			}
		}
	}
}

func (l *lane) measure(n int) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := cpuTime()
	for range n {
		if l.err = l.op(); l.err != nil {
			return
		}
	}
	cpu := cpuTime() - start
	runtime.ReadMemStats(&after)
	l.got = append(l.got, figure{
		cpu:    float64(cpu.Nanoseconds()) / 1e3 / float64(n),
		allocs: float64(after.Mallocs-before.Mallocs) / float64(n),
		kib:    float64(after.TotalAlloc-before.TotalAlloc) / 1024 / float64(n),
	})
}

func (l *lane) median() figure {
	mid := func(get func(figure) float64) float64 {
		v := make([]float64, 0, len(l.got))
		for _, f := range l.got {
			v = append(v, get(f))
		}
		slices.Sort(v)
		return v[len(v)/2]
	}
	return figure{mid(func(f figure) float64 { return f.cpu }), mid(func(f figure) float64 { return f.allocs }), mid(func(f figure) float64 { return f.kib })}
}

// printLanes prints a Markdown table. ours is the lane that the ratios are against; perUnit adds a
// column of throughput where an operation handles that many bytes.
func printLanes(title string, lanes []*lane, ours string, bytes int) {
	var t report.Table
	head := []any{"contender", "CPU µs", "allocs", "KiB", "CPU vs " + ours}
	if bytes > 0 {
		head = append(head, "MB/s")
	}
	t.Row(head...)
	base := 0.0
	for _, l := range lanes {
		if l.name == ours && l.err == nil {
			base = l.median().cpu
		}
	}
	for _, l := range lanes {
		if l.err != nil {
			t.Row(l.name, fmt.Sprintf("not run: %v", l.err), "", "", "")
			continue
		}
		f := l.median()
		cells := []any{l.name, fmt.Sprintf("%.4g", f.cpu), fmt.Sprintf("%.4g", f.allocs), fmt.Sprintf("%.4g", f.kib), fmt.Sprintf("%.2fx", f.cpu/base)}
		if bytes > 0 {
			cells = append(cells, fmt.Sprintf("%.0f", float64(bytes)/f.cpu))
		}
		t.Row(cells...)
	}
	fmt.Printf("\n**%s**\n\n", title)
	_ = t.WriteMarkdown(os.Stdout, "l"+strings.Repeat("r", len(head)-1))
}

package main

import (
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// A Point is what was measured at one size.
type Point struct {
	Size  float64 `json:"size"`
	Value float64 `json:"value"`
}

// A Series is one line of a chart.
type Series struct {
	// Panel is the title of the panel that the series is drawn in; "": it is in the table only.
	Panel string `json:"panel,omitempty"`
	Name  string `json:"name"`
	// Measure is what Value is, with its unit.
	Measure string  `json:"measure"`
	Peer    bool    `json:"peer,omitempty"` // of another program
	Points  []Point `json:"points"`
	Fit     *Fit    `json:"fit,omitempty"`
}

// A Chart is what one curve has measured.
type Chart struct {
	Name   string   `json:"name"`
	Title  string   `json:"title"`
	Size   string   `json:"size"` // what the sizes count
	Notes  []string `json:"notes,omitempty"`
	Series []Series `json:"series"`
}

// add appends a point to the series of that panel, name and measure.
func (c *Chart) add(panel, name, measure string, peer bool, size, value float64) {
	for i := range c.Series {
		if s := &c.Series[i]; s.Name == name && s.Measure == measure && s.Panel == panel {
			s.Points = append(s.Points, Point{size, value})
			return
		}
	}
	c.Series = append(c.Series, Series{Panel: panel, Name: name, Measure: measure, Peer: peer, Points: []Point{{size, value}}})
}

func (c *Chart) note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(c.Notes, n) {
		c.Notes = append(c.Notes, n)
	}
}

// The measures of operations.
const (
	measureCPU    = "CPU µs"
	measureAllocs = "allocations"
	measureKiB    = "KiB allocated"
	measureWall   = "wall µs"
	measureRSS    = "KiB resident"
)

// A measurement is one operation whose cost is measured at each size.
type measurement struct {
	name string
	peer bool
	// most is the largest size that is measured; 0: all.
	most int
	// prepare makes what the operation of a size needs; stop, which may be nil, frees it.
	prepare func(size int) (op func() error, stop func(), err error)
	// others is the CPU time of other processes that work for the operation; nil if none exist.
	others func() time.Duration
	wall   bool // measure wall time, too: the operation waits for a disk or for another process
}

// operations measures the measurements in this process: at each size, in alternation.
func (s *settings) operations(c *Chart, panel string, sizes []int, measurements []measurement) error {
	for _, size := range sizes {
		if err := s.atSize(c, panel, size, measurements); err != nil {
			return err
		}
	}
	return nil
}

// A figure is what one operation costs.
type figure struct{ cpu, allocs, kib, wall float64 }

func (s *settings) atSize(c *Chart, panel string, size int, measurements []measurement) error {
	type runner struct {
		*measurement
		op    func() error
		times int
		got   []figure
	}
	var rs []*runner
	for i := range measurements {
		l := &measurements[i]
		if l.most > 0 && size > l.most {
			continue
		}
		op, stop, err := l.prepare(size)
		if err != nil {
			return fmt.Errorf("%s at %d: %w", l.name, size, err)
		}
		if stop != nil {
			defer stop()
		}
		first, err := measure(op, 1, l.others) // warm
		if err != nil {
			return fmt.Errorf("%s at %d: %w", l.name, size, err)
		}
		rs = append(rs, &runner{measurement: l, op: op, times: min(max(1, int(float64(s.budget.Microseconds())/max(first.cpu, 1))), 2000)})
	}
	for range s.rounds {
		for _, r := range rs {
			f, err := measure(r.op, r.times, r.others)
			if err != nil {
				return fmt.Errorf("%s at %d: %w", r.name, size, err)
			}
			r.got = append(r.got, f)
		}
	}
	for _, r := range rs {
		c.add(panel, r.name, measureCPU, r.peer, float64(size), middle(r.got, func(f figure) float64 { return f.cpu }))
		if r.wall {
			c.add("", panel+", "+r.name, measureWall, r.peer, float64(size), middle(r.got, func(f figure) float64 { return f.wall }))
			continue
		}
		c.add("", r.name, measureAllocs, r.peer, float64(size), middle(r.got, func(f figure) float64 { return f.allocs }))
		c.add("", r.name, measureKiB, r.peer, float64(size), middle(r.got, func(f figure) float64 { return f.kib }))
	}
	return nil
}

// measure returns the cost of one of n operations, with the garbage collection that they cause.
func measure(op func() error, n int, others func() time.Duration) (figure, error) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if others == nil {
		others = func() time.Duration { return 0 }
	}
	start, began := cpuTime()+others(), time.Now()
	for range n {
		if err := op(); err != nil {
			return figure{}, err
		}
	}
	wall := time.Since(began)
	cpu := cpuTime() + others() - start
	runtime.ReadMemStats(&after)
	per := func(v float64) float64 { return v / float64(n) }
	return figure{per(float64(cpu.Nanoseconds()) / 1e3), per(float64(after.Mallocs - before.Mallocs)), per(float64(after.TotalAlloc-before.TotalAlloc) / 1024), per(float64(wall.Nanoseconds()) / 1e3)}, nil
}

// middle is the median.
func middle(got []figure, of func(figure) float64) float64 {
	v := make([]float64, 0, len(got))
	for _, f := range got {
		v = append(v, of(f))
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// cpuTime is the processor time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it has no other error than of its arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// steps returns 1, 3, 10, 30 … times first, up to last, and last.
func steps(first, last int) []int {
	var out []int
	for base := first; base <= last; base *= 10 {
		for _, f := range []int{1, 3} {
			if n := base * f; n < last {
				out = append(out, n)
			}
		}
	}
	return append(out, last)
}

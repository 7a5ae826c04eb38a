package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe/internal/report"
)

// settings are what the flags say.
type settings struct {
	quick, large bool
	rounds       int
	budget       time.Duration // of one round of one measurement
	mostRuns     int           // stored
	lathe        string        // the binary that is measured as a gateway; "": it is built
	dir          string        // for files
	log          io.Writer     // progress
}

// A curve measures one kind of growth.
type curve struct {
	name, what string
	run        func(*settings) (*Chart, error)
}

var curves = []curve{
	{"history", "a request with a long conversation", history},
	{"tools", "the number of tools", tools},
	{"start", "a start with many OpenAPI operations", startUp},
	{"streams", "open streams, idle and paced", streams},
	{"results", "the size of a tool's result", results},
	{"keys", "the number of keys", keys},
	{"runs", "the number of stored runs", storedRuns},
}

// errWorse is the outcome of -check.
var errWorse = errors.New("a curve grows faster than n log n")

func main() {
	if err := command(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func command(args []string, stdout, stderr io.Writer) (err error) {
	fs := flag.NewFlagSet("scale", flag.ContinueOnError)
	fs.SetOutput(stderr)
	s := &settings{log: stderr}
	wanted := map[string]*bool{}
	for _, c := range curves {
		wanted[c.name] = fs.Bool(c.name, false, c.what)
	}
	fs.BoolVar(&s.quick, "quick", false, "the smallest sizes only: it checks that everything can be measured")
	fs.BoolVar(&s.large, "large", false, "the largest sizes, too: 9,900 streams")
	fs.IntVar(&s.rounds, "rounds", 3, "rounds of each figure; the median counts")
	fs.DurationVar(&s.budget, "budget", 100*time.Millisecond, "CPU time of one round of one figure")
	fs.IntVar(&s.mostRuns, "most-runs", 1_000_000, "the largest `number` of stored runs; a million takes 4 GB of disk")
	fs.StringVar(&s.lathe, "lathe", "", "`path` of the lathe that is the gateway (default: it is built from this repository)")
	asJSON := fs.Bool("json", false, "print JSON")
	pictures := fs.String("svg", "", "write the pictures scale-NAME.svg into this `folder`")
	check := fs.Bool("check", false, "fail if a curve of Lathe grows faster than n log n")
	be := fs.String("serve", "", "be a process of the bench: mock, rp, lean or lathe")
	upstream := fs.String("upstream", "", "the model server, or the configuration of lathe, for -serve")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *be != "" {
		return serve(*be, *upstream)
	}
	if s.quick {
		s.rounds, s.budget = 1, time.Millisecond
	}
	if s.dir, err = os.MkdirTemp("", "scale"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	all := true
	for _, on := range wanted {
		all = all && !*on
	}
	var charts []*Chart
	worse := false
	for _, c := range curves {
		if !all && !*wanted[c.name] {
			continue
		}
		began := time.Now()
		chart, err := c.run(s)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Fprintf(stderr, "%s: %s\n", c.name, time.Since(began).Round(100*time.Millisecond))
		chart.Name = c.name
		for i := range chart.Series {
			x := &chart.Series[i]
			x.Fit = fit(x.Points)
			worse = worse || !x.Peer && x.Fit.worse()
		}
		charts = append(charts, chart)
		if *pictures != "" {
			if err := os.WriteFile(filepath.Join(*pictures, "scale-"+c.name+".svg"), draw(chart), 0o644); err != nil { //nolint:gosec // a picture of the documentation
				return err
			}
		}
	}
	if *asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = e.Encode(struct {
			Go     string   `json:"go"`
			OS     string   `json:"os"`
			CPUs   int      `json:"cpus"`
			Charts []*Chart `json:"charts"`
		}{runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, runtime.NumCPU(), charts})
	} else {
		_, err = io.WriteString(stdout, table(charts))
	}
	if err == nil && *check && worse {
		err = errWorse
	}
	return err
}

// table writes the charts as Markdown.
func table(charts []*Chart) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s/%s, %d CPUs\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	for _, c := range charts {
		var t report.Table
		sizes := c.sizes()
		cells := []any{"", "measured"}
		for _, n := range sizes {
			cells = append(cells, number(n))
		}
		t.Row(append(cells, "exponent", "fitted")...)
		for i := range c.Series {
			s := &c.Series[i]
			name := s.Name
			if s.Panel != "" && s.Panel != c.Title {
				name = s.Panel + ": " + s.Name
			}
			cells := []any{name, s.Measure}
			for _, n := range sizes {
				cells = append(cells, s.value(n))
			}
			exponent, fitted := s.Fit.texts()
			t.Row(append(cells, exponent, fitted)...)
		}
		fmt.Fprintf(&b, "\n**%s**\n\n", c.Title)
		_ = t.WriteMarkdown(&b, "ll"+strings.Repeat("r", len(sizes))+"rl") // into memory
		for _, n := range c.Notes {
			fmt.Fprintf(&b, "\n%s\n", n)
		}
	}
	return b.String()
}

// texts returns the exponent with its error, and the range of the fit.
func (f *Fit) texts() (exponent, fitted string) {
	if f == nil {
		return "–", "–"
	}
	verdict := ""
	if f.worse() {
		verdict = ", above n log n"
	}
	return fmt.Sprintf("%.2f ± %.2f%s", f.Exponent, f.Error, verdict), number(f.From) + " to " + number(f.To)
}

// sizes returns the sizes of all series, in their order.
func (c *Chart) sizes() []float64 {
	seen := map[float64]bool{}
	var out []float64
	for _, s := range c.Series {
		for _, p := range s.Points {
			if !seen[p.Size] {
				seen[p.Size] = true
				out = append(out, p.Size)
			}
		}
	}
	slices.Sort(out)
	return out
}

func (s *Series) value(size float64) string {
	for _, p := range s.Points {
		if p.Size == size {
			return number(p.Value)
		}
	}
	return "–"
}

// number writes a number with three significant digits, and its thousands apart.
func number(v float64) string {
	switch {
	case v != 0 && v < 100:
		return strconv.FormatFloat(v, 'g', 3, 64)
	default:
		t := strconv.FormatFloat(v, 'f', 0, 64)
		for i := len(t) - 3; i > 0; i -= 3 {
			t = t[:i] + "," + t[i:]
		}
		return t
	}
}

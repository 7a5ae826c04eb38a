// Command frameworks builds the same service with five libraries, each in a folder and a module of its own, and prints how large it is and
// what it does in five trials: a refund that is approved, one that is refused, malformed calls, and a process that is killed while a
// refund waits or just after its effect. The model is the simulated one, on loopback.
//
//	cd bench && go run ./frameworks [-json] [-only NAME]
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/lathe-run/lathe/bench/internal/proc"
)

// A report is what was found out about one program.
type report struct {
	Program string `json:"program"`
	Library string `json:"library"`
	Version string `json:"version"`
	size
	Trials []outcome `json:"trials"`
}

func main() {
	asJSON := flag.Bool("json", false, "print JSON, with all that was observed")
	only := flag.String("only", "", "name of one program")
	flag.Parse()
	reports, err := compare(context.Background(), *only)
	if err != nil {
		log.Fatal(err)
	}
	if *asJSON {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		if err := enc.Encode(reports); err != nil {
			log.Fatal(err)
		}
		return
	}
	printTable(os.Stdout, reports)
	printAnswers(os.Stdout, reports)
}

// compare builds and tries the programs, or the one that is named.
func compare(ctx context.Context, only string) ([]report, error) {
	root, err := proc.Sources(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "frameworks")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var reports []report
	for _, p := range programs {
		if only != "" && p.name != only {
			continue
		}
		r, err := p.measure(ctx, filepath.Join(root, "bench", "frameworks"), dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		if r.Trials, err = p.try(ctx, dir); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		reports = append(reports, r)
	}
	if reports == nil {
		return nil, fmt.Errorf("there is no program %q", only)
	}
	return reports, nil
}

// printTable prints a table in Markdown with a column for each program.
func printTable(w io.Writer, reports []report) {
	row := func(name string, cell func(r *report) string) {
		fmt.Fprintf(w, "| %s |", name)
		for i := range reports {
			fmt.Fprintf(w, " %s |", cell(&reports[i]))
		}
		fmt.Fprintln(w)
	}
	row("", func(r *report) string { return strings.TrimSpace(r.Program + " " + r.Version) })
	row("---", func(*report) string { return "---" })
	row("lines of code", func(r *report) string { return fmt.Sprint(r.Lines) })
	row("modules linked", func(r *report) string { return fmt.Sprint(r.Modules) })
	row("binary, stripped", func(r *report) string { return fmt.Sprintf("%d MB", (r.Bytes+500_000)/1_000_000) })
	for i, t := range trials {
		row(t.name, func(r *report) string { return r.Trials[i].String() })
	}
}

// printAnswers prints what the user reads at last in each trial.
func printAnswers(w io.Writer, reports []report) {
	for i, t := range trials {
		fmt.Fprintf(w, "\n%s\n", t.name)
		for _, r := range reports {
			fmt.Fprintf(w, "  %-10s %s\n", r.Program, r.Trials[i].Answer)
		}
	}
}

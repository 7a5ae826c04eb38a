// Command compare compares the benchmarks of two revisions of Lathe, and with a stored baseline:
//
//	cd bench && go run ./compare                 # the working tree with main, in alternation
//	cd bench && go run ./compare -old v0.2.0 -only rawjson -rounds 20
//	cd bench && go run ./compare -update         # writes compare/baseline.txt
//
// It prints three tables. The first is of benchstat: the old revision with itself, which shows the noise of the machine. The
// second is of benchstat too: the old revision and the working tree, whose test binaries ran in turns with those of the first. A
// difference that is not above those of the first table means nothing. The third compares allocations and instructions with the baseline; they do
// not depend on the load of the machine.
//
// Instructions are counted by cachegrind, if valgrind is installed, for packages whose operations are short and run on one goroutine. Valgrind has no
// instructions for SHA-256, so that these hashes count as their portable form.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// benchstat is the version of the tool that make bench-compare runs. It is not a dependency of the module.
const benchstat = "golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da"

func main() {
	old := flag.String("old", "main", "the `revision` to compare with")
	rounds := flag.Int("rounds", 10, "rounds of each binary; benchstat needs 6 for its intervals")
	span := flag.String("benchtime", "100ms", "time, or count such as 100x, of a benchmark in a round")
	only := flag.String("only", "", "only the packages whose path has this `text`")
	update := flag.Bool("update", false, "write the baseline, and compare nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *old, *rounds, *span, *only, *update)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, old string, rounds int, span, only string, update bool) (err error) {
	root, err := rootFolder()
	if err != nil {
		return err
	}
	var chosen []suite
	for _, s := range suites {
		if strings.Contains(s.pkg, only) {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no package with benchmarks that are compared has %q in its path", only)
	}
	if update {
		return writeBaseline(ctx, root, chosen)
	}
	dir, err := os.MkdirTemp("", "lathe-compare")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	before := filepath.Join(dir, "source")
	if err := command(ctx, root, "git", "worktree", "add", "--quiet", "--detach", before, old); err != nil {
		return fmt.Errorf("checking out %s: %w", old, err)
	}
	defer func() { // also if it was interrupted
		if e := command(context.Background(), root, "git", "worktree", "remove", "--force", before); err == nil && e != nil {
			err = fmt.Errorf("removing the worktree of %s: %w", old, e)
		}
	}()
	if err := alternate(ctx, root, before, dir, chosen, rounds, span); err != nil {
		return err
	}
	return printBaseline(ctx, root, chosen)
}

// alternate runs the test binaries of both revisions in turns, and prints the tables of benchstat.
func alternate(ctx context.Context, root, before, dir string, chosen []suite, rounds int, span string) error {
	sides := []struct{ name, source string }{{"old", before}, {"same", before}, {"new", root}}
	out := make([]bytes.Buffer, len(sides))
	for n, s := range chosen {
		if _, err := os.Stat(filepath.Join(before, s.pkg)); err != nil {
			fmt.Fprintf(os.Stderr, "%s: the old revision does not have it, only the baseline is compared\n", s.pkg)
			continue
		}
		binaries := make([]string, len(sides))
		for i, side := range sides {
			binaries[i] = filepath.Join(dir, side.name+".test")
			if side.name == "same" {
				binaries[i] = binaries[0]
				continue
			}
			if err := command(ctx, side.source, "go", "test", "-c", "-o", binaries[i], "./"+s.pkg); err != nil {
				return fmt.Errorf("building %s of %s: %w", s.pkg, side.name, err)
			}
		}
		began := time.Now() // without the builds
		for round := range rounds {
			for k := range sides {
				i := (k + round) % len(sides) // none is always the first
				text, err := benchmarks(ctx, binaries[i], filepath.Join(sides[i].source, s.pkg), s.bench, span)
				if err != nil {
					return err
				}
				out[i].WriteString(text)
			}
			if round == 0 {
				fmt.Fprintf(os.Stderr, "%s (%d of %d): %d rounds of about %s\n", s.pkg, n+1, len(chosen), rounds, time.Since(began).Round(time.Second))
			}
		}
	}
	if out[0].Len() == 0 {
		return nil // the old revision has none of the packages
	}
	for i, side := range sides {
		if err := os.WriteFile(filepath.Join(dir, side.name), out[i].Bytes(), 0o600); err != nil {
			return err
		}
	}
	for _, t := range []struct{ title, file string }{{"The old revision with itself: noise", "same"}, {"The old revision and the working tree", "new"}} {
		fmt.Printf("\n%s\n\n", t.title)
		if err := command(ctx, dir, "go", "run", benchstat, "old", t.file); err != nil {
			return fmt.Errorf("running benchstat: %w", err)
		}
	}
	return nil
}

// command runs a command with the output of this process.
func command(ctx context.Context, dir, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Stdout, c.Stderr = dir, os.Stdout, os.Stderr
	c.Env = append(os.Environ(), "GOWORK=off")
	return c.Run()
}

// rootFolder returns the folder of the repository.
func rootFolder() (string, error) {
	out, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

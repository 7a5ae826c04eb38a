package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A suite is the benchmarks of one package that are compared.
type suite struct {
	pkg, bench   string
	count        int  // operations of which allocations are the mean
	concurrent   bool // several goroutines work on one operation, so that the number of allocations may differ
	instructions bool // they are counted: of short operations on one goroutine
}

var suites = []suite{
	{pkg: "internal/rawjson", bench: ".", count: 100, instructions: true},
	{pkg: "internal/digest", bench: ".", count: 100, instructions: true},
	{pkg: "internal/sse", bench: ".", count: 100, instructions: true},
	{pkg: "internal/wire/openai", bench: ".", count: 20, instructions: true},
	{pkg: "internal/wire/messages", bench: ".", count: 100, instructions: true},
	{pkg: "internal/wire/responses", bench: ".", count: 100, instructions: true},
	{pkg: "dialect", bench: "^BenchmarkPieces$", count: 100, instructions: true},
	{pkg: "tool", bench: "^BenchmarkRunner$", count: 200, concurrent: true},
	{pkg: "loop", bench: ".", count: 200, concurrent: true},
}

// A result is what one operation of a benchmark takes, apart from time.
type result struct {
	allocs, instructions int64 // instructions below 0: not counted
}

const baselineFile = "bench/compare/baseline.txt"

// benchmarks runs the benchmarks of a test binary once, in the folder of its package, and returns its output.
func benchmarks(ctx context.Context, binary, dir, bench, span string) (string, error) {
	c := exec.CommandContext(ctx, binary, "-test.run=^$", "-test.bench="+bench, "-test.benchmem", "-test.benchtime="+span, "-test.cpu=1")
	c.Dir, c.Stderr = dir, os.Stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("benchmarks of %s: %w: %s", dir, err, out)
	}
	return string(out), nil
}

var allocations = regexp.MustCompile(`(?m)^Benchmark(\S+)\s.*\s(\d+) allocs/op`)

// parseAllocations returns the allocations of each benchmark in the output of a test binary.
func parseAllocations(out string) map[string]int64 {
	found := map[string]int64{}
	for _, m := range allocations.FindAllStringSubmatch(out, -1) {
		if n, err := strconv.ParseInt(m[2], 10, 64); err == nil {
			found[m[1]] = n
		}
	}
	return found
}

// measure counts the allocations of the benchmarks of a suite in the repository at root, and their instructions if it is asked to
// and valgrind is installed. The names are those of the benchmarks after that of the package.
func measure(ctx context.Context, root string, s *suite, instructions bool) (map[string]result, error) {
	dir, err := os.MkdirTemp("", "lathe-measure")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "package.test")
	if err := command(ctx, root, "go", "test", "-c", "-o", binary, "./"+s.pkg); err != nil {
		return nil, fmt.Errorf("building the tests of %s: %w", s.pkg, err)
	}
	home := filepath.Join(root, s.pkg)
	out, err := benchmarks(ctx, binary, home, s.bench, strconv.Itoa(s.count)+"x")
	if err != nil {
		return nil, err
	}
	found := map[string]result{}
	for name, n := range parseAllocations(out) {
		r := result{n, -1}
		if instructions && s.instructions {
			if r.instructions, err = countInstructions(ctx, binary, home, name); err != nil {
				return nil, err
			}
		}
		found[s.pkg+" "+name] = r
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no benchmark %s", s.pkg, s.bench)
	}
	return found, nil
}

var executed = regexp.MustCompile(`I\s+refs:\s+([\d,]+)`)

// Operations whose instructions are counted after the first ones, and how many instead of operations that take less than short: the runtime
// takes some thousand instructions more or less from run to run.
const (
	first, more, many = 20, 100, 10_000
	short             = 20_000
)

// countInstructions returns the instructions of one operation: the mean of those that some operations take after the first. It returns -1 if
// valgrind is not installed.
func countInstructions(ctx context.Context, binary, dir, name string) (int64, error) {
	if _, err := exec.LookPath("valgrind"); err != nil {
		return -1, nil
	}
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = "^" + regexp.QuoteMeta(parts[i]) + "$"
	}
	parts[0] = "^Benchmark" + parts[0][1:]
	took := func(n int) (int64, error) {
		c := exec.CommandContext(ctx, "valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file="+os.DevNull, binary,
			"-test.run=^$", "-test.bench="+strings.Join(parts, "/"), "-test.benchtime="+strconv.Itoa(n)+"x", "-test.cpu=1")
		c.Dir = dir
		c.Env = append(os.Environ(), "GOGC=off") // the collector works beside the operation
		out, err := c.CombinedOutput()
		m := executed.FindSubmatch(out)
		if err != nil || m == nil {
			return -1, fmt.Errorf("valgrind of %s: %w: %.500s", name, cmp.Or(err, errors.New("no count")), out)
		}
		return strconv.ParseInt(strings.ReplaceAll(string(m[1]), ",", ""), 10, 64)
	}
	before, err := took(first)
	if err != nil {
		return -1, err
	}
	for _, n := range [...]int64{more, many} {
		after, err := took(first + int(n))
		if err != nil {
			return -1, err
		}
		if mean := max(after-before, 0) / n; mean >= short || n == many {
			return mean, nil
		}
	}
	return -1, nil
}

// readBaseline reads lines of package, benchmark, allocations and instructions ("-": not counted).
func readBaseline(r io.Reader) (map[string]result, error) {
	base := map[string]result{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		if len(f) != 4 {
			return nil, fmt.Errorf("line %q has %d fields, want 4", lines.Text(), len(f))
		}
		allocs, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			return nil, err
		}
		instructions := int64(-1)
		if f[3] != "-" {
			if instructions, err = strconv.ParseInt(f[3], 10, 64); err != nil {
				return nil, err
			}
		}
		base[f[0]+" "+f[1]] = result{allocs, instructions}
	}
	return base, lines.Err()
}

func loadBaseline(root string) (map[string]result, error) {
	f, err := os.Open(filepath.Join(root, baselineFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readBaseline(f)
}

// writeBaseline measures the suites and writes the baseline. Lines of other suites stay.
func writeBaseline(ctx context.Context, root string, chosen []suite) error {
	base, err := loadBaseline(root)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if base == nil {
		base = map[string]result{}
	}
	for i := range chosen {
		s := &chosen[i]
		found, err := measure(ctx, root, s, true)
		if err != nil {
			return err
		}
		maps.DeleteFunc(base, func(name string, _ result) bool { return strings.HasPrefix(name, s.pkg+" ") })
		maps.Copy(base, found)
	}
	var b strings.Builder
	b.WriteString("# package, benchmark, allocations and instructions of one operation. Written by `go run ./compare -update`.\n")
	for _, name := range slices.Sorted(maps.Keys(base)) {
		r := base[name]
		fmt.Fprintf(&b, "%s %d %s\n", name, r.allocs, number(r.instructions))
	}
	return os.WriteFile(filepath.Join(root, baselineFile), []byte(b.String()), 0o600)
}

func number(n int64) string {
	if n < 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

// mostAllocations is the number of allocations that a benchmark of a suite may have: none where the baseline has none, else one and 5 %
// more, since the collector may empty a pool while they are counted, and 10 % more where several goroutines share pools.
func (s *suite) mostAllocations(base int64) int64 {
	switch {
	case s.concurrent:
		return base + 1 + base/10
	case base == 0:
		return 0
	}
	return base + 1 + base/20
}

// printBaseline measures the suites and prints what differs from the baseline.
func printBaseline(ctx context.Context, root string, chosen []suite) error {
	base, err := loadBaseline(root)
	if err != nil {
		return err
	}
	fmt.Printf("\nThe baseline and the working tree: what differs in allocations, or by 1 %% of the instructions\n\n")
	differ := 0
	for i := range chosen {
		found, err := measure(ctx, root, &chosen[i], true)
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(found)) {
			now, was := found[name], base[name]
			if _, ok := base[name]; !ok {
				fmt.Printf("%-60s is not in the baseline\n", name)
				differ++
				continue
			}
			counted := now.instructions >= 0 && was.instructions > 0
			if now.allocs == was.allocs && (!counted || 100*max(now.instructions-was.instructions, was.instructions-now.instructions) < was.instructions) {
				continue
			}
			differ++
			fmt.Printf("%-60s %d → %d allocations, %s → %s instructions", name, was.allocs, now.allocs, number(was.instructions), number(now.instructions))
			if counted {
				fmt.Printf(" (%+.1f %%)", 100*float64(now.instructions-was.instructions)/float64(was.instructions))
			}
			fmt.Println()
		}
	}
	if differ == 0 {
		fmt.Println("nothing")
	}
	return nil
}

package main

import (
	"os/exec"
	"strings"
	"testing"
)

// No benchmark allocates more than the baseline says. Fewer allocations are logged: `go run ./compare -update` writes them down.
func TestAllocationsStayAtTheBaseline(t *testing.T) {
	root, err := rootFolder()
	if err != nil {
		t.Skip("there is no repository: ", err)
	}
	base, err := loadBaseline(root)
	if err != nil {
		t.Fatal(err)
	}
	for i := range suites {
		s := &suites[i]
		t.Run(s.pkg, func(t *testing.T) {
			found, err := measure(t.Context(), root, s, false)
			if err != nil {
				t.Fatal(err)
			}
			for name, now := range found {
				was, ok := base[name]
				switch {
				case !ok:
					t.Errorf("%s is not in the baseline: run `go run ./compare -update` in bench", name)
				case now.allocs > s.mostAllocations(was.allocs):
					t.Errorf("%s: %d allocations, the baseline has %d", name, now.allocs, was.allocs)
				case now.allocs < was.allocs:
					t.Logf("%s: %d allocations, the baseline has %d", name, now.allocs, was.allocs)
				}
			}
			for name := range base {
				if pkg, _, _ := strings.Cut(name, " "); pkg == s.pkg {
					if _, ok := found[name]; !ok {
						t.Errorf("%s of the baseline is gone: run `go run ./compare -update` in bench", name)
					}
				}
			}
		})
	}
}

func TestParseAllocations(t *testing.T) {
	got := parseAllocations("goos: linux\nBenchmarkCheck/small \t 100\t 294.7 ns/op\t1031.48 MB/s\t       0 B/op\t       3 allocs/op\nPASS\n")
	if len(got) != 1 || got["Check/small"] != 3 {
		t.Errorf("got %v", got)
	}
	if _, err := readBaseline(strings.NewReader("a b 1\n")); err == nil {
		t.Error("a line of three fields was read")
	}
	base, err := readBaseline(strings.NewReader("# comment\n\na B/c 1 -\nd E 2 30\n"))
	if err != nil || len(base) != 2 || base["a B/c"] != (result{1, -1}) || base["d E"] != (result{2, 30}) {
		t.Errorf("got %v, %v", base, err)
	}
}

func TestBoundsOfAllocations(t *testing.T) {
	one, several := &suite{}, &suite{concurrent: true}
	for _, c := range []struct {
		s          *suite
		base, most int64
	}{{one, 0, 0}, {one, 20, 22}, {one, 100, 106}, {several, 0, 1}, {several, 100, 111}} {
		if got := c.s.mostAllocations(c.base); got != c.most {
			t.Errorf("of %d: at most %d, want %d", c.base, got, c.most)
		}
	}
}

// The check of a text of 300 bytes takes some thousand instructions, whatever the load of the machine.
func TestInstructionsAreCounted(t *testing.T) {
	if _, err := exec.LookPath("valgrind"); err != nil {
		t.Skip("valgrind is not installed")
	}
	if testing.Short() {
		t.Skip("takes seconds")
	}
	root, err := rootFolder()
	if err != nil {
		t.Skip(err)
	}
	binary := t.TempDir() + "/rawjson.test"
	if err := command(t.Context(), root, "go", "test", "-c", "-o", binary, "./internal/rawjson"); err != nil {
		t.Fatal(err)
	}
	n, err := countInstructions(t.Context(), binary, root+"/internal/rawjson", "Check/small")
	if err != nil {
		t.Skip("valgrind does not run this program here: ", err) // it lacks instructions of some processors
	}
	if n < 1000 || n > 100_000 {
		t.Errorf("%d instructions", n)
	}
}

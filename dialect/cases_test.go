package dialect_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/testkit/dialecttest"
)

var update = flag.Bool("update", false, "write the want files of testdata again")

// TestCases runs the cases of testdata/<dialect> for every dialect; each must have some.
func TestCases(t *testing.T) {
	t.Parallel()
	for _, name := range dialect.Names() {
		dir := filepath.Join("testdata", name)
		if *update {
			rewrite(t, dir, name)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dialecttest.Run(t, os.DirFS(dir), name)
		})
	}
}

func rewrite(t *testing.T, dir, name string) {
	t.Helper()
	d, _ := dialect.Lookup(name)
	for _, c := range dialecttest.Cases(t, os.DirFS(dir)) {
		file := filepath.Join(dir, c.Name+".txtar")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		front, _, _ := strings.Cut(string(data), "-- want --\n")
		want := dialecttest.Format(dialecttest.Parse(t, d.NewParser(&c.Options), c.Input))
		if err := os.WriteFile(file, []byte(front+"-- want --\n"+want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzHarmony(f *testing.F) { dialecttest.Fuzz(f, os.DirFS("testdata/harmony"), "harmony") }
func FuzzTags(f *testing.F)    { dialecttest.Fuzz(f, os.DirFS("testdata/tags"), "tags") }
func FuzzAuto(f *testing.F)    { dialecttest.Fuzz(f, os.DirFS("testdata/auto"), "auto") }

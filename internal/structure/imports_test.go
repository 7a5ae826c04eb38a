package structure

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// A program that executes templates holds every exported method of every type in it, for a template
// names methods at run time: lathe was an eighth larger when it did. Those that import the package for
// something that is never called are listed; a new one is a decision and not an accident.
func TestNothingExecutesTemplates(t *testing.T) {
	inRoot(t)
	want := []string{
		"cel.dev/cel-go/cel",     // prompts about expressions
		"github.com/spf13/cobra", // help in other words than its own
	}
	var got []string
	for _, p := range needed(t, "cmd/lathe") {
		for _, name := range p.Imports {
			if name == "html/template" || name == "text/template" {
				got = append(got, p.ImportPath)
			}
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("these import templates: %v, want %v", got, want)
	}
}

// cobra executes a template only for a program that sets one. The version of lathe was one, and its program 11 % larger.
func TestNoCommandSetsATemplate(t *testing.T) {
	inRoot(t)
	files, err := filepath.Glob("cmd/lathe/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files of cmd/lathe: %v", len(files), err)
	}
	sets := regexp.MustCompile(`\.Set(Help|Usage|Version)Template\(`)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if call := sets.Find(b); call != nil {
			t.Errorf("%s calls %s)", f, call)
		}
	}
}

package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commandLines returns each command, and each of its flags with the type of its value.
func commandLines(c *cobra.Command) (lines []string) {
	if c.Hidden || c.Name() == "help" {
		return nil
	}
	lines = append(lines, c.CommandPath())
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			lines = append(lines, c.CommandPath()+" --"+f.Name+" "+f.Value.Type())
		}
	})
	for _, sub := range c.Commands() {
		lines = append(lines, commandLines(sub)...)
	}
	return lines
}

// TestCommandsThatBreakAreAnnounced compares the commands and flags with those of the last release: one that is missing, or whose
// value has another type, is named under Breaking in the changelog. `-update` writes the list when a release is made.
func TestCommandsThatBreakAreAnnounced(t *testing.T) {
	t.Parallel()
	now := commandLines(rootCommand(strings.NewReader(""), io.Discard, io.Discard, nil))
	slices.Sort(now)
	now = slices.Compact(now)
	if len(now) < 200 {
		t.Fatalf("%d commands and flags: the search is broken", len(now))
	}
	file := filepath.Join("..", "..", "testdata", "compat", "cli.txt")
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(now, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	base, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changelog, err := os.ReadFile(filepath.Join("..", "..", "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, breaking, _ := strings.Cut(string(changelog), "\n### Breaking\n")
	breaking, _, _ = strings.Cut(breaking, "\n### ")
	for line := range strings.Lines(string(base)) {
		command, flag, _ := strings.Cut(strings.TrimSpace(line), " --")
		flag, _, _ = strings.Cut(flag, " ")
		named := strings.Contains(breaking, "`"+command+"`") || flag != "" && strings.Contains(breaking, "--"+flag)
		if !slices.Contains(now, strings.TrimSpace(line)) && !named {
			t.Errorf("%q is removed or changed. If that must be, name it in a line under Breaking of CHANGELOG.md", strings.TrimSpace(line))
		}
	}
}

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/testkit/pgtest"
)

// Two nodes, of which one is killed: the command makes all its checks, and they hold.
func TestNodesAreKilled(t *testing.T) {
	var out strings.Builder
	err := command(t.Context(), strings.Fields("-nodes 2 -clients 3 -lease 1s -kill 1s -for 2s -quiet 1s"), &out)
	if errors.Is(err, pgtest.ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, zero := range []string{"runs not done", "events lost or doubled", "writes repeated", "acknowledged answers lost", "requests failed"} {
		if !hasRow(out.String(), zero, "0") {
			t.Errorf("no row %q with 0:\n%s", zero, &out)
		}
	}
	if hasRow(out.String(), "processes killed", "0") || hasRow(out.String(), "runs", "0") {
		t.Errorf("nothing happened:\n%s", &out)
	}
}

func hasRow(table, name, value string) bool {
	for line := range strings.Lines(table) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok && strings.TrimSpace(rest) == value {
			return true
		}
	}
	return false
}

// Flags that do not fit are refused with what is expected.
func TestFlagsThatDoNotFit(t *testing.T) {
	for args, want := range map[string]string{
		"-nodes 0":              "numbers from 1 to 16",
		"-nodes 1,2 -kill 1s":   "one number of nodes",
		"-active 5":             "-waiting with the others",
		"-days 3 -per-day 0":    "no negative number",
		"-nodes 1,2 -waiting 5": "one number of nodes",
		"-model hold":           "plain or asks",
		"-clients 0":            "must be positive",
		"more":                  "no flag",
	} {
		var out strings.Builder
		if err := command(t.Context(), strings.Fields(args), &out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

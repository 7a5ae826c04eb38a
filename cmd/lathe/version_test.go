package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The version is that of the changelog: of its first entry, or the next minor version while the first entry is not released. The Helm chart
// has it without the suffix, since its default image is a released one.
func TestVersionIsThatOfTheChangelog(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	entries := regexp.MustCompile(`(?m)^## \[(?:(Unreleased)|(\d+)\.(\d+)\.(\d+))\]`).FindAllSubmatch(text, 2)
	if len(entries) < 2 {
		t.Fatalf("CHANGELOG.md has %d entries", len(entries))
	}
	e := entries[0]
	want := "v" + string(e[2]) + "." + string(e[3]) + "." + string(e[4])
	if len(e[1]) > 0 {
		minor, err := strconv.Atoi(string(entries[1][3]))
		if err != nil {
			t.Fatal(err)
		}
		want = "v" + string(entries[1][2]) + "." + strconv.Itoa(minor+1) + ".0-dev"
	}
	if version != want {
		t.Errorf("the version is %s, and CHANGELOG.md wants %s", version, want)
	}
	chart, err := os.ReadFile(filepath.Join("..", "..", "deploy", "chart", "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	released := strings.TrimSuffix(strings.TrimPrefix(version, "v"), "-dev")
	if !strings.Contains(string(chart), "\nversion: "+released+"\nappVersion: "+released+"\n") {
		t.Errorf("version and appVersion of deploy/chart/Chart.yaml are not %s", released)
	}
}

func TestVersionNamesItsCommit(t *testing.T) {
	t.Parallel()
	v := versionInfo{Version: "v0.2.0", Revision: "0123456789abcdef", Time: "2026-11-29T08:00:00Z", Go: "go1.26", Platform: "linux/amd64"}
	if got, want := v.String(), "lathe v0.2.0 (commit 0123456789ab of 2026-11-29) go1.26 linux/amd64"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

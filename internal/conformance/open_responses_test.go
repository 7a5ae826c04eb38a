package conformance

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/testdata"
)

// notServed are the paths of Open Responses that are not served, by a word in the names of the cases that need them.
var notServed = []string{"websocket-", "compact-"}

// TestOpenResponses runs the compliance suite of Open Responses against a server without tools of its own. A case of what is not
// served fails, and if it passes, this test fails: the list above is out of date then.
func TestOpenResponses(t *testing.T) {
	suite := testdata.Dir(t, "open-responses", "bin", "compliance-test.ts")
	needsPackages(t, "@oven/bun-linux-x64", "zod")
	modules, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(filepath.Dir(suite)))); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "lathe.yaml")
	if err := os.WriteFile(config, []byte("tools: {builtin: []}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	base := server(t, "serve", "--config", config, "--addr", "127.0.0.1:0")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(modules, "@oven", "bun-linux-x64", "bin", "bun"), "run", filepath.Join("bin", "compliance-test.ts"),
		"--base-url", base, "--api-key", "k", "--model", "sim/demo", "--json")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir)
	out, err := cmd.Output() // it exits with 1 if a case fails
	var report struct {
		Results []struct {
			ID, Status string
			Errors     []string
		}
	}
	if jsonErr := json.Unmarshal(out, &report); jsonErr != nil {
		t.Fatalf("the suite: %v, %v\n%s", err, jsonErr, out)
	}
	const cases = 17
	if len(report.Results) != cases {
		t.Errorf("the suite has run %d cases, want %d", len(report.Results), cases)
	}
	served := 0
	for _, r := range report.Results {
		absent := false
		for _, word := range notServed {
			absent = absent || strings.HasPrefix(r.ID, word)
		}
		switch passed := r.Status == "passed"; {
		case !passed && !absent:
			t.Errorf("%s: %s: %s", r.ID, r.Status, strings.Join(r.Errors, "; "))
		case passed && absent:
			t.Errorf("%s passes: take it out of notServed", r.ID)
		case passed:
			served++
		}
	}
	t.Logf("%d of %d cases pass; WebSocket mode and compaction are not served", served, cases)
}

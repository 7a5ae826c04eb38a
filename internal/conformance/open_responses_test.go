package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/testdata"
)

// everyUpstream starts a server without tools, with the simulated model in its process and behind each of the four wires of model
// servers. It returns the address with /v1, and the names of the models.
func everyUpstream(t *testing.T) (base string, models []string) {
	t.Helper()
	upstream := strings.TrimSuffix(simServer(t), "/v1")
	models = []string{"process"}
	config := "tools: {builtin: []}\nmodels:\n  process: {provider: sim, model: sim/demo}\n"
	for wire, path := range upstreamWires {
		config += fmt.Sprintf("  %s: {base_url: %q, wire: %s, model: sim/demo}\n", wire, upstream+path, wire)
		models = append(models, wire)
	}
	file := filepath.Join(t.TempDir(), "lathe.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return server(t, "serve", "--config", file, "--addr", "127.0.0.1:0"), models
}

// TestOpenResponses runs the compliance suite of Open Responses, over HTTP and WebSockets, against a server without tools of its
// own, with the simulated model in the server's process and behind each of the four wires of model servers.
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
	base, models := everyUpstream(t)
	for _, model := range models {
		t.Run(model, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, filepath.Join(modules, "@oven", "bun-linux-x64", "bin", "bun"), "run", filepath.Join("bin", "compliance-test.ts"),
				"--base-url", base, "--api-key", "k", "--model", model, "--json")
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
			passed := map[string]bool{}
			for _, r := range report.Results {
				switch r.Status {
				case "passed":
					passed[r.ID] = true
				case "running": // a report of its beginning
				default:
					t.Errorf("%s: %s: %s", r.ID, r.Status, strings.Join(r.Errors, "; "))
				}
			}
			if len(passed) != cases {
				t.Errorf("%d cases passed, want %d", len(passed), cases)
			}
		})
	}
}

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestNpmAnthropicOnEveryUpstream counts tokens by @anthropic-ai/sdk on models of each wire, and has the caller of a message thread
// get the error: dialogues, those of the tool runner among them, are in TestNpmWires.
func TestNpmAnthropicOnEveryUpstream(t *testing.T) {
	packages := []string{"@anthropic-ai/sdk", "anthropic-sdk-newest"}
	needsPackages(t, packages...)
	base, models := everyUpstream(t)
	want := map[string]string{"count": "true", "thread": "400"}
	for _, name := range packages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "node", append([]string{filepath.Join("node", "wires", "anthropic_tools.mjs"), name, strings.TrimSuffix(base, "/v1")}, models...)...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("node: %v\n%s", err, stderr.String())
			}
			seen := 0
			for line := range strings.Lines(string(out)) {
				var o struct{ Model, Mode, Content string }
				if err := json.Unmarshal([]byte(line), &o); err != nil {
					t.Fatalf("%v: %s", err, line)
				}
				if seen++; want[o.Mode] == "" || !strings.HasPrefix(o.Content, want[o.Mode]) {
					t.Errorf("%s on %s: %q, want %q", o.Mode, o.Model, o.Content, want[o.Mode])
				}
			}
			if seen != len(want)*len(models) {
				t.Errorf("%d outcomes, want %d", seen, len(want)*len(models))
			}
		})
	}
}

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

var quiet = log.New(io.Discard, "", 0)

// effectGateway starts `lathe serve` twice, with a model for each cell, and a proxy in front of both. It returns the base
// URL of the proxy.
func effectGateway(t *testing.T, cells map[string]*effectCell) string {
	upstream := effectServer(t, cells)
	var b strings.Builder
	fmt.Fprintf(&b, `default_model: other
tools:
  builtin: []
  egress: {private: ["127.0.0.1"]}
  http:
    send_mail: {description: Sends a mail., method: POST, url: "%s/mail", parameters: {to: {in: body, required: true}}, effect: writes, allowlist: ["*"]}
policy: {tools: {send_mail: allow}}
models:
`, upstream)
	for _, name := range append(slices.Sorted(maps.Keys(cells)), "other") {
		fmt.Fprintf(&b, "  %s: {base_url: %q, max_attempts: 1}\n", name, upstream+"/v1")
	}
	start := func(more string) string {
		path := filepath.Join(t.TempDir(), "lathe.yaml")
		if err := os.WriteFile(path, []byte(b.String()+more), 0o600); err != nil {
			t.Fatal(err)
		}
		return server(t, "serve", "--config", path, "--addr", "127.0.0.1:0")
	}
	return effectProxy(t, start(""), start("serve: {repeat_window: 60s}\n"), cells)
}

// check reports what must hold in each cell: the tool was executed once, whatever the client did after the failure.
func (c *effectCell) check(t *testing.T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.effects != 1 {
		t.Errorf("%s: the tool was executed %d times in %d requests, want once; outcome %s", c.model(), c.effects, c.requests, c.outcome)
	}
	for _, r := range c.refused {
		if strings.Contains(r, "It has done so in 3 runs of this request.") {
			continue // the model server fails for good, and the gateway says so to a client that asks again
		}
		t.Errorf("%s: the gateway refused a request: %s", c.model(), r)
	}
	if c.place.name == "nothing-fails" && (!strings.HasPrefix(c.outcome, "answer") || c.requests != 1) {
		t.Errorf("%s: outcome %s in %d requests, want the answer in one", c.model(), c.outcome, c.requests)
	}
}

// effectTable logs executions, requests and outcome of each cell.
func effectTable(t *testing.T, clients []string, cells map[string]*effectCell) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "executions/requests")
	for _, p := range failurePlaces {
		fmt.Fprintf(w, "\t%s", p.name)
	}
	for _, client := range clients {
		fmt.Fprintf(w, "\n%s", client)
		for _, p := range failurePlaces {
			c := cells[client+"."+p.name]
			c.mu.Lock()
			fmt.Fprintf(w, "\t%d/%d %s", c.effects, c.requests, c.outcome)
			c.mu.Unlock()
		}
	}
	w.Flush()
	t.Logf("\n%s", b.String())
}

var effectSDKs = []string{"openai", "openai-stream", "langchain", "langchain-stream", "ai-sdk", "ai-sdk-stream", "llamaindex", "llamaindex-stream"}

// Libraries with their default settings: whatever fails after the tool was executed, and however often they send the
// request again, the tool is executed once.
func TestEffectsOfLibraries(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed")
	}
	if _, err := os.Stat("node_modules"); err != nil {
		t.Skip("node_modules is missing: run npm ci in internal/conformance")
	}
	cells := effectCells(effectSDKs)
	base := effectGateway(t, cells)
	t.Cleanup(func() { effectTable(t, effectSDKs, cells) })
	slots := make(chan struct{}, 2)
	for _, client := range effectSDKs {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			args := []string{"node/effects.mjs", base, client, effectPrompt}
			for _, p := range failurePlaces {
				args = append(args, p.name)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, "node", args...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("node: %v\n%s", err, stderr.String())
			}
			for line := range strings.Lines(string(out)) {
				var o struct{ Place, Answer, Error string }
				if err := json.Unmarshal([]byte(line), &o); err != nil {
					t.Fatal(err)
				}
				cells[client+"."+o.Place].ended(t, o.Answer, o.Error)
			}
			for _, p := range failurePlaces {
				cells[client+"."+p.name].check(t)
			}
		})
	}
}

// ended notes what the client made of the exchange.
func (c *effectCell) ended(t *testing.T, answer, failure string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case failure != "":
		c.outcome = "error"
		t.Logf("%s: %.200s", c.model(), failure)
	case strings.Contains(answer, effectAnswer):
		c.outcome = "answer"
	default:
		c.outcome = fmt.Sprintf("part %.60q", answer)
	}
}

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
)

// weatherTool is a configuration with a tool on the task queue weather.
const weatherTool = `
tools:
  temporal:
    weather:
      description: Returns the weather of a city.
      queue: weather
      effect: read_only
      allowlist: [degrees]
      schema: {type: object, properties: {city: {type: string}}, required: [city]}
      timeout: 30s
      heartbeat: 2s
`

func load(t *testing.T, yaml string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lathe.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := app.LoadConfig(path, &app.LoadOptions{Environ: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// A completion that is not detached is not executed in Temporal: its calls of a tool on a task queue are refused with policy_denied and
// the reason. They do not open the circuit of the tool, which runs in Temporal have, too: all are answered alike.
func TestToolOutsideTemporal(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "script.txt")
	if err := os.WriteFile(script, []byte("-- turn --\ncall: weather {\"city\":\"Oslo\"}\n-- turn --\nexpect: policy_denied\nexpect: in detached runs only\ntext: It is not known.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := load(t, weatherTool)
	a, err := app.New(cfg, &app.Options{Script: script, TemporalTool: (&target{queue: defaultQueue}).newTool})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}()
	for range 2 * cfg.Tools.Circuit.Failures {
		rec := httptest.NewRecorder()
		a.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/v1/chat/completions",
			strings.NewReader(`{"model":"sim/script","messages":[{"role":"user","content":"How cold is it in Oslo?"}]}`)))
		if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), "It is not known.") {
			t.Fatalf("%d %s", rec.Code, rec.Body)
		}
	}
}

// The workers of the runs do not have the activities of tools: a tool on their task queue is refused.
func TestToolOnTheQueueOfTheRuns(t *testing.T) {
	t.Parallel()
	a, err := app.New(load(t, weatherTool), &app.Options{TemporalTool: (&target{queue: "weather"}).newTool})
	if lathe.CodeOf(err) != lathe.CodeInvalidConfig || !strings.Contains(err.Error(), "tools.temporal.weather: the task queue weather is that of the runs") {
		t.Errorf("%v, %v", a, err)
	}
}

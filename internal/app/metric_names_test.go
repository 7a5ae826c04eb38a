package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/app"
)

// telemetry.metric_names selects the names at /metrics; without it they have no prefix.
func TestMetricNamesOfTheConfiguration(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string]struct{ seeds, lathe bool }{
		"":                                 {true, false},
		"telemetry: {metric_names: seeds}": {true, false},
		"telemetry: {metric_names: lathe}": {false, true},
		"telemetry: {metric_names: both}":  {true, true},
	} {
		served := get(t, open(t, yaml, nil).MetricsHandler(), "/metrics").Body.String()
		for name, want := range map[string]bool{"tool_calls_total{": want.seeds, "tool_call_latency_ms_bucket{": want.seeds, "lathe_tool_calls_total{": want.lathe, "lathe_runs_total{": true} {
			if got := strings.Contains(served, "\n"+name); got != want {
				t.Errorf("%q: /metrics has %s…}: %t, want %t", yaml, name, got, want)
			}
		}
	}
}

func TestUnknownMetricNamesAreRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lathe.yaml")
	if err := os.WriteFile(path, []byte("telemetry: {metric_names: seed}"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := app.LoadConfig(path, &app.LoadOptions{Environ: []string{}})
	if lathe.CodeOf(err) != lathe.CodeInvalidConfig || !strings.Contains(err.Error(), "telemetry.metric_names") || !strings.Contains(err.Error(), `did you mean "seeds"`) {
		t.Errorf("got %v", err)
	}
}

package observe_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/observe"
)

// used returns metrics in which each family has a series.
func used(t *testing.T, opts *observe.MetricsOptions) *observe.Metrics {
	t.Helper()
	m := observe.NewMetrics(opts)
	m.CountRequest("GET /v1/models", 200)
	m.ObserveRequest("GET /v1/models", time.Second)
	m.ObserveFirstByte("GET /v1/models", time.Second)
	m.MCPEnded(t.Context(), &event.MCPOperation{Method: "tools/call", Tool: "clock"})
	m.MCPEnded(t.Context(), &event.MCPOperation{Method: "tools/call", Tool: "clock", Server: true})
	emit(m, "run_1",
		&event.ModelCallFinished{Provider: "sim", Model: "sim/demo", Status: "success", LatencyMS: 20, FirstTokenMS: 10, Usage: lathe.Usage{InputTokens: 1, OutputTokens: 2}},
		&event.ToolCallResult{Tool: "clock", Status: "ok", LatencyMS: 3, PolicyDecision: "allow"},
		&event.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed"})
	return m
}

func served(t *testing.T, h http.Handler) string {
	t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if rec.Code != http.StatusOK {
		t.Fatalf("status %d: %s", rec.Code, rec.Body)
	}
	return rec.Body.String()
}

// Metrics can be registered beside the collectors of the process, whether its own Handler has those or not.
func TestMetricsInAnotherRegistry(t *testing.T) {
	t.Parallel()
	for _, process := range []bool{false, true} {
		m := used(t, &observe.MetricsOptions{Process: process})
		reg := prometheus.NewPedanticRegistry()
		reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), m)
		m.CountWorkers(func() []observe.WorkerCount { return []observe.WorkerCount{{Pool: "p", Connected: 1}} })
		if _, err := reg.Gather(); err != nil {
			t.Fatal(err)
		}
		ofProcess := regexp.MustCompile(`(?m)^(# (HELP|TYPE) )?(go|process)_.*\n`)
		own := served(t, m.Handler())
		got := served(t, promhttp.HandlerFor(reg, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
		if !strings.Contains(got, "go_goroutines ") || !strings.Contains(got, `lathe_worker_connected{fleet="p"} 1`) {
			t.Errorf("process %v: no metrics of the process or of workers in\n%s", process, got)
		}
		if strings.Contains(own, "go_goroutines ") != process {
			t.Errorf("process %v: Handler has metrics of the process: %v", process, !process)
		}
		if diff := cmp.Diff(ofProcess.ReplaceAllString(own, ""), ofProcess.ReplaceAllString(got, "")); diff != "" {
			t.Errorf("process %v: metrics (-Handler +registry):\n%s", process, diff)
		}
	}
}

// The names that begin with lathe_ follow the rules of Prometheus.
func TestOwnMetricNames(t *testing.T) {
	t.Parallel()
	problems, err := promlint.New(strings.NewReader(served(t, used(t, nil).Handler()))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "lathe_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

package observe_test

import (
	"testing"

	"github.com/lathe-run/lathe/observe"
)

// Workers have a series for each worker pool, and none unless CountWorkers was called.
func TestWorkerMetrics(t *testing.T) {
	t.Parallel()
	m := observe.NewMetrics(nil)
	if types, _ := scrape(t, m); types["lathe_worker_connected"] != "" {
		t.Error("workers are reported without a counter")
	}
	m.CountWorkers(func() []observe.WorkerCount {
		return []observe.WorkerCount{{Pool: "lab", Connected: 2, Credit: 16, InFlight: 3, Connects: 5, OK: 7, Failed: 1, NotRun: 2, Late: 4}, {Pool: "idle"}}
	})
	types, series := scrape(t, m)
	for name, want := range map[string]string{"lathe_worker_connected": "gauge fleet", "lathe_worker_credit": "gauge fleet", "lathe_worker_calls_in_flight": "gauge fleet",
		"lathe_worker_connects_total": "counter fleet", "lathe_worker_calls_total": "counter fleet,outcome"} {
		if got := types[name] + " " + labelNames(name, series); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{
		`lathe_worker_connected{fleet="lab"}`: "2", `lathe_worker_connected{fleet="idle"}`: "0", `lathe_worker_credit{fleet="lab"}`: "16", `lathe_worker_calls_in_flight{fleet="lab"}`: "3",
		`lathe_worker_connects_total{fleet="lab"}`: "5", `lathe_worker_calls_total{fleet="lab",outcome="ok"}`: "7", `lathe_worker_calls_total{fleet="lab",outcome="error"}`: "1",
		`lathe_worker_calls_total{fleet="lab",outcome="not_run"}`: "2", `lathe_worker_calls_total{fleet="lab",outcome="late"}`: "4",
	} {
		if series[name] != want {
			t.Errorf("%s: got %s, want %s", name, series[name], want)
		}
	}
}

package observe_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lathe-run/lathe/observe"
)

// familiesOf returns the families of contract, with their types and labels, under the selected names.
func familiesOf(names observe.MetricNames) map[string]string {
	out := map[string]string{}
	for name, form := range contract {
		if !strings.HasPrefix(name, "tool_") && !strings.HasPrefix(name, "harmony_") {
			out[name] = form
			continue
		}
		if names == observe.MetricNamesSeeds || names == observe.MetricNamesBoth {
			out[name] = form
		}
		if names != observe.MetricNamesSeeds && name != "tool_call_latency_ms" {
			out["lathe_"+name] = form
		}
	}
	return out
}

// Handler and Collector have the same names. A metric that has two has equal values under both, and no event counts twice.
func TestMetricNames(t *testing.T) {
	t.Parallel()
	for _, names := range []observe.MetricNames{"", observe.MetricNamesLathe, observe.MetricNamesSeeds, observe.MetricNamesBoth} {
		m := used(t, &observe.MetricsOptions{Names: names})
		types, series := scrape(t, m)
		got := map[string]string{}
		for name, typ := range types {
			got[name] = typ + " " + labelNames(name, series)
		}
		if diff := cmp.Diff(familiesOf(names), got); diff != "" {
			t.Errorf("%q: families (-want +got):\n%s", names, diff)
		}
		for _, name := range []string{"tool_calls_total", "lathe_tool_calls_total"} {
			if got := series[name+`{status="ok",tool="clock"}`]; familiesOf(names)[name] != "" && got != "1" {
				t.Errorf("%q: %s is %q, want 1", names, name, got)
			}
		}
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(m)
		families, err := registry.Gather()
		if err != nil {
			t.Fatalf("%q: %v", names, err)
		}
		var collected []string
		for _, f := range families {
			collected = append(collected, f.GetName())
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(types)), collected); diff != "" {
			t.Errorf("%q: names (-Handler +Collector):\n%s", names, diff)
		}
	}
}

// By default each metric that is not of OpenTelemetry's conventions has the prefix, and none is in milliseconds.
func TestDefaultNamesHavePrefixAndBaseUnits(t *testing.T) {
	t.Parallel()
	m := used(t, nil)
	m.CountWorkers(func() []observe.WorkerCount { return []observe.WorkerCount{{Pool: "p"}} })
	types, _ := scrape(t, m)
	for name := range types {
		if strings.HasPrefix(name, "gen_ai_") || strings.HasPrefix(name, "mcp_") {
			continue
		}
		if !strings.HasPrefix(name, "lathe_") || strings.HasSuffix(name, "_ms") || strings.Contains(name, "_ms_") || strings.Contains(name, "milliseconds") {
			t.Errorf("%s: want the prefix lathe_ and base units", name)
		}
	}
}

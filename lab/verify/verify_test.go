package verify_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/lab/doctor"
	"github.com/lathe-run/lathe/lab/verify"
	"github.com/lathe-run/lathe/sim"
)

func target(model string, w lathe.Wire, transport http.RoundTripper) doctor.Target {
	base := "http://sim.invalid/v1"
	if w == lathe.WireGemini {
		base = "http://sim.invalid/v1beta"
	}
	if transport == nil {
		transport = sim.New(nil).Transport()
	}
	return doctor.Target{BaseURL: base, Wire: w, Model: model, Transport: transport}
}

func options() *verify.Options {
	return &verify.Options{Doctor: doctor.Options{Timeout: 5 * time.Minute, Wait: time.Millisecond, MaxWait: time.Millisecond}}
}

func measure(t *testing.T, model string, w lathe.Wire, opts *verify.Options) *verify.Report {
	t.Helper()
	rep, err := verify.Run(t.Context(), target(model, w, nil), nil, opts)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// lowered are the families of the metrics below 100 %, sorted.
func lowered(rep *verify.Report) (out []string) {
	for _, m := range rep.Metrics {
		if f := family(m.ID); m.Target.OK < m.Target.N && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	slices.Sort(out)
	return out
}

var wires = []lathe.Wire{lathe.WireOpenAIChat, lathe.WireResponses, lathe.WireMessages, lathe.WireGemini}

// A server without faults has 100 % of every metric on every wire.
func TestNothingIsLoweredWithoutFaults(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		for _, model := range []string{sim.DemoModel, sim.ThinkingModel} {
			if model == sim.ThinkingModel && w == lathe.WireOpenAIChat {
				continue // its reasoning is not of the wire
			}
			t.Run(string(w)+model, func(t *testing.T) {
				t.Parallel()
				rep := measure(t, model, w, options())
				without := []string{"round_trip", "history_plain"} // what the model does not do
				if model == sim.ThinkingModel {
					without = []string{"history_own"}
				}
				if w == lathe.WireGemini {
					without = append(without, "parallel_off", "strict")
				}
				for _, m := range rep.Metrics {
					if m.Target.OK < m.Target.N || (m.Target.N == 0) != slices.Contains(without, m.ID) {
						t.Errorf("%s: %+v %+v", m.ID, m.Target, m.Deviations)
					}
				}
				if rep.Status != verify.Passed {
					t.Errorf("%s %v", rep.Status, rep.Why)
				}
			})
		}
	}
}

// family is what a metric is about.
func family(id string) string {
	switch {
	case strings.HasPrefix(id, "schema_") || id == "strict":
		return "schema"
	case strings.HasPrefix(id, "choice_") || id == "parallel_off":
		return "contract"
	case strings.HasPrefix(id, "history_"):
		return "history"
	}
	return id
}

// about is the family of metrics that each fault is about, where it is not the form of the wire.
var about = map[string]string{
	"args-deep": "schema", "args-double-encoded": "schema", "args-duplicate-keys": "schema", "args-huge": "schema", "args-invalid-json": "schema",
	"args-lone-surrogate": "schema", "args-missing": "schema", "args-null": "schema", "terminal-differs": "schema",
	"empty-final": "conduct", "tool-loop": "conduct", "unknown-tool": "conduct",
	"strict-roles":     "conduct history", // it does two things: it refuses a user message after a result, and leaves answers blank
	"status-400-tools": "accepted", "status-401": "accepted", "status-404-tools": "accepted", "status-400-context": "accepted",
	"usage-every-chunk": "usage", "usage-missing": "usage", "bound-thinking": "history", "strict-signatures": "history",
	"content-filter": "finish", "length": "finish", "pause-turn": "finish", "finish-stop": "finish", "finish-empty": "finish", "finish-end-turn": "finish",
	"finish-tool-calls": "finish", "finish-twice": "finish",
	"cut-before-end": "delivery", "cut-mid-argument": "delivery", "cut-mid-text": "delivery", "empty-body": "delivery", "end-missing": "delivery",
	"error-flat": "delivery", "error-in-band": "delivery", "error-in-band-first": "delivery", "error-nested": "delivery", "failed-only": "delivery",
	"overloaded-in-band": "delivery", "hang": "delivery", "html": "delivery", "malformed-call": "delivery", "status-408": "delivery", "status-429": "delivery",
	"status-429-always": "delivery", "status-429-delay": "delivery", "status-500": "delivery", "status-500-always": "delivery", "status-503": "delivery",
	"status-529": "delivery",
}

// silent are the forms that the codec of a wire reads without noting them: an answer shows no deviation, and none is counted.
var silent = map[lathe.Wire]string{
	lathe.WireGemini:    "args-empty args-partial keep-alive-flood reasoning-hidden signature-missing unknown-item usage-late",
	lathe.WireMessages:  "args-at-once args-empty args-one-piece event-nameless keep-alive-flood reasoning-hidden reasoning-redacted signature-missing unknown-item usage-split",
	lathe.WireResponses: "args-at-once args-empty args-one-piece calls-interleaved event-nameless index-sparse no-done reasoning-hidden signature-missing unknown-item",
}

// Each of the simulator's faults lowers the metrics that are about it, and no other, on each wire that it is for.
func TestEachFaultLowersItsMetric(t *testing.T) {
	t.Parallel()
	for _, w := range wires {
		for _, f := range sim.FaultsOn(w) {
			t.Run(string(w)+"/"+f.Name, func(t *testing.T) {
				t.Parallel()
				opts := options()
				opts.Trials = 1
				if f.Name == "hang" { // nothing else is awaited in vain
					opts.Doctor.Timeout = 50 * time.Millisecond
				}
				rep := measure(t, "sim/fault-"+f.Name, w, opts)
				want := about[f.Name]
				switch {
				case slices.Contains(strings.Fields(silent[w]), f.Name):
				case w == lathe.WireMessages && f.Name == "args-invalid-json": // a whole answer has no form for such a call, and ends as a cut one
					want = "finish schema"
				case want == "":
					want = "shape"
				}
				if got := strings.Join(lowered(rep), " "); got != want {
					t.Errorf("lowers %q, want %q", got, want)
					for _, m := range rep.Metrics {
						if m.Target.OK < m.Target.N {
							t.Logf("%s: %+v %+v", m.ID, m.Target, m.Deviations)
						}
					}
				}
			})
		}
	}
}

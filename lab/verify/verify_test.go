package verify_test

import (
	"bytes"
	"io"
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
					without = append(without, "parallel_off")
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
	"usage-every-chunk": "usage", "usage-missing": "usage", "strict-signatures": "history",
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
	lathe.WireMessages:  "args-at-once args-empty args-one-piece event-nameless id-repeated keep-alive-flood reasoning-hidden reasoning-redacted signature-missing unknown-item usage-split",
	lathe.WireResponses: "args-at-once args-empty args-one-piece calls-interleaved event-nameless id-repeated index-sparse no-done reasoning-hidden signature-missing unknown-item",
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

// A server over the simulated model, whose requests and answers differ in one property.
type property struct {
	request func(body []byte, stream bool) []byte // nil: as it is
	refuse  func(body []byte) bool
}

func (p property) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	if p.refuse != nil && p.refuse(body) {
		return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
			Body: io.NopCloser(strings.NewReader(`{"error":{"message":"this is not supported here","type":"invalid_request_error"}}`))}, nil
	}
	if p.request != nil {
		body = p.request(body, bytes.Contains(body, []byte(`"stream":true`)))
	}
	req = req.Clone(req.Context())
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return sim.New(nil).Transport().RoundTrip(req)
}

// replace returns a change of bodies.
func replace(old, with string) func([]byte, bool) []byte {
	return func(b []byte, _ bool) []byte { return bytes.ReplaceAll(b, []byte(old), []byte(with)) }
}

// as has requests that hold a text answered with a fault.
func as(fault string, when func(body string, stream bool) bool) property {
	return property{request: func(b []byte, stream bool) []byte {
		if when(string(b), stream) {
			return bytes.ReplaceAll(b, []byte(sim.DemoModel), []byte("sim/fault-"+fault))
		}
		return b
	}}
}

func always(string, bool) bool { return true }

// Two endpoints that differ in one property differ in its metric, and in no other.
func TestOnePropertyIsFound(t *testing.T) {
	t.Parallel()
	forced := func(stream bool) func(string, bool) bool {
		return func(b string, s bool) bool {
			return s == stream && strings.Contains(b, `"tool_choice":"required"`) && strings.Contains(b, "submit")
		}
	}
	for want, p := range map[string]property{
		"choice_none": {request: replace(`"tool_choice":"none"`, `"tool_choice":"auto"`)},
		"choice_required": {request: func(b []byte, _ bool) []byte {
			if !bytes.Contains(b, []byte(`"tools"`)) {
				return b
			}
			return bytes.ReplaceAll(b, []byte(`"tool_choice":"required"`), []byte(`"tool_choice":"auto"`))
		}},
		"choice_without_tools": {request: func(b []byte, _ bool) []byte {
			if bytes.Contains(b, []byte(`"tools"`)) {
				return b
			}
			return bytes.ReplaceAll(b, []byte(`"tool_choice":"required",`), nil)
		}},
		"choice_named":      {request: replace(`"tool_choice":{"type":"function","function":{"name":"ping"}}`, `"tool_choice":"auto"`)},
		"parallel_off":      {request: replace(`"parallel_tool_calls":false`, `"parallel_tool_calls":true`)},
		"structured_output": {request: replace(`"response_format":`, `"format":`)},
		"strict": {refuse: func(b []byte) bool {
			return bytes.Contains(b, []byte(`"strict":true`)) && bytes.Contains(b, []byte(`"tools":`))
		}},
		"schema_streamed": as("args-double-encoded", forced(true)),
		"schema_whole":    as("args-invalid-json", forced(false)),
		"fidelity": {request: func(b []byte, _ bool) []byte { // as a server does that reads numbers as float64
			for old, with := range map[string]string{"9007199254740993": "9007199254740992", "123456789012345678": "123456789012345680", "0.30000000000000004": "0.3"} {
				b = bytes.ReplaceAll(b, []byte(old), []byte(with))
			}
			return b
		}},
		"finish": as("finish-stop", always),
		"usage":  as("usage-every-chunk", always),
		"shape":  as("crlf", always),
		"delivery": as("cut-mid-text", func(b string, stream bool) bool {
			return stream && !strings.Contains(b, `"tools"`) || strings.Contains(b, "Oslo")
		}),
		"conduct":         as("empty-final", always),
		"history_foreign": {refuse: func(b []byte) bool { return bytes.Contains(b, []byte("call_lathe_verify_0001")) }},
		"tools":           {refuse: func(b []byte) bool { return bytes.Contains(b, []byte(`"tool_0021"`)) }},
		"argument_bytes":  {refuse: func(b []byte) bool { return bytes.Contains(b, bytes.Repeat([]byte("x"), 1000)) }},
		"context_bytes":   {refuse: func(b []byte) bool { return bytes.Count(b, []byte("only there to be long")) > 50 }},
		"":                {},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			opts := options()
			opts.Limits, opts.MaxTools, opts.MaxArguments, opts.MaxContext = true, 64, 4096, 8192
			reference := target(sim.DemoModel, "", nil)
			rep, err := verify.Run(t.Context(), target(sim.DemoModel, "", p), &reference, opts)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(rep.Differences(), " "); got != want {
				t.Errorf("finds %q, want %q", got, want)
				for _, m := range rep.Metrics {
					t.Logf("%s: %+v %+v %v", m.ID, m.Target, *m.Reference, m.Deviations)
				}
			}
			if made := rep.Target.Requests + rep.Reference.Requests; made > rep.Budget.Requests {
				t.Errorf("%d requests, and the budget was %d", made, rep.Budget.Requests)
			}
			if (rep.Status == verify.Passed) != (want == "" || strings.HasSuffix(want, "_bytes") || want == "tools" || want == "shape" || want == "strict") {
				t.Errorf("%s %v", rep.Status, rep.Why)
			}
			if want == "" && (rep.Trigger.F1 == nil || *rep.Trigger.F1 != 1 || *rep.Trigger.Noise != 1) {
				t.Errorf("%+v", rep.Trigger)
			}
		})
	}
}

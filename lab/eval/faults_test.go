package eval_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/lab/eval"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/sim"
)

// sums is a suite that sim/demo passes: two calls in one message, and the results in its answer.
const sums = `
tools:
  - name: calculator
    description: Evaluates an arithmetic expression.
    schema: {type: object, properties: {expression: {type: string, description: an arithmetic expression}}, required: [expression], additionalProperties: false}
    steps:
      - {append: /sums, value: "{expression}"}
      - {return: {result: 42}}
  - name: get_current_time
    description: Tells the current time in a time zone.
    effect: read_only
    schema: {type: object, properties: {zone: {type: string, description: an IANA time zone}}, required: [zone], additionalProperties: false}
    steps:
      - {return: {currentTime: "2026-11-20T20:30:00+09:00"}}
scenarios:
  - id: sum_and_time
    user: What is 7 + 35, and what time is it in Tokyo?
    settings: {parallel_tool_calls: true}
    database: {sums: []}
    gold:
      - {calculator: {expression: 7 + 35}, get_current_time: {zone: Asia/Tokyo}}
      - {say: 7 + 35 = 42. The time in Tokyo is 20:30.}
    assert:
      - {called: calculator}
      - {said: 7 + 35 = 42}
`

// served is a model on a simulated server, over a wire in memory.
func served(t *testing.T, name string, w lathe.Wire) eval.Target {
	t.Helper()
	s := sim.New(nil)
	opts := &provider.Options{BaseURL: "http://sim.invalid/v1", Transport: s.Transport(), Entry: name, Retry: provider.Retry{Attempts: 2}}
	var m lathe.Model
	var err error
	switch w {
	case lathe.WireResponses:
		m, err = provider.Responses(name, opts)
	case lathe.WireMessages:
		m, err = provider.Anthropic(name, opts)
	case lathe.WireGemini:
		opts.BaseURL = "http://sim.invalid/v1beta"
		m, err = provider.Gemini(name, opts)
	default:
		m, err = provider.OpenAI(name, opts)
	}
	if err != nil {
		t.Fatal(err)
	}
	return eval.Target{Name: name, Model: m}
}

// lowered are the metrics that are not at their best: classes of failures, ends other than an answer, the rates of state, trace and text, and
// what is counted of the form of calls and answers.
func lowered(rep *eval.Report) string {
	row := rep.Summary().Models[0]
	var out []string
	for class := range row.Classes {
		if class != eval.ClassAssertionFailed { // which the others explain
			out = append(out, string(class))
		}
	}
	for reason := range row.Unfinished {
		if reason != lathe.ReasonUpstreamError { // which its class explains
			out = append(out, "ended:"+string(reason))
		}
	}
	for name, rate := range map[string]*float64{"state": row.StateRate, "trace": row.TraceRate, "text": row.TextRate} {
		if rate != nil && *rate < 1 {
			out = append(out, name)
		}
	}
	for name, n := range map[string]int{"malformed": row.Malformed, "deviating": row.Deviating, "retries": row.Retries, "blank": row.Blank, "usage": row.NoUsage} {
		if n > 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// lowers is what each fault lowers, where it is not the form of answers ("deviating"). A fault that spoils each call leaves no way to the
// right result: state and text fall with the metric that says why.
var lowers = map[string]string{
	"args-double-encoded": "malformed", "args-null": "malformed state text", "args-missing": "malformed state text",
	"args-invalid-json": "malformed", "args-duplicate-keys": "malformed", "args-lone-surrogate": "malformed", "args-deep": "malformed", "args-huge": "malformed",
	"terminal-differs": "deviating state text",      // its calls are not executed
	"unknown-tool":     "ended:tool_loop malformed", // it does two things: it makes names up, and does not stop
	"tool-loop":        "ended:tool_loop", "length": "ended:length", "content-filter": "ended:content_filter",
	"empty-final": "blank", "strict-roles": "blank retries", "usage-missing": "usage",
	"status-408": "retries", "status-429": "retries", "status-429-delay": "retries", "status-500": "retries", "status-503": "retries", "status-529": "retries",
	"status-401": "AUTH", "status-429-always": "RATE_LIMIT", "status-400-tools": "NO_TOOL_USE_ENDPOINT", "status-404-tools": "NO_TOOL_USE_ENDPOINT",
	"status-400-context": "HTTP_400", "status-500-always": "UPSTREAM_5XX", "error-in-band": "UPSTREAM_5XX", "error-in-band-first": "UPSTREAM_5XX",
	"error-flat": "UPSTREAM_5XX", "error-nested": "UPSTREAM_5XX", "failed-only": "UPSTREAM_5XX", "overloaded-in-band": "UPSTREAM_5XX", "malformed-call": "UPSTREAM_5XX",
	"cut-mid-argument": "CONNECTION_LOST", "cut-mid-text": "CONNECTION_LOST", "cut-before-end": "CONNECTION_LOST",
	"html": "DECODE_ERROR", "empty-body": "DECODE_ERROR", "end-missing": "DECODE_ERROR", "hang": "TIMEOUT",
}

// accepted are the forms that the codec of a wire reads without noting them, so that they lower nothing.
var accepted = map[lathe.Wire]string{
	lathe.WireOpenAIChat: "index-sparse index-huge type-missing one-chunk two-in-one-chunk text-after-calls text-with-calls usage-every-chunk reasoning reasoning-content thinking",
	lathe.WireResponses: "index-sparse id-repeated no-done event-nameless unknown-item keep-alive-flood calls-interleaved args-one-piece args-at-once args-empty " +
		"signature-missing reasoning-hidden strict-signatures",
	lathe.WireMessages: "id-repeated event-nameless unknown-item keep-alive-flood args-one-piece args-at-once args-empty usage-split signature-missing reasoning-hidden " +
		"reasoning-redacted strict-signatures bound-thinking",
	lathe.WireGemini: "unknown-item keep-alive-flood args-partial args-empty usage-late signature-missing reasoning-hidden strict-signatures",
}

// acceptedOnAll are the forms of event streams that every codec reads without noting them.
const acceptedOnAll = "crlf bom comments multi-line-data long-line json-instead-of-stream"

// Each of the simulator's faults lowers the metric that is about it, and no other, on each wire that it is for. A server without faults
// lowers none. The time is that of a bubble: what hangs costs nothing.
func TestEachFaultLowersItsMetric(t *testing.T) {
	t.Parallel()
	s, err := eval.Parse("sums", []byte(sums))
	if err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T, model string, w lathe.Wire, want string) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			rep, err := eval.Measure(t.Context(), s, s.Scenarios, []eval.Target{served(t, model, w)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := lowered(rep); got != want {
				t.Errorf("lowers %q, want %q: %s", got, want, rep.Runs[0].Error)
			}
			passes := want == "" || slices.Contains([]string{"blank", "blank retries", "deviating", "malformed", "retries", "usage"}, want)
			if rep.Runs[0].OK != passes {
				t.Errorf("passed: %v, %s: %s", rep.Runs[0].OK, rep.Runs[0].Class, rep.Runs[0].Error)
			}
		})
	}
	known := map[string]bool{}
	for _, w := range []lathe.Wire{lathe.WireOpenAIChat, lathe.WireResponses, lathe.WireMessages, lathe.WireGemini} {
		t.Run(string(w)+"/none", func(t *testing.T) { check(t, sim.DemoModel, w, "") })
		for _, f := range sim.FaultsOn(w) {
			known[f.Name] = true
			want := lowers[f.Name]
			if want == "" && !slices.Contains(strings.Fields(accepted[w]+" "+acceptedOnAll), f.Name) {
				want = "deviating"
			}
			t.Run(string(w)+"/"+f.Name, func(t *testing.T) { check(t, "sim/fault-"+f.Name, w, want) })
		}
	}
	for _, f := range sim.Faults() {
		if !known[f.Name] {
			t.Errorf("%s is measured on no wire", f.Name)
		}
	}
	for name := range lowers {
		if !known[name] {
			t.Errorf("%s is no fault", name)
		}
	}
}

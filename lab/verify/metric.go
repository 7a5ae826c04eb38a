package verify

import (
	"slices"
	"strings"
	"sync"

	"github.com/lathe-run/lathe/lab/doctor"
)

// Ids of metrics.
const (
	metricAccepted   = "accepted"
	metricDelivery   = "delivery"
	metricShape      = "shape"
	metricFinish     = "finish"
	metricUsage      = "usage"
	metricConduct    = "conduct"
	metricWhole      = "schema_whole"
	metricStreamed   = "schema_streamed"
	metricAuto       = "schema_auto"
	metricStrict     = "strict"
	metricFidelity   = "fidelity"
	metricNone       = "choice_none"
	metricRequired   = "choice_required"
	metricNamed      = "choice_named"
	metricParallel   = "parallel_off"
	metricNoTools    = "choice_without_tools"
	metricStructured = "structured_output"
	metricOwn        = "history_own"
	metricReasoning  = "round_trip"
	metricPlain      = "history_plain"
	metricForeign    = "history_foreign"
)

// A definition describes a metric.
type definition struct{ id, name, counts string }

var definitions = []definition{
	{metricAccepted, "Requests accepted", "requests in the plain form that are not refused, of those answered"},
	{metricDelivery, "Answers delivered", "answers that arrive whole, of the requests that are not refused"},
	{metricShape, "Form of the wire", "answers without any deviation from the wire's form"},
	{metricFinish, "Finish reason", "answers that end by themselves, with the right reason"},
	{metricUsage, "Usage", "answers whose usage is there, adds up, grows with the prompt and is the same whole and streamed"},
	{metricConduct, "Turns as asked", "answers with a call of an offered tool where one is asked for, with text after a result"},
	{metricAuto, "Schema accuracy", "answers with finish reason tool_calls whose calls all fit their schemas (K2 Vendor Verifier)"},
	{metricWhole, "Forced schema accuracy, whole", "answers to tool_choice required with arguments that fit the schema (Kimi Vendor Verifier)"},
	{metricStreamed, "Forced schema accuracy, streamed", "the same, streamed"},
	{metricStrict, "Strict", "calls with strict set whose arguments fit the schema"},
	{metricFidelity, "Argument fidelity", "calls whose valid arguments are exactly those that were asked for"},
	{metricNone, "tool_choice none", "answers without a call"},
	{metricRequired, "tool_choice required", "answers with a call"},
	{metricNamed, "tool_choice of one tool", "answers with a call of that tool"},
	{metricParallel, "parallel_tool_calls false", "answers with one call at most"},
	{metricNoTools, "tool_choice required without tools", "requests that are refused, since there is no tool to call"},
	{metricStructured, "Structured output", "answers to a response format that fit its schema"},
	{metricOwn, "History of its own", "calls without reasoning and signatures that are accepted with their result"},
	{metricReasoning, "Reasoning round trip", "calls that are accepted with their result, with reasoning and signatures as they came"},
	{metricPlain, "History without reasoning", "the same calls, accepted without their reasoning and signatures"},
	{metricForeign, "History of another server", "histories that are accepted with a call that the server did not make, and a user message after its result"},
}

// repeated are the metrics whose cases are trials of the same request, for which pass^k is estimated.
var repeated = []string{metricNone, metricRequired, metricNamed, metricParallel, metricNoTools, metricForeign}

// ofFinding maps findings to metrics, for findings that do not have the metric of their group in byGroup. "": the finding affects no
// metric, because a probe counts it itself or it is not a property of an answer.
var ofFinding = map[string]string{
	"json-instead-of-stream": metricShape, "content-type": metricShape, "too-large": metricDelivery, "not-a-completion": metricDelivery,
	"error-in-band": metricDelivery, "error-in-band-first": metricDelivery, "cut-mid-argument": metricDelivery, "cut-mid-text": metricDelivery,
	"usage-missing": metricUsage, "usage-invalid": metricUsage, "usage-every-chunk": metricUsage,
	"args-object": metricShape, "args-empty-object-first": metricShape,
	"reasoning": metricShape, "reasoning-content": metricShape, "thinking": metricShape, "reasoning-twice": metricShape, "content-unknown": metricShape,
	"max-tokens-refused": "", "max-tokens-ignored": "", "usage-refused": "", "feature-refused": "", "loading": "",
}

// byGroup maps groups of findings to metrics.
var byGroup = map[string]string{"server": metricDelivery, "stream": metricShape, "calls": metricShape, "end of an answer": metricFinish,
	"text and thinking": metricConduct, "model": metricConduct}

// findings returns the findings of the catalogue by id.
var findings = sync.OnceValue(func() map[string]doctor.Finding {
	m := map[string]doctor.Finding{}
	for _, f := range doctor.Catalogue() {
		m[f.ID] = f
	}
	return m
})

// metricOf returns the metric that a finding about an answer lowers, or "".
func metricOf(id string) string {
	if m, ok := ofFinding[id]; ok {
		return m
	}
	return byGroup[findings()[id].Group]
}

// faultMetric returns the metric that is lowered by a deviation that a codec tolerated, or "".
func faultMetric(kind string) string {
	switch {
	case strings.Contains(kind, "arg"): // the schema check counts it
		return ""
	case strings.Contains(kind, "finish"), strings.Contains(kind, "stop"), strings.Contains(kind, "pause"):
		return metricFinish
	case strings.Contains(kind, "usage"):
		return metricUsage
	}
	return metricShape
}

// badArguments are the findings about arguments that match no schema.
var badArguments = []string{"args-double-encoded", "args-null", "args-missing", "args-blank", "args-invalid-json", "args-duplicate-keys",
	"args-lone-surrogate", "args-deep", "args-huge"}

func hasBadArguments(a *doctor.Answer) bool {
	return slices.ContainsFunc(a.Findings, func(id string) bool { return slices.Contains(badArguments, id) })
}

package observe

import (
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/setting"
)

// reasonLabels and codeLabels are complete vocabularies: no other reason or code becomes a label value.
var reasonLabels = []lathe.Reason{
	lathe.ReasonAnswered, lathe.ReasonClientToolCalls, lathe.ReasonAwaitingApproval, lathe.ReasonAwaitingToolResults,
	lathe.ReasonMaxIterations, lathe.ReasonMaxToolCalls, lathe.ReasonToolLoop, lathe.ReasonRunTimeout, lathe.ReasonBudgetExceeded,
	lathe.ReasonNoToolCalls, lathe.ReasonInvalidAnswer, lathe.ReasonEmptyAnswer, lathe.ReasonToolError, lathe.ReasonUnknownTool, lathe.ReasonContentFilter, lathe.ReasonLength,
	lathe.ReasonUpstreamError, lathe.ReasonBudgetExhausted, lathe.ReasonGuestFault, lathe.ReasonCancelled, lathe.ReasonInterrupted, lathe.ReasonInternal,
}

var codeLabels = []lathe.Code{
	lathe.CodePayloadTooLarge, lathe.CodePayloadParseError, lathe.CodeInvalidJSON, lathe.CodeArgumentsTooLarge, lathe.CodeInvalidArguments,
	lathe.CodeUnknownTool, lathe.CodePolicyDenied, lathe.CodeApprovalDenied, lathe.CodeApprovalExpired, lathe.CodeExecutionFailed,
	lathe.CodeUnavailable, lathe.CodeTimeout, lathe.CodeCancelled, lathe.CodeInterrupted, lathe.CodeRateLimited, lathe.CodeOutputTooLarge,
	lathe.CodeInvalidOutput, lathe.CodeRedactionFailed, lathe.CodeToolCallLimit, lathe.CodeMaxDepth, lathe.CodeTooManyCalls, lathe.CodeIncompleteCall,
	lathe.CodeInvalidRequest, lathe.CodeInvalidConfig, lathe.CodeConflict, lathe.CodeNotFound, lathe.CodeContentRemoved, lathe.CodeBudgetExhausted, lathe.CodePriceUnknown, lathe.CodeTooManyTools, lathe.CodeUpstreamProtocol, lathe.CodeUpstream, lathe.CodeInternal,
}

// The prefixes of the fault kinds of model calls that are counted in the metrics of the harmony dialect.
const (
	stagePrefix = "harmony_parse_error."
	orderPrefix = "harmony_unexpected_order."
)

// clientTools is the label of all tools that callers declare.
const clientTools = "client"

// rest is the label of all values that are not in a vocabulary. For tools it is "unknown".
const rest = "other"

// errno reports whether a return code is an errno number that a WASM tool may return: -133 to -1.
func errno(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n < 0 && n >= -133 && strconv.Itoa(n) == s
}

type registry struct {
	*prometheus.Registry
	names MetricNames
}

// hasOldNames reports whether the registry has metrics under names without a prefix.
func (r registry) hasOldNames() bool {
	return r.names == MetricNamesSeeds || r.names == MetricNamesBoth
}

// renamed registers a counter under its old name, which has no prefix, under the same name with the prefix lathe_, or under both.
func (r registry) renamed(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	if r.hasOldNames() {
		r.MustRegister(v)
	}
	if r.names != MetricNamesSeeds {
		prometheus.WrapRegistererWithPrefix("lathe_", r).MustRegister(v)
	}
	return v
}

func (r registry) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	r.MustRegister(v)
	return v
}

func (r registry) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	r.MustRegister(v)
	return v
}

// newCounters returns the series of v, whose only label has the known values, others that accepts allows, up to limit, and rest.
func newCounters(known []string, limit int, accepts func(string) bool, v *prometheus.CounterVec) *counters {
	return newVocabulary(rest, known, limit, accepts, func(label string) prometheus.Counter { return v.WithLabelValues(label) })
}

func (m *Metrics) makeToolSeries(r registry, names []string, maxTools int) {
	total := r.renamed("tool_calls_total", "Tool calls that were answered, by tool and status of the result.", "tool", "status")
	proposed := r.renamed("tool_calls_proposed_total", "Tool calls that models asked for.", "tool")
	executed := r.renamed("tool_calls_executed_total", "Tool calls whose tool ran, or was answered from the cache.", "tool", "success")
	latency := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "tool_call_latency_ms", Help: "Time from accepting a tool call to its result, in milliseconds.",
		Buckets: []float64{1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000},
	}, []string{"tool"})
	if r.hasOldNames() { // else it is counted and not shown: seconds has the same in the base unit
		r.MustRegister(latency)
	}
	seconds := r.histogram("lathe_tool_call_duration_seconds", "Time from accepting a tool call to its result.",
		[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}, "tool")
	executions := r.histogram("gen_ai_execute_tool_duration_seconds", "Time of a tool call that is executed by this gateway, as OpenTelemetry has it.", toolBuckets,
		"gen_ai_tool_name", "gen_ai_tool_type", "error_type")
	known := []string{clientTools}
	for _, name := range names {
		if toolName(name) && !slices.Contains(known, name) {
			known = append(known, name)
		}
	}
	m.tools = newVocabulary("unknown", known, 1+len(known)+maxTools, toolName, func(tool string) *toolSeries {
		s := &toolSeries{
			ok: total.WithLabelValues(tool, "ok"), failed: total.WithLabelValues(tool, "error"),
			proposed:  proposed.WithLabelValues(tool),
			succeeded: executed.WithLabelValues(tool, "true"), unsuccessful: executed.WithLabelValues(tool, "false"),
			latency: latency.WithLabelValues(tool), seconds: seconds.WithLabelValues(tool),
		}
		if tool != clientTools {
			s.execution = executions.WithLabelValues(tool, toolExtension, "")
			s.failedExecution = executions.MustCurryWith(prometheus.Labels{"gen_ai_tool_name": tool, "gen_ai_tool_type": toolExtension})
		}
		return s
	})
	var codes []string
	for _, c := range codeLabels {
		codes = append(codes, string(c))
	}
	m.codes = map[string]bool{}
	for _, c := range append(codes, "timeout", "rate_limited", "upstream_4xx", "upstream_5xx", "aborted", "protocol") {
		m.codes[c] = true
	}
	m.failures = newCounters(codes, 256, errno,
		r.renamed("tool_call_failures_total", "Tool calls that failed, by a WASM tool's return code, else by error code.", "rc"))
	m.parseErrors = r.renamed("tool_call_parse_errors_total", "Tool calls written as text that could not be read.").WithLabelValues()
	m.iterations = r.renamed("tool_call_iterations_total", "Turns that were begun.").WithLabelValues()
	m.outputBytes = r.renamed("tool_output_bytes_total", "Bytes that tools put out.").WithLabelValues()
	m.stages = newCounters([]string{"unknown_channel", "tool_call"}, 32, lowerWord,
		r.renamed("harmony_parse_error_total", "Harmony text that could not be read, by stage.", "stage"))
	m.orders = newCounters([]string{"extra_final", "analysis_after_final", "commentary_after_final", "interleaved_final"}, 32, lowerWord,
		r.renamed("harmony_unexpected_order_total", "Harmony messages out of order, by type.", "type"))
}

func (m *Metrics) makeRunSeries(r registry) {
	var reasons []string
	for _, reason := range reasonLabels {
		reasons = append(reasons, string(reason))
	}
	m.reasons = newCounters(reasons, 0, nil, r.counter("lathe_runs_total", "Runs that ended, by reason.", "reason"))
	calls := r.counter("lathe_model_calls_total", "Attempts of model calls, by provider and status.", "provider", "status")
	tokens := r.counter("lathe_tokens_total", "Tokens as model servers count them, by direction.", "provider", "direction")
	m.providers = newVocabulary(rest, nil, 64, lowerWord, func(provider string) *attemptSeries { return newAttemptSeries(calls, tokens, provider) })
	m.limits = newCounters(setting.Keys[lathe.Limits](""), 64, lowerWord, r.counter("lathe_limit_hits_total", "Calls and runs that met a limit, by its configuration key.", "limit"))
	m.repairs = newCounters([]string{string(event.RepairCodeFence), string(event.RepairJSONString), string(event.RepairBOM), string(event.RepairCharacter), string(event.RepairComma)}, 0, nil,
		r.counter("lathe_argument_repairs_total", "Repairs of the arguments of tool calls.", "kind"))
	m.decisions = newCounters([]string{"allow", "ask", "deny"}, 0, nil,
		r.counter("lathe_policy_decisions_total", "Decisions of the policy about tool calls.", "decision"))
	m.faults = newCounters(nil, 64, lowerWord, r.counter("lathe_upstream_faults_total", "Faults of model servers that were tolerated, by kind.", "kind"))
	m.approvals = r.gauge("lathe_approvals_pending", "Approvals that were asked for and not answered.").WithLabelValues()
	m.requests = r.counter("lathe_http_requests_total", "HTTP requests that were answered, by route and status.", "route", "status")
	m.inflight = r.gauge("lathe_inflight_bytes", "Memory of what clients have sent and that is not answered yet, in bytes.").WithLabelValues()
	m.clients = r.gauge("lathe_stream_clients", "Clients that read a live stream.").WithLabelValues()
	m.lostTurns = r.counter("lathe_lost_joins_total", "Turns with calls of this gateway that are not in a model's conversation: the client has changed older messages, or they are not stored any more.").WithLabelValues()
	m.lostSpans = r.counter("lathe_spans_dropped_total", "Spans that were not sent to the collector.").WithLabelValues()
	m.lostLines = r.counter("lathe_log_lines_dropped_total", "Log lines that could not be written.").WithLabelValues()
	m.dropped = r.counter("lathe_events_dropped_total", "Live events that watchers were too slow for.").WithLabelValues()
	m.compacted = r.counter("lathe_runs_compacted_total", "Ended runs whose content was removed under their retention settings.").WithLabelValues()
	m.removedBytes = r.counter("lathe_content_removed_bytes_total", "Bytes of content that were removed from ended runs.").WithLabelValues()
}

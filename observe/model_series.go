package observe

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// Model calls are counted by model entry and key, and again under the metric names of OpenTelemetry's conventions for generative AI, as
// Prometheus writes them: dots become underscores, and seconds are a suffix. Runs, which the conventions call agent invocations, and
// executions of tools are counted under those names, too.

// maxModelSeries is the maximum number of label pairs of each family below. Further pairs count as "other".
const maxModelSeries = 512

// Labels for an empty key and an empty model entry.
const (
	noKey        = "none"    // the server requires no keys
	defaultModel = "default" // the run names no model
)

// Buckets of the conventions, in seconds and in tokens.
var (
	secondsBuckets = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68}
	toolBuckets    = secondsBuckets[:14]
	runBuckets     = []float64{0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6}
	tokenBuckets   = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)

// A pair consists of two labels: model entry and key, provider and model, or method and tool.
type pair struct{ first, second string }

// newPairs returns a vocabulary of pairs. Pairs beyond maxModelSeries, and texts that cannot be labels, count as the pair of rest.
func newPairs[T any](create func(first, second string) T) *vocabulary[pair, T] {
	accepts := func(p pair) bool { return isLabelText(p.first) && isLabelText(p.second) }
	return newVocabulary(pair{rest, rest}, nil, maxModelSeries, accepts, func(p pair) T { return create(p.first, p.second) })
}

// isLabelText reports whether s can be the name of a model or key in a label: printable ASCII without blanks, 1 to 128 bytes.
func isLabelText(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != "" && len(s) <= 128
}

// attemptSeries count attempts of model calls by status, and their tokens.
type attemptSeries struct{ success, failed, other, input, output prometheus.Counter }

// newAttemptSeries returns the series with the labels, to which each metric adds one.
func newAttemptSeries(calls, tokens *prometheus.CounterVec, labels ...string) *attemptSeries {
	of := func(v *prometheus.CounterVec, last string) prometheus.Counter {
		return v.WithLabelValues(append(slices.Clone(labels), last)...)
	}
	return &attemptSeries{of(calls, "success"), of(calls, "error"), of(calls, rest), of(tokens, "input"), of(tokens, "output")}
}

func (s *attemptSeries) count(d *event.ModelCallFinished) {
	switch d.Status {
	case "success":
		s.success.Inc()
	case "error":
		s.failed.Inc()
	default:
		s.other.Inc()
	}
	addTokens(s.input, d.Usage.InputTokens)
	addTokens(s.output, d.Usage.OutputTokens)
}

// ownerSeries are the series of one model entry and one key.
type ownerSeries struct {
	*attemptSeries
	cost                 prometheus.Counter
	duration, firstToken prometheus.Observer
}

// clientSeries are the series of the conventions for one provider and one model.
type clientSeries struct {
	input, output, firstChunk prometheus.Observer
	duration                  prometheus.Observer
	failed                    prometheus.ObserverVec // by error.type
	latest                    *latestSeries          // nil: Conventions is version 1.41
}

// Conventions selects a version of OpenTelemetry's semantic conventions for generative AI.
type Conventions string

// The values of Conventions. "" is version 1.41.
const (
	ConventionsLatest Conventions = "latest" // the version after 1.41, which is not released
	ConventionsBoth   Conventions = "both"   // the metrics of version 1.41 and those of the next version
)

// latestSeries are the token metrics of the next version of the conventions for one provider and one model: a counter for each kind of
// token, and their distribution over operations.
type latestSeries struct {
	input, output, cached, reasoning prometheus.Counter
	inputs, outputs                  prometheus.Observer
}

// newLatestSeries registers the metrics and returns a function that makes the series of one provider and model. The modality of tokens is
// unknown, because servers do not report it.
func newLatestSeries(r registry) func(provider, model string) *latestSeries {
	labels := []string{"gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model"}
	used := func(kind, help string) *prometheus.CounterVec {
		return r.counter("gen_ai_client_inference_usage_"+kind+"_total", help, append(labels, "gen_ai_token_modality")...)
	}
	input, output := used("input_tokens", "Input tokens of model calls, as OpenTelemetry has it."), used("output_tokens", "Output tokens of model calls, as OpenTelemetry has it.")
	cached, reasoning := used("cache_read_input_tokens", "Input tokens that were read from a cache."), used("reasoning_output_tokens", "Output tokens of reasoning.")
	inputs := r.histogram("gen_ai_client_inference_operation_input_tokens", "Input tokens of an attempt of a model call.", tokenBuckets, labels...)
	outputs := r.histogram("gen_ai_client_inference_operation_output_tokens", "Output tokens of an attempt of a model call.", tokenBuckets, labels...)
	return func(provider, model string) *latestSeries {
		of := func(v *prometheus.CounterVec) prometheus.Counter {
			return v.WithLabelValues(spanChat, provider, model, "unknown")
		}
		return &latestSeries{of(input), of(output), of(cached), of(reasoning), inputs.WithLabelValues(spanChat, provider, model), outputs.WithLabelValues(spanChat, provider, model)}
	}
}

func (s *latestSeries) count(u lathe.Usage) {
	addTokens(s.input, u.InputTokens)
	addTokens(s.output, u.OutputTokens)
	addTokens(s.cached, u.CachedTokens)
	addTokens(s.reasoning, u.ReasoningTokens)
	observeTokens(s.inputs, u.InputTokens)
	observeTokens(s.outputs, u.OutputTokens)
}

// addTokens adds n to c. A negative number counts as 0.
func addTokens(c prometheus.Counter, n int64) { c.Add(float64(max(n, 0))) }

// observeTokens records n, if it is above 0. o may be nil.
func observeTokens(o prometheus.Observer, n int64) {
	if o != nil && n > 0 {
		o.Observe(float64(n))
	}
}

func (r registry) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	r.MustRegister(v)
	return v
}

func (m *Metrics) makeModelSeries(r registry, version Conventions) {
	requests := r.counter("lathe_model_requests_total", "Attempts of model calls, by model entry, key and status.", "model", "key", "status")
	tokens := r.counter("lathe_model_tokens_total", "Tokens as model servers count them, by model entry, key and direction.", "model", "key", "direction")
	cost := r.counter("lathe_model_cost_dollars_total", "What model calls cost in US dollars, as far as it is known, by model entry and key.", "model", "key")
	duration := r.histogram("lathe_model_call_duration_seconds", "Time of an attempt of a model call, by model entry and key.", secondsBuckets, "model", "key")
	first := r.histogram("lathe_model_first_token_seconds", "Time to the first token of an attempt, by model entry and key.", secondsBuckets, "model", "key")
	m.owners = newPairs(func(model, key string) *ownerSeries {
		return &ownerSeries{newAttemptSeries(requests, tokens, model, key), cost.WithLabelValues(model, key), duration.WithLabelValues(model, key), first.WithLabelValues(model, key)}
	})
	var usage *prometheus.HistogramVec
	if version != ConventionsLatest {
		usage = r.histogram("gen_ai_client_token_usage", "Tokens of an attempt of a model call, as OpenTelemetry has it.", tokenBuckets,
			"gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "gen_ai_token_type")
	}
	latest := func(string, string) *latestSeries { return nil }
	if version != "" {
		latest = newLatestSeries(r)
	}
	operation := r.histogram("gen_ai_client_operation_duration_seconds", "Time of an attempt of a model call, as OpenTelemetry has it.", secondsBuckets,
		"gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "error_type")
	chunk := r.histogram("gen_ai_client_operation_time_to_first_chunk_seconds", "Time to the first chunk of an attempt, as OpenTelemetry has it.", secondsBuckets,
		"gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model")
	m.clientCalls = newPairs(func(provider, model string) *clientSeries {
		c := &clientSeries{latest: latest(provider, model),
			firstChunk: chunk.WithLabelValues(spanChat, provider, model), duration: operation.WithLabelValues(spanChat, provider, model, ""),
			failed: operation.MustCurryWith(prometheus.Labels{"gen_ai_operation_name": spanChat, "gen_ai_provider_name": provider, "gen_ai_request_model": model})}
		if usage != nil {
			c.input, c.output = usage.WithLabelValues(spanChat, provider, model, "input"), usage.WithLabelValues(spanChat, provider, model, "output")
		}
		return c
	})
	m.invocations = r.histogram("gen_ai_invoke_agent_duration_seconds", "Time of a run, as OpenTelemetry has it.", runBuckets, "error_type")
	m.firstBytes = r.histogram("lathe_http_first_byte_seconds", "Time from the head of an HTTP request to the first byte of its answer, by route.", secondsBuckets, "route")
	m.routes = r.histogram("lathe_http_request_duration_seconds", "Time from the head of an HTTP request to the end of its answer, by route.", secondsBuckets, "route")
}

// ownerOf returns the series for the model entry and the key of the run.
func (m *Metrics) ownerOf(o event.RunOwner) *ownerSeries {
	return m.owners.get(pair{cmp.Or(o.Target, defaultModel), cmp.Or(o.Profile, o.Principal, noKey)})
}

// observeCall records the time, the tokens and the cost of an attempt of a model call.
func (m *Metrics) observeCall(o event.RunOwner, d *event.ModelCallFinished) {
	s := m.ownerOf(o)
	c := m.clientCalls.get(pair{d.Provider, d.Model})
	took, first := float64(max(d.LatencyMS, 0))/1000, float64(max(d.FirstTokenMS, 0))/1000
	s.count(d)
	s.duration.Observe(took)
	switch d.Status {
	case "success":
		c.duration.Observe(took)
	case "error":
		c.failed.WithLabelValues(m.errorType(d.ErrorCode)).Observe(took)
	default:
		c.failed.WithLabelValues(rest).Observe(took)
	}
	if first > 0 {
		s.firstToken.Observe(first)
		c.firstChunk.Observe(first)
	}
	observeTokens(c.input, d.Usage.InputTokens)
	observeTokens(c.output, d.Usage.OutputTokens)
	if c.latest != nil {
		c.latest.count(d.Usage)
	}
	if cost := d.Dollars(); cost != nil && *cost > 0 {
		s.cost.Add(*cost)
	}
}

// invocation records the duration of a run that has ended, by its error.
func (m *Metrics) invocation(d *event.RunFinished) {
	failure := ""
	switch {
	case d.Status != "failed" && d.Status != "limited": // no error
	case m.codes[d.ErrorCode]:
		failure = d.ErrorCode
	case slices.Contains(reasonLabels, d.Reason):
		failure = string(d.Reason)
	default:
		failure = rest
	}
	m.invocations.WithLabelValues(failure).Observe(float64(max(d.LatencyMS, 0)) / 1000)
}

// errorType returns code if it is in the vocabulary, and "other" otherwise.
func (m *Metrics) errorType(code string) string {
	if m.codes[code] {
		return code
	}
	return rest
}

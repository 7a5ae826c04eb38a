package observe

import (
	"cmp"
	"context"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lathe-run/lathe/event"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

var (
	_ event.Sink           = (*Metrics)(nil)
	_ prometheus.Collector = (*Metrics)(nil)
)

// Metrics is an [event.Sink] that counts events as Prometheus metrics. [Metrics.Handler] serves the metrics; alternatively, a program
// registers the Metrics in its own registry, since it is a [prometheus.Collector]. Its methods may be called from several goroutines at
// once.
//
// The number of label values is limited. The tool label is the registered name of the tool, "client" for tools that callers declare, or
// "unknown". Any other label has one of a fixed set of values, or "other".
type Metrics struct {
	handler  http.Handler
	registry registry
	workers  *workerSeries

	tools     *vocabulary[string, *toolSeries]
	failures  *counters
	providers *vocabulary[string, *attemptSeries]
	reasons   *counters
	limits    *counters
	decisions *counters
	repairs   *counters
	faults    *counters
	stages    *counters
	orders    *counters

	parseErrors, iterations, outputBytes, dropped prometheus.Counter
	lostTurns, lostSpans, lostLines               prometheus.Counter
	compacted, removedBytes                       prometheus.Counter
	approvals, clients, inflight                  prometheus.Gauge
	requests                                      *prometheus.CounterVec
	routes, firstBytes                            *prometheus.HistogramVec
	invocations                                   *prometheus.HistogramVec // durations of runs, by error.type
	owners                                        *vocabulary[pair, *ownerSeries]
	clientCalls                                   *vocabulary[pair, *clientSeries]
	mcpClient, mcpServer                          mcpSeries
	codes                                         map[string]bool // codes that are label values of failed model calls

	mu      sync.Mutex      // guards the fields below
	pending map[string]int  // number of open approvals by run
	touched map[string]bool // runs whose approvals have changed since the start of a recount; nil: no recount is in progress
	rc      map[callKey]int // return codes of executed calls, until their results
}

type callKey struct{ run, call string }

// MetricsOptions are the options of [NewMetrics].
type MetricsOptions struct {
	Version  string // the label version of lathe_build_info; "": "unknown"
	Revision string // the label revision of lathe_build_info; "": "unknown"
	// Tools are names of tools. Their series exist from the start, with the value 0. Names after the first 1,024 are ignored.
	Tools []string
	// MaxTools is the maximum number of tool names beyond Tools that get series of their own; 0 or less: 256. Further tools count as
	// "unknown".
	MaxTools int
	// Conventions selects the version of OpenTelemetry's semantic conventions for the metrics that differ between versions; "": version
	// 1.41.
	Conventions Conventions
	// Names selects whether ten older metrics have names with the prefix lathe_; "": [MetricNamesLathe].
	Names MetricNames
	// Process adds the metrics of the Go runtime and the process to Handler. Collect never returns them, because a program's registry has
	// its own collectors for them.
	Process bool
}

// MetricNames selects the names of the ten metrics that existed before the prefix lathe_: those that begin with tool_ or harmony_ in
// docs/events.md. The names of all other metrics are fixed.
type MetricNames string

// The values of MetricNames. Any other value counts as [MetricNamesLathe].
const (
	MetricNamesLathe MetricNames = "lathe" // with the prefix: lathe_tool_calls_total; tool_call_latency_ms is not exported
	MetricNamesSeeds MetricNames = "seeds" // without a prefix: tool_calls_total; the default of the gateway
	MetricNamesBoth  MetricNames = "both"  // under both names, with equal values
)

type toolSeries struct {
	ok, failed, proposed, succeeded, unsuccessful prometheus.Counter
	latency, seconds                              prometheus.Observer
	// Series of the conventions; nil for tools that callers declare, which this process does not execute.
	execution       prometheus.Observer
	failedExecution prometheus.ObserverVec // by error.type
}

// maxKnownTools is the maximum number of MetricsOptions.Tools; further ones are ignored.
const maxKnownTools = 1024

// NewMetrics returns metrics that are all 0, except lathe_build_info, which is 1. They are not in the default registry of Prometheus, so that
// several Metrics may exist in a process. opts may be nil.
func NewMetrics(opts *MetricsOptions) *Metrics {
	var o MetricsOptions
	if opts != nil {
		o = *opts
	}
	if o.MaxTools <= 0 {
		o.MaxTools = 256
	}
	r := registry{prometheus.NewRegistry(), o.Names}
	m := &Metrics{registry: r, pending: map[string]int{}, rc: map[callKey]int{}}
	served := prometheus.Gatherers{r.Registry}
	m.makeToolSeries(r, o.Tools[:min(len(o.Tools), maxKnownTools)], o.MaxTools)
	m.makeRunSeries(r)
	m.makeModelSeries(r, o.Conventions)
	m.mcpClient = makeMCPSeries(r, "mcp_client_operation_duration_seconds", "Time of a request to an MCP server, as OpenTelemetry has it.")
	m.mcpServer = makeMCPSeries(r, "mcp_server_operation_duration_seconds", "Time of a request of an MCP client, as OpenTelemetry has it.")
	r.gauge("lathe_build_info", "The running version; the value is always 1.", "version", "revision", "go_version").
		WithLabelValues(cmp.Or(o.Version, "unknown"), cmp.Or(o.Revision, "unknown"), runtime.Version()).Set(1)
	m.workers = makeWorkerSeries(r)
	if o.Process {
		process := prometheus.NewRegistry()
		process.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		served = append(served, process)
	}
	m.handler = promhttp.HandlerFor(served, promhttp.HandlerOpts{MaxRequestsInFlight: 8})
	return m
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(to chan<- *prometheus.Desc) { m.registry.Describe(to) }

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(to chan<- prometheus.Metric) { m.registry.Collect(to) }

// Handler returns a handler that serves the metrics in the Prometheus text format on every path. It requires no API key. It serves at most
// 8 requests at once and answers further ones with 503.
func (m *Metrics) Handler() http.Handler { return m.handler }

// AddLostTurns adds n to the number of turns whose tool calls and results the gateway could not restore, because the client changed earlier
// messages.
func (m *Metrics) AddLostTurns(n int) { m.lostTurns.Add(float64(n)) }

// CountRequest counts an HTTP request that was answered with this status. route must be a pattern of the server's routes, or "none". Each
// route gets series of its own, so the caller must limit their number.
func (m *Metrics) CountRequest(route string, status int) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
}

// ObserveRequest records how long an HTTP request took, from the receipt of its headers to the end of the response. It does not count the
// request: see [Metrics.CountRequest].
func (m *Metrics) ObserveRequest(route string, took time.Duration) {
	m.routes.WithLabelValues(route).Observe(max(took, 0).Seconds())
}

// ObserveFirstByte records the time from the receipt of the headers of an HTTP request to the first byte of the response.
func (m *Metrics) ObserveFirstByte(route string, took time.Duration) {
	m.firstBytes.WithLabelValues(route).Observe(max(took, 0).Seconds())
}

// AddInflightBytes adds n, which may be negative, to the gauge of the memory that requests in progress use, in bytes.
func (m *Metrics) AddInflightBytes(n int64) { m.inflight.Add(float64(n)) }

// AddStreamClients adds n, which may be negative, to the gauge of clients that read a live stream.
func (m *Metrics) AddStreamClients(n int) { m.clients.Add(float64(n)) }

// AddCompacted adds to two counters: the runs from which a store has removed content because of its retention settings, and the removed
// bytes.
func (m *Metrics) AddCompacted(runs int, bytes int64) {
	m.compacted.Add(float64(runs))
	m.removedBytes.Add(float64(bytes))
}

// AddDropped adds n to the number of deltas that subscriptions have lost: see [BusOptions].Dropped.
func (m *Metrics) AddDropped(n int) { m.dropped.Add(float64(n)) }

// AddLostSpans adds n to the number of spans that were not sent: see [TracesOptions].Lost.
func (m *Metrics) AddLostSpans(n int) { m.lostSpans.Add(float64(n)) }

// AddLostLines adds n to the number of log lines that could not be written: see [CountLostLines].
func (m *Metrics) AddLostLines(n int) { m.lostLines.Add(float64(n)) }

// Emit implements [event.Sink]. It does not allocate if all labels are known.
func (m *Metrics) Emit(ctx context.Context, e event.Event) {
	switch d := e.Data.(type) {
	case *event.ModelCallStarted:
		if d.Attempt <= 1 {
			m.iterations.Inc()
		}
	case *event.ModelCallFinished:
		m.modelCall(d)
		owner, _ := event.RunOwnerFrom(ctx)
		m.observeCall(owner, d)
	case *event.ToolCallProposed:
		m.tool(d.ToolName, d.Client).proposed.Inc()
	case *event.ToolCallParseError:
		m.parseErrors.Inc()
		if d.Dialect == "harmony" {
			m.stages.get("tool_call").Inc()
		}
	case *event.ToolCallExecuted:
		m.executed(e.RunID, d)
	case *event.ToolCallResult:
		m.result(e.RunID, d)
	case *event.ApprovalRequested:
		m.approval(e.RunID, 1)
	case *event.ApprovalResolved:
		m.approval(e.RunID, -1)
	case *event.RunFinished:
		m.reasons.get(string(d.Reason)).Inc()
		m.invocation(d)
		if d.Limit != "" {
			m.limits.get(d.Limit).Inc()
		}
		if d.Reason.Status() != "parked" {
			m.forget(e.RunID)
		}
	default: // without a metric
	}
}

// tool returns the series of a tool. All tools that callers declare share one label.
func (m *Metrics) tool(name string, client bool) *toolSeries {
	if client {
		name = clientTools
	}
	return m.tools.get(name)
}

func (m *Metrics) modelCall(d *event.ModelCallFinished) {
	m.providers.get(d.Provider).count(d)
	for _, f := range d.Faults {
		n := float64(max(f.Count, 0))
		stage, isStage := strings.CutPrefix(f.Kind, stagePrefix)
		order, isOrder := strings.CutPrefix(f.Kind, orderPrefix)
		switch {
		case isStage:
			m.stages.get(stage).Add(n)
		case isOrder:
			m.orders.get(order).Add(n)
		default:
			m.faults.get(f.Kind).Add(n)
		}
	}
}

func (m *Metrics) executed(runID string, d *event.ToolCallExecuted) {
	t := m.tools.get(d.ToolName)
	if d.Success {
		t.succeeded.Inc()
	} else {
		t.unsuccessful.Inc()
	}
	m.outputBytes.Add(float64(max(d.OutputSizeBytes, 0)))
	if d.RC == nil || *d.RC == 0 {
		return
	}
	// A failure is counted with the result of the call: under its return code, if there is one.
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.rc) < maxFollowedRuns {
		m.rc[callKey{runID, d.ToolCallID}] = *d.RC
	}
}

func (m *Metrics) result(runID string, d *event.ToolCallResult) {
	t := m.tool(d.Tool, d.Client)
	failed := d.Status != "ok"
	if failed {
		t.failed.Inc()
	} else {
		t.ok.Inc()
	}
	if !failed || d.LatencyMS > 0 {
		t.observe(d, m.errorType(string(d.ErrorType)))
	}
	key := callKey{runID, d.ToolCallID}
	m.mu.Lock()
	rc := m.rc[key]
	delete(m.rc, key)
	m.mu.Unlock()
	switch {
	case failed && rc != 0:
		m.failures.get(strconv.Itoa(rc)).Inc()
	case failed:
		m.failures.get(string(d.ErrorType)).Inc()
	}
	if d.PolicyDecision != "" {
		m.decisions.get(d.PolicyDecision).Inc()
	}
	if d.Limit != "" {
		m.limits.get(d.Limit).Inc()
	}
	if d.Repair != "" {
		for kind := range strings.SplitSeq(string(d.Repair), ",") {
			m.repairs.get(kind).Inc()
		}
	}
}

// observe records how long a call took, with its error type if it failed.
func (t *toolSeries) observe(d *event.ToolCallResult, errorType string) {
	seconds := float64(d.LatencyMS) / 1000
	t.latency.Observe(float64(d.LatencyMS))
	t.seconds.Observe(seconds)
	switch {
	case d.Client: // not executed by this process
	case d.Status != "ok":
		t.failedExecution.WithLabelValues(errorType).Observe(seconds)
	default:
		t.execution.Observe(seconds)
	}
}

// approval adds n to the number of open approvals of a run. It ignores a resolution whose request another process has counted, so that the
// number does not become negative.
func (m *Metrics) approval(runID string, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.touched != nil {
		m.touched[runID] = true
	}
	open, followed := m.pending[runID]
	isFull := !followed && len(m.pending) >= maxFollowedRuns
	if open+n < 0 || isFull {
		return
	}
	m.approvals.Add(float64(n))
	if open+n == 0 {
		delete(m.pending, runID)
	} else {
		m.pending[runID] = open + n
	}
}

// RecountApprovals replaces the gauge of open approval requests by the numbers that count returns: open requests by run id. It is needed
// because the events of this process do not include requests from before its start or from other processes. A run that has events during
// the recount keeps the number from its events. If count returns an error, RecountApprovals returns the error and changes nothing. Only one
// call of RecountApprovals may be in progress.
func (m *Metrics) RecountApprovals(count func() (map[string]int, error)) error {
	m.mu.Lock()
	m.touched = map[string]bool{}
	m.mu.Unlock()
	open, err := count()
	m.mu.Lock()
	defer m.mu.Unlock()
	touched := m.touched
	m.touched = nil
	if err != nil {
		return err
	}
	next, sum := map[string]int{}, 0
	add := func(run string, n int) {
		if n > 0 && len(next) < maxFollowedRuns {
			next[run], sum = n, sum+n
		}
	}
	for run, n := range m.pending {
		if touched[run] {
			add(run, n)
		}
	}
	for run, n := range open {
		if !touched[run] {
			add(run, n)
		}
	}
	m.pending = next
	m.approvals.Set(float64(sum))
	return nil
}

// forget removes the state of a run that has ended, because its open approvals can no longer be answered.
func (m *Metrics) forget(runID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.touched != nil {
		m.touched[runID] = true
	}
	if open := m.pending[runID]; open != 0 {
		m.approvals.Sub(float64(open))
		delete(m.pending, runID)
	}
	for key := range m.rc { // contains only calls between their Executed and Result events
		if key.run == runID {
			delete(m.rc, key)
		}
	}
}

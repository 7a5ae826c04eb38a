package observe_test

import (
	"bufio"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/observe"
)

// contract is every metric with its type and sorted labels, under the names of MetricNamesSeeds.
var contract = map[string]string{
	"tool_calls_total":                  "counter status,tool",
	"tool_call_latency_ms":              "histogram tool",
	"tool_calls_proposed_total":         "counter tool",
	"tool_calls_executed_total":         "counter success,tool",
	"tool_call_parse_errors_total":      "counter ",
	"tool_call_iterations_total":        "counter ",
	"tool_call_failures_total":          "counter rc",
	"tool_output_bytes_total":           "counter ",
	"harmony_parse_error_total":         "counter stage",
	"harmony_unexpected_order_total":    "counter type",
	"lathe_runs_total":                  "counter reason",
	"lathe_model_calls_total":           "counter provider,status",
	"lathe_tokens_total":                "counter direction,provider",
	"lathe_limit_hits_total":            "counter limit",
	"lathe_policy_decisions_total":      "counter decision",
	"lathe_argument_repairs_total":      "counter kind",
	"lathe_approvals_pending":           "gauge ",
	"lathe_upstream_faults_total":       "counter kind",
	"lathe_stream_clients":              "gauge ",
	"lathe_inflight_bytes":              "gauge ",
	"lathe_http_requests_total":         "counter route,status",
	"lathe_events_dropped_total":        "counter ",
	"lathe_lost_joins_total":            "counter ",
	"lathe_build_info":                  "gauge go_version,revision,version",
	"lathe_runs_compacted_total":        "counter ",
	"lathe_content_removed_bytes_total": "counter ",

	"mcp_client_operation_duration_seconds": "histogram error_type,gen_ai_tool_name,mcp_method_name,network_transport",
	"mcp_server_operation_duration_seconds": "histogram error_type,gen_ai_tool_name,mcp_method_name,network_transport",

	"lathe_spans_dropped_total":     "counter ",
	"lathe_log_lines_dropped_total": "counter ",

	"lathe_http_request_duration_seconds": "histogram route",
	"lathe_http_first_byte_seconds":       "histogram route",
	"lathe_model_requests_total":          "counter key,model,status",
	"lathe_model_tokens_total":            "counter direction,key,model",
	"lathe_model_cost_dollars_total":      "counter key,model",
	"lathe_model_call_duration_seconds":   "histogram key,model",
	"lathe_model_first_token_seconds":     "histogram key,model",
	"lathe_tool_call_duration_seconds":    "histogram tool",
	"gen_ai_client_token_usage":           "histogram gen_ai_operation_name,gen_ai_provider_name,gen_ai_request_model,gen_ai_token_type",

	"gen_ai_invoke_agent_duration_seconds":                "histogram error_type",
	"gen_ai_execute_tool_duration_seconds":                "histogram error_type,gen_ai_tool_name,gen_ai_tool_type",
	"gen_ai_client_operation_duration_seconds":            "histogram error_type,gen_ai_operation_name,gen_ai_provider_name,gen_ai_request_model",
	"gen_ai_client_operation_time_to_first_chunk_seconds": "histogram gen_ai_operation_name,gen_ai_provider_name,gen_ai_request_model",
}

// scrape returns the type of each family and the value of each series.
func scrape(t testing.TB, m *observe.Metrics) (types map[string]string, series map[string]string) {
	t.Helper()
	rec := httptest.NewRecorder()
	m.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if rec.Code != http.StatusOK {
		t.Fatalf("scrape: status %d: %s", rec.Code, rec.Body)
	}
	types, series = map[string]string{}, map[string]string{}
	lines := bufio.NewScanner(rec.Body)
	for lines.Scan() {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, typ, _ := strings.Cut(rest, " ")
			types[name] = typ
		} else if !strings.HasPrefix(line, "#") {
			i := strings.LastIndexByte(line, ' ')
			series[line[:i]] = line[i+1:]
		}
	}
	return types, series
}

func emit(s event.Sink, runID string, data ...event.Data) {
	for _, d := range data {
		s.Emit(context.Background(), event.Event{RunID: runID, RequestID: "req", Turn: 1, Data: d})
	}
}

func TestMetricsContract(t *testing.T) {
	t.Parallel()
	m := observe.NewMetrics(&observe.MetricsOptions{Version: "v1.2.3", Revision: "abc", Names: observe.MetricNamesSeeds})
	rc := -28
	emit(m, "run_1",
		&event.RunStarted{},
		&event.ModelCallStarted{Attempt: 1},
		&event.ModelCallFinished{Attempt: 1, Provider: "sim", Status: "error", ErrorCode: "upstream_5xx"},
		&event.ModelCallStarted{Attempt: 2},
		&event.ModelCallFinished{Attempt: 2, Provider: "sim", Status: "success", Usage: lathe.Usage{InputTokens: 10, OutputTokens: 3},
			Faults: []lathe.Fault{{Kind: "bad_line", Count: 2}, {Kind: "harmony_parse_error.unknown_channel", Count: 3}, {Kind: "harmony_unexpected_order.extra_final", Count: 4}}},
		&event.ToolCallProposed{ToolName: "clock"},
		&event.ToolCallPlanned{Tool: "clock"},
		&event.ApprovalRequested{ToolCallID: "c1"},
		&event.ApprovalResolved{ToolCallID: "c1"},
		&event.ApprovalRequested{ToolCallID: "c2"},
		&event.ToolCallExecuted{ToolCallID: "c1", ToolName: "clock", Success: true, OutputSizeBytes: 100},
		&event.ToolCallResult{ToolCallID: "c1", Tool: "clock", Status: "ok", LatencyMS: 7, PolicyDecision: "allow", Repaired: true, Repair: event.RepairCodeFence},
		&event.ToolCallExecuted{ToolCallID: "c2", ToolName: "clock", OutputSizeBytes: 11, RC: &rc},
		&event.ToolCallResult{ToolCallID: "c2", Tool: "clock", Status: "error", ErrorType: lathe.CodeExecutionFailed, LatencyMS: 5, PolicyDecision: "ask"},
		&event.ToolCallParseError{Dialect: "harmony", Error: lathe.CodePayloadParseError},
		&event.ToolCallParseError{Dialect: "tags", Error: lathe.CodePayloadParseError},
		&event.ToolCallResult{Tool: "unknown", Status: "error", ErrorType: lathe.CodeUnknownTool, PolicyDecision: "deny"},
		&event.ToolCallResult{Tool: "clock", Status: "error", ErrorType: lathe.CodeToolCallLimit, Limit: "max_total_tool_calls"},
		&event.RunPaused{},
		&event.RunResumed{},
	)
	m.CountRequest("GET /v1/models", 200)
	m.ObserveRequest("GET /livez", time.Second)
	m.ObserveFirstByte("GET /livez", 10*time.Millisecond)
	m.CountRequest("GET /v1/models", 200)
	m.MCPEnded(t.Context(), &event.MCPOperation{Method: "tools/list"})
	m.MCPEnded(t.Context(), &event.MCPOperation{Method: "tools/list", Server: true})
	m.AddStreamClients(3)
	m.AddStreamClients(-1)
	m.AddDropped(5)
	m.AddLostTurns(3)
	m.AddLostSpans(6)
	m.AddLostLines(7)
	_, series := scrape(t, m)
	if got := series["lathe_approvals_pending"]; got != "1" {
		t.Errorf("lathe_approvals_pending while one is open: got %s, want 1", got)
	}
	emit(m, "run_1", &event.RunFinished{Reason: lathe.ReasonMaxToolCalls, Limit: "max_total_tool_calls"})

	types, series := scrape(t, m)
	got := map[string]string{}
	for name, typ := range types {
		got[name] = typ + " " + labelNames(name, series)
	}
	if diff := cmp.Diff(contract, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	want := map[string]string{
		`tool_calls_total{status="ok",tool="clock"}`:                     "1",
		`tool_calls_total{status="error",tool="clock"}`:                  "2",
		`tool_calls_total{status="error",tool="unknown"}`:                "1",
		`tool_call_latency_ms_count{tool="clock"}`:                       "2",
		`tool_call_latency_ms_sum{tool="clock"}`:                         "12",
		`tool_call_latency_ms_bucket{tool="clock",le="5"}`:               "1",
		`tool_calls_proposed_total{tool="clock"}`:                        "1",
		`tool_calls_executed_total{success="true",tool="clock"}`:         "1",
		`tool_calls_executed_total{success="false",tool="clock"}`:        "1",
		`tool_call_parse_errors_total`:                                   "2",
		`lathe_argument_repairs_total{kind="code_fence"}`:                "1",
		`lathe_argument_repairs_total{kind="json_string"}`:               "0",
		`tool_call_iterations_total`:                                     "1",
		`tool_call_failures_total{rc="-28"}`:                             "1",
		`tool_call_failures_total{rc="execution_failed"}`:                "0",
		`tool_call_failures_total{rc="unknown_tool"}`:                    "1",
		`tool_call_failures_total{rc="tool_call_limit"}`:                 "1",
		`tool_output_bytes_total`:                                        "111",
		`harmony_parse_error_total{stage="unknown_channel"}`:             "3",
		`harmony_parse_error_total{stage="tool_call"}`:                   "1",
		`harmony_unexpected_order_total{type="extra_final"}`:             "4",
		`lathe_runs_total{reason="max_total_tool_calls"}`:                "1",
		`lathe_model_calls_total{provider="sim",status="success"}`:       "1",
		`lathe_model_calls_total{provider="sim",status="error"}`:         "1",
		`lathe_tokens_total{direction="input",provider="sim"}`:           "10",
		`lathe_tokens_total{direction="output",provider="sim"}`:          "3",
		`lathe_limit_hits_total{limit="max_total_tool_calls"}`:           "2",
		`lathe_policy_decisions_total{decision="allow"}`:                 "1",
		`lathe_policy_decisions_total{decision="ask"}`:                   "1",
		`lathe_policy_decisions_total{decision="deny"}`:                  "1",
		`lathe_approvals_pending`:                                        "0",
		`lathe_upstream_faults_total{kind="bad_line"}`:                   "2",
		`lathe_upstream_faults_total{kind="other"}`:                      "0",
		`lathe_stream_clients`:                                           "2",
		`lathe_http_requests_total{route="GET /v1/models",status="200"}`: "2",
		`lathe_events_dropped_total`:                                     "5",
		`lathe_lost_joins_total`:                                         "3",
		`lathe_spans_dropped_total`:                                      "6",
		`lathe_log_lines_dropped_total`:                                  "7",
		`lathe_tool_call_duration_seconds_sum{tool="clock"}`:             "0.012",
		`lathe_http_first_byte_seconds_sum{route="GET /livez"}`:          "0.01",
	}
	for name, value := range want {
		if series[name] != value {
			t.Errorf("%s: got %q, want %q", name, series[name], value)
		}
	}
}

// labelNames returns the sorted label names of a family; all its series must have the same.
func labelNames(family string, series map[string]string) string {
	found := ""
	for s := range series {
		name, labels, _ := strings.Cut(strings.TrimSuffix(s, "}"), "{")
		base := name
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if strings.TrimSuffix(name, suffix) == family {
				base = family
			}
		}
		if base != family {
			continue
		}
		var names []string
		for part := range strings.SplitSeq(labels, ",") {
			if n, _, ok := strings.Cut(part, "="); ok && n != "le" {
				names = append(names, n)
			}
		}
		slices.Sort(names)
		if got := strings.Join(names, ","); found == "" || got == found {
			found = got
		} else {
			return found + " and " + got
		}
	}
	return found
}

func TestMetricsHaveBoundedSeries(t *testing.T) {
	t.Parallel()
	m := observe.NewMetrics(&observe.MetricsOptions{MaxTools: 10})
	emit(m, "run_1", everyEvent("clock", "sim", "bad_line", "max_iterations", -28)...)
	_, before := scrape(t, m)

	// What a model invents comes as "unknown".
	for i := range 10_000 {
		emit(m, "run_1", &event.ToolCallProposed{ToolName: "unknown", RawName: fmt.Sprint("invented", i)},
			&event.ToolCallResult{Tool: "unknown", Status: "error", ErrorType: lathe.CodeUnknownTool})
	}
	_, after := scrape(t, m)
	if len(after) != len(before) {
		t.Errorf("10 000 invented tools made %d series out of %d", len(after), len(before))
	}

	// And a sink upstream that let invented words through could not do much harm either.
	for i := range 1000 {
		for _, format := range []string{"t%d", "No such word, %d", "%d\n", strings.Repeat("x", 70) + "%d"} {
			word := fmt.Sprintf(format, i)
			emit(m, fmt.Sprint("run_", i), everyEvent(word, word, word, word, -i*1000)...)
			emit(m, fmt.Sprint("run_", i), everyEvent(word, word, "harmony_parse_error."+word, word, 0)...)
			emit(m, fmt.Sprint("run_", i), everyEvent(word, word, "harmony_unexpected_order."+word, word, 0)...)
		}
	}
	_, after = scrape(t, m)
	const aTool, aProvider = 23, 5 // series: five counters and a histogram of 18; three and two counters
	if limit := len(before) + 10*aTool + 64*aProvider + 256 + 2*64 + 2*32; len(after) > limit {
		t.Errorf("invented words made %d series, want at most %d", len(after), limit)
	}
	for s := range after {
		if strings.Contains(s, "No such word") || strings.Contains(s, "xxxxxxxx") || strings.Contains(s, `\n`) {
			t.Errorf("series with invented text: %s", s)
		}
	}
	tools := map[string]bool{}
	for s := range after {
		if rest, ok := strings.CutPrefix(s, `lathe_tool_calls_proposed_total{tool="`); ok {
			tools[rest] = true
		}
	}
	if len(tools) != 12 {
		t.Errorf("%d tools have series, want client, unknown and MaxTools of 10", len(tools))
	}
}

// Tools that the server has keep their series, whatever callers declare.
func TestClientToolsHaveOneLabel(t *testing.T) {
	t.Parallel()
	m := observe.NewMetrics(&observe.MetricsOptions{Tools: []string{"clock", "clock", "not a name"}, MaxTools: 1})
	declared := func(name string) {
		emit(m, "run_1", &event.ToolCallProposed{ToolName: name, Client: true},
			&event.ToolCallResult{Tool: name, Client: true, Status: "error", ErrorType: lathe.CodeCancelled})
	}
	for i := range 1000 {
		declared(fmt.Sprint("declared", i))
	}
	for _, name := range []string{"clock", "late", "later"} {
		emit(m, "run_1", &event.ToolCallProposed{ToolName: name})
	}
	_, series := scrape(t, m)
	got := map[string]string{}
	for s, n := range series {
		if tool, ok := strings.CutPrefix(s, `lathe_tool_calls_proposed_total{tool=`); ok {
			got[tool] = n
		}
	}
	want := map[string]string{`"client"}`: "1000", `"clock"}`: "1", `"late"}`: "1", `"unknown"}`: "1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("proposed (-want +got):\n%s", diff)
	}
	if n := series[`lathe_tool_calls_total{status="error",tool="client"}`]; n != "1000" {
		t.Errorf("results of clients' tools: %s", n)
	}
}

// everyEvent returns one event of each type that has labels, with the words at the places of labels.
func everyEvent(tool, provider, kind, limit string, rc int) []event.Data {
	return []event.Data{
		&event.ModelCallFinished{Attempt: 1, Provider: provider, Status: provider, Usage: lathe.Usage{InputTokens: 1}, Faults: []lathe.Fault{{Kind: kind, Count: 1}}},
		&event.ToolCallProposed{ToolName: tool},
		&event.ToolCallExecuted{ToolCallID: "c", ToolName: tool, RC: &rc},
		&event.ToolCallResult{ToolCallID: "c", Tool: tool, Status: "error", ErrorType: lathe.Code(kind), PolicyDecision: kind, Limit: limit},
		&event.ToolCallResult{ToolCallID: "d", Tool: tool, Status: "error", ErrorType: lathe.Code(kind)},
		&event.RunFinished{Reason: lathe.Reason(kind), Limit: limit},
	}
}

// Not parallel: it counts allocations.
func TestMetricsEmitDoesNotAllocate(t *testing.T) {
	testdata.CountsAllocations(t)
	m := observe.NewMetrics(nil)
	events := []event.Data{
		&event.RunStarted{},
		&event.ModelCallStarted{Attempt: 1},
		&event.TextDelta{Bytes: 1},
		&event.ModelCallFinished{Provider: "sim", Status: "success", Faults: []lathe.Fault{{Kind: "bad_line", Count: 1}}},
		&event.ToolCallProposed{ToolName: "clock"},
		&event.ToolCallPlanned{Tool: "clock"},
		&event.ToolCallExecuted{ToolName: "clock", Success: true},
		&event.ToolCallResult{Tool: "clock", Status: "ok", PolicyDecision: "allow"},
		&event.ToolCallResult{Tool: "unknown", Status: "error", ErrorType: lathe.CodeUnknownTool, Limit: "max_unknown_tools"},
		&event.RunFinished{Reason: lathe.ReasonAnswered},
	}
	emit(m, "run_1", events...)
	if n := testing.AllocsPerRun(100, func() { emit(m, "run_1", events...) }); n != 0 {
		t.Errorf("%v allocations for %d events, want none", n, len(events))
	}
}

func TestApprovalsPendingIsNeverWrong(t *testing.T) {
	t.Parallel()
	req, res := &event.ApprovalRequested{ToolCallID: "c"}, &event.ApprovalResolved{ToolCallID: "c"}
	end := func(r lathe.Reason) *event.RunFinished { return &event.RunFinished{Reason: r} }
	tests := []struct {
		name   string
		events []event.Data
		want   string
	}{
		{"asked", []event.Data{req, req}, "2"},
		{"answered", []event.Data{req, res, req}, "1"},
		{"asked by an earlier process", []event.Data{res, res, req}, "1"},
		{"run ended meanwhile", []event.Data{req, req, end(lathe.ReasonCancelled), res}, "0"},
		{"run parked", []event.Data{req, end(lathe.ReasonAwaitingApproval)}, "1"},
	}
	for _, tt := range tests {
		m := observe.NewMetrics(nil)
		emit(m, "run_1", tt.events...)
		if _, series := scrape(t, m); series["lathe_approvals_pending"] != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, series["lathe_approvals_pending"], tt.want)
		}
	}
}

// Every reason and every code of the vocabulary has its series from the start: a rate sees the first one.
func TestMetricsKnowTheVocabulary(t *testing.T) {
	t.Parallel()
	_, series := scrape(t, observe.NewMetrics(nil))
	for _, tt := range []struct{ file, typ, format string }{
		{"../settings.go", "Reason", "lathe_runs_total{reason=%s}"},
		{"../error.go", "Code", "lathe_tool_call_failures_total{rc=%s}"},
	} {
		f, err := parser.ParseFile(token.NewFileSet(), tt.file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		ast.Inspect(f, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if id, ok := spec.Type.(*ast.Ident); ok && id.Name == tt.typ {
				n++
				if name := fmt.Sprintf(tt.format, spec.Values[0].(*ast.BasicLit).Value); series[name] != "0" {
					t.Errorf("%s is missing", name)
				}
			}
			return true
		})
		if n == 0 {
			t.Errorf("%s declares no %s", tt.file, tt.typ)
		}
	}
}

func TestProcessMetrics(t *testing.T) {
	t.Parallel()
	types, _ := scrape(t, observe.NewMetrics(&observe.MetricsOptions{Process: true}))
	if types["go_goroutines"] != "gauge" {
		t.Errorf("go_goroutines: got %q, want a gauge", types["go_goroutines"])
	}
}

func BenchmarkMetrics(b *testing.B) {
	m := observe.NewMetrics(nil)
	e := event.Event{RunID: "run_1", Data: &event.ToolCallResult{Tool: "clock", Status: "ok", LatencyMS: 3, PolicyDecision: "allow"}}
	b.ReportAllocs()
	for b.Loop() {
		m.Emit(b.Context(), e)
	}
}

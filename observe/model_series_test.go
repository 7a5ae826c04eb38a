package observe_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/observe"
)

// Model calls are counted by model entry and key; a caller with a profile counts for it, and its name makes no series.
func TestModelCallsAreCountedByModelAndKey(t *testing.T) {
	t.Parallel()
	m := observe.NewMetrics(nil)
	cost := 0.25
	call := func(o event.RunOwner, d event.ModelCallFinished) {
		m.Emit(event.WithRunOwner(context.Background(), o), event.Event{RunID: "r", Data: &d})
	}
	done := event.ModelCallFinished{Provider: "vllm", Model: "qwen", Status: "success", Usage: lathe.Usage{InputTokens: 100, OutputTokens: 7}, LatencyMS: 1500, FirstTokenMS: 250, Cost: &cost}
	call(event.RunOwner{Principal: "team", Target: "fast"}, done)
	call(event.RunOwner{Principal: "https://login.example.com#ann", Profile: "team", Target: "fast"}, done)
	call(event.RunOwner{}, event.ModelCallFinished{Provider: "vllm", Model: "qwen", Status: "error", ErrorCode: "timeout", LatencyMS: 2000})
	call(event.RunOwner{Principal: "team", Target: "fast"}, event.ModelCallFinished{Provider: "vllm", Model: "qwen", Status: "error", ErrorCode: "made-up by a server", LatencyMS: 2000})
	m.Emit(context.Background(), event.Event{RunID: "r", Data: &event.ModelCallFinished{Provider: "vllm", Model: "qwen", Status: "cancelled"}})
	_, series := scrape(t, m)
	genAI := `gen_ai_operation_name="chat",gen_ai_provider_name="vllm",gen_ai_request_model="qwen"`
	for name, want := range map[string]string{
		`lathe_model_requests_total{key="team",model="fast",status="success"}`:               "2",
		`lathe_model_requests_total{key="team",model="fast",status="error"}`:                 "1",
		`lathe_model_requests_total{key="none",model="default",status="error"}`:              "1",
		`lathe_model_requests_total{key="none",model="default",status="other"}`:              "1",
		`lathe_model_tokens_total{direction="input",key="team",model="fast"}`:                "200",
		`lathe_model_tokens_total{direction="output",key="team",model="fast"}`:               "14",
		`lathe_model_cost_dollars_total{key="team",model="fast"}`:                            "0.5",
		`lathe_model_call_duration_seconds_sum{key="team",model="fast"}`:                     "5",
		`lathe_model_first_token_seconds_sum{key="team",model="fast"}`:                       "0.5",
		`lathe_model_first_token_seconds_count{key="team",model="fast"}`:                     "2",
		`gen_ai_client_token_usage_sum{` + genAI + `,gen_ai_token_type="input"}`:             "200",
		`gen_ai_client_token_usage_sum{` + genAI + `,gen_ai_token_type="output"}`:            "14",
		`gen_ai_client_operation_duration_seconds_sum{error_type="",` + genAI + `}`:          "3",
		`gen_ai_client_operation_duration_seconds_count{error_type="timeout",` + genAI + `}`: "1",
		`gen_ai_client_operation_duration_seconds_count{error_type="other",` + genAI + `}`:   "2",
		`gen_ai_client_operation_time_to_first_chunk_seconds_count{` + genAI + `}`:           "2",
	} {
		if series[name] != want {
			t.Errorf("%s is %q, want %s", name, series[name], want)
		}
	}
	for name := range series {
		if strings.Contains(name, "#ann") || strings.Contains(name, "made-up") {
			t.Errorf("a series has a name that is none of the configuration: %s", name)
		}
	}
}

// However many models and keys there are, the number of series is bounded, and no call is left out.
func TestPairsOfModelAndKeyAreBounded(t *testing.T) {
	t.Parallel()
	m := observe.NewMetrics(nil)
	for i := range 2000 {
		o := event.RunOwner{Principal: fmt.Sprintf("key-%d", i), Target: fmt.Sprintf("model-%d", i%7)}
		if i%100 == 0 {
			o.Principal = "a name\nwith a line break"
		}
		m.Emit(event.WithRunOwner(context.Background(), o), event.Event{RunID: "r", Data: &event.ModelCallFinished{Provider: "p", Model: o.Target, Status: "success"}})
	}
	_, series := scrape(t, m)
	n, sum := 0, 0
	for name, value := range series {
		if strings.HasPrefix(name, "lathe_model_requests_total{") && strings.Contains(name, `status="success"`) {
			var v int
			_, _ = fmt.Sscan(value, &v)
			n, sum = n+1, sum+v
		}
	}
	if n != 512 || sum != 2000 {
		t.Errorf("%d pairs count %d calls, want 512 and 2000", n, sum)
	}
}

// Runs and the tools that this server executes are counted in seconds under the names of the conventions, with the error
// they ended with; tools of callers are not.
func TestRunsAndToolsAreCountedAsTheConventionsHaveThem(t *testing.T) {
	t.Parallel()
	m := observe.NewMetrics(nil)
	emit(m, "run_1",
		&event.ToolCallResult{Tool: "clock", Status: "ok", LatencyMS: 250},
		&event.ToolCallResult{Tool: "clock", Status: "error", ErrorType: lathe.CodeTimeout, LatencyMS: 500},
		&event.ToolCallResult{Tool: "clock", Status: "error", ErrorType: "made_up", LatencyMS: 500},
		&event.ToolCallResult{Tool: "browser", Client: true, Status: "ok", LatencyMS: 500},
		&event.ToolCallResult{Tool: "browser", Client: true, Status: "error", ErrorType: lathe.CodeTimeout, LatencyMS: 500},
		&event.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed", LatencyMS: 1500},
		&event.RunFinished{Reason: lathe.ReasonMaxIterations, Status: "limited", LatencyMS: 1000},
		&event.RunFinished{Reason: lathe.ReasonUpstreamError, Status: "failed", ErrorCode: "upstream_5xx", LatencyMS: 1000},
		&event.RunFinished{Reason: "made_up", Status: "failed", ErrorCode: "made_up_too", LatencyMS: 1000},
		&event.RunFinished{Reason: lathe.ReasonCancelled, Status: "cancelled", LatencyMS: 500})
	_, series := scrape(t, m)
	clock := `gen_ai_tool_name="clock",gen_ai_tool_type="extension"`
	for name, want := range map[string]string{
		`gen_ai_execute_tool_duration_seconds_sum{error_type="",` + clock + `}`:          "0.25",
		`gen_ai_execute_tool_duration_seconds_count{error_type="timeout",` + clock + `}`: "1",
		`gen_ai_execute_tool_duration_seconds_count{error_type="other",` + clock + `}`:   "1",
		`gen_ai_invoke_agent_duration_seconds_sum{error_type=""}`:                        "2",
		`gen_ai_invoke_agent_duration_seconds_count{error_type=""}`:                      "2",
		`gen_ai_invoke_agent_duration_seconds_count{error_type="max_iterations"}`:        "1",
		`gen_ai_invoke_agent_duration_seconds_count{error_type="upstream_5xx"}`:          "1",
		`gen_ai_invoke_agent_duration_seconds_count{error_type="other"}`:                 "1",
		`lathe_tool_call_duration_seconds_sum{tool="client"}`:                            "1",
	} {
		if series[name] != want {
			t.Errorf("%s is %q, want %s", name, series[name], want)
		}
	}
	for name := range series {
		if strings.HasPrefix(name, "gen_ai_execute_tool") && (strings.Contains(name, "browser") || strings.Contains(name, `"client"`)) {
			t.Errorf("a tool of the caller has %s", name)
		}
	}
}

// The names of the next version of the conventions are used on request, in place of those of 1.41 or beside them.
func TestNextVersionOfTheConventions(t *testing.T) {
	t.Parallel()
	pairs := `gen_ai_operation_name="chat",gen_ai_provider_name="vllm",gen_ai_request_model="qwen"`
	for version, want := range map[observe.Conventions][2]bool{"": {true, false}, observe.ConventionsLatest: {false, true}, observe.ConventionsBoth: {true, true}} {
		m := observe.NewMetrics(&observe.MetricsOptions{Conventions: version})
		emit(m, "r", &event.ModelCallFinished{Provider: "vllm", Model: "qwen", Status: "success", Usage: lathe.Usage{InputTokens: 100, OutputTokens: 7, CachedTokens: 60, ReasoningTokens: 3}},
			&event.ModelCallFinished{Provider: "vllm", Model: "qwen", Status: "error", ErrorCode: "timeout"})
		_, series := scrape(t, m)
		if got := series[`gen_ai_client_token_usage_sum{`+pairs+`,gen_ai_token_type="input"}`] == "100"; got != want[0] {
			t.Errorf("%q: the metric of 1.41 is there: %t", version, got)
		}
		for name, value := range map[string]string{
			`gen_ai_client_inference_usage_input_tokens_total{` + pairs + `,gen_ai_token_modality="unknown"}`:            "100",
			`gen_ai_client_inference_usage_output_tokens_total{` + pairs + `,gen_ai_token_modality="unknown"}`:           "7",
			`gen_ai_client_inference_usage_cache_read_input_tokens_total{` + pairs + `,gen_ai_token_modality="unknown"}`: "60",
			`gen_ai_client_inference_usage_reasoning_output_tokens_total{` + pairs + `,gen_ai_token_modality="unknown"}`: "3",
			`gen_ai_client_inference_operation_input_tokens_sum{` + pairs + `}`:                                          "100",
			`gen_ai_client_inference_operation_output_tokens_count{` + pairs + `}`:                                       "1",
		} {
			if got := series[name] == value; got != want[1] {
				t.Errorf("%q: %s is %q", version, name, series[name])
			}
		}
	}
}

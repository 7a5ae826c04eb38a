package observe

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A collector takes spans as a server of OTLP does.
type spanServer struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	spans  map[string]map[string]any // by name
	status int
	header http.Header
}

func collect(t *testing.T) *spanServer {
	t.Helper()
	s := &spanServer{spans: map[string]map[string]any{}, status: 200}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		var in struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []map[string]any }
			}
		}
		if err != nil || json.Unmarshal(b, &in) != nil || len(in.ResourceSpans) != 1 {
			t.Errorf("%v: %s", err, b)
			return
		}
		for _, span := range in.ResourceSpans[0].ScopeSpans[0].Spans {
			s.spans[span["name"].(string)] = span
		}
		s.bodies, s.header = append(s.bodies, string(b)), r.Header
		w.WriteHeader(s.status)
	}))
	t.Cleanup(s.Close)
	return s
}

// attrs returns the attributes of a span.
func (s *spanServer) attrs(name string) map[string]any {
	out := map[string]any{}
	list, _ := s.spans[name]["attributes"].([]any)
	for _, a := range list {
		kv := a.(map[string]any)
		for _, v := range kv["value"].(map[string]any) {
			out[kv["key"].(string)] = v
		}
	}
	return out
}

const traceCanary = "canary-30ab"

// emitRun sends the events of a run with one call to s.
func emitRun(t *testing.T, s event.Sink, ctx context.Context) {
	t.Helper()
	msg := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: traceCanary}, lathe.ToolCall{ID: "c1", Name: "calculator", Arguments: `{"x":"` + traceCanary + `"}`}}}
	events := []event.Data{
		&event.RunStarted{Model: "m1", Provider: "openai", Messages: []lathe.Message{lathe.User(traceCanary)}},
		&event.ModelCallStarted{Attempt: 1, Provider: "openai", Model: "m1", Agent: "desk", PromptHash: "abc",
			Request: &event.ModelRequest{Server: "api.example.com:443", Messages: []lathe.Message{lathe.User(traceCanary)}, Tools: []*lathe.ToolSpec{{Name: "calculator", Description: traceCanary}}}},
		&event.TextDelta{Text: traceCanary},
		&event.ModelCallFinished{Attempt: 1, Model: "m1-2026", Status: "success", FinishReason: "tool_calls", Usage: lathe.Usage{InputTokens: 7, OutputTokens: 5}, FirstTokenMS: 250, ResponseID: "resp_9", Message: &msg},
		&event.ToolCallProposed{ToolCallID: "c1", ToolName: "calculator", RawArgs: traceCanary},
		&event.ToolCallPlanned{ToolCallID: "c1", Tool: "calculator"},
		&event.ApprovalRequested{ToolCallID: "c1", Rule: "r", Arguments: json.RawMessage(`"` + traceCanary + `"`)},
		&event.ApprovalResolved{ToolCallID: "c1", Decision: "approved", By: "ann"},
		&event.ToolCallExecuted{ToolCallID: "c1", ToolName: "calculator"},
		&event.ToolCallResult{ToolCallID: "c1", Tool: "calculator", Status: "error", ErrorType: "timeout", Limit: "tool_timeout", PolicyDecision: "ask", Result: traceCanary},
		&event.RunFinished{Reason: "answered", Status: "completed", Answer: traceCanary},
	}
	for i, d := range events {
		s.Emit(ctx, event.Event{ID: int64(i) + 1, RunID: "run_1", RequestID: "req_1", SessionID: "s1", Turn: 1, Time: time.Unix(100, int64(i)*1e6), Data: d})
	}
}

func newTraces(t *testing.T, o *TracesOptions) *Traces {
	t.Helper()
	tr, err := NewTraces(o)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// The spans of a run have the names and attributes of the conventions, and no text unless it is asked for.
func TestSpans(t *testing.T) {
	t.Parallel()
	for _, content := range []bool{false, true} {
		s := collect(t)
		tr := newTraces(t, &TracesOptions{Endpoint: s.URL + "/v1/traces", Headers: map[string]string{"X-Key": "k"}, Version: "1.2", Content: content})
		remote := http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, "Tracestate": {"a=b"}}
		emitRun(t, tr, RemoteTrace(t.Context(), remote))
		if err := tr.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(strings.Join(s.bodies, ""), traceCanary); n != 0 != content {
			t.Errorf("content %t: %d canaries", content, n)
		}
		run, chat, call := s.spans["invoke_agent"], s.spans["chat m1"], s.spans["execute_tool calculator"]
		if len(s.spans) != 3 || run == nil || chat == nil || call == nil {
			t.Fatalf("%v", s.bodies)
		}
		if s.header.Get("X-Key") != "k" || s.header.Get("Content-Type") != "application/json" || !strings.Contains(s.bodies[0], `"service.name"`) || !strings.Contains(s.bodies[0], `"schemaUrl":"https://opentelemetry.io/schemas/1.41.0"`) {
			t.Errorf("%v", s.header)
		}
		if run["traceId"] != "0af7651916cd43dd8448eb211c80319c" || run["parentSpanId"] != "b7ad6b7169203331" || run["traceState"] != "a=b" || run["kind"] != 1.0 {
			t.Errorf("the run: %v", run)
		}
		for _, below := range []map[string]any{chat, call} {
			if below["traceId"] != run["traceId"] || below["parentSpanId"] != run["spanId"] {
				t.Errorf("%v", below)
			}
		}
		if chat["kind"] != 3.0 || chat["startTimeUnixNano"] != "100001000000" || chat["endTimeUnixNano"] != "100003000000" {
			t.Errorf("the chat: %v", chat)
		}
		for name, want := range map[string]map[string]any{
			"invoke_agent":            {"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "openai", "gen_ai.request.model": "m1", "gen_ai.conversation.id": "s1", "lathe.run_id": "run_1", "lathe.reason": "answered"},
			"chat m1":                 {"gen_ai.agent.name": "desk", "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "m1", "gen_ai.response.model": "m1-2026", "gen_ai.usage.input_tokens": "7", "gen_ai.usage.output_tokens": "5", "gen_ai.response.time_to_first_chunk": 0.25, "gen_ai.response.id": "resp_9", "server.address": "api.example.com", "server.port": "443", "lathe.prompt_hash": "abc"},
			"execute_tool calculator": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "calculator", "gen_ai.tool.call.id": "c1", "gen_ai.tool.type": "extension", "error.type": "timeout", "lathe.limit": "tool_timeout", "lathe.policy.decision": "ask"},
		} {
			got := s.attrs(name)
			for k, v := range want {
				if got[k] != v {
					t.Errorf("%s: %s is %v, want %v", name, k, got[k], v)
				}
			}
		}
		if events, _ := call["events"].([]any); len(events) != 2 || call["status"].(map[string]any)["code"] != 2.0 {
			t.Errorf("the call: %v", call)
		}
	}
}

// A run that waits ends its span; one that goes on, here or in another process, begins another.
func TestSpansOfARunThatWaits(t *testing.T) {
	t.Parallel()
	s := collect(t)
	tr := newTraces(t, &TracesOptions{Endpoint: s.URL})
	for i, d := range []event.Data{&event.RunResumed{Reason: "interrupted"}, &event.ToolCallProposed{ToolCallID: "c", ToolName: "t", Client: true}, &event.RunPaused{Reason: "awaiting_approval"},
		&event.ToolCallResult{ToolCallID: "c"}, &event.RunResumed{}, &event.ApprovalResolved{ToolCallID: "d", Tool: "u", Decision: "approved"}, &event.ToolCallResult{ToolCallID: "d"}, &event.RunFinished{Reason: "max_iterations", Status: "limited", Limit: "max_iterations"}} {
		tr.Emit(t.Context(), event.Event{ID: int64(i) + 5, RunID: "run_1", Time: time.Unix(int64(i), 0), Data: d})
	}
	if len(tr.runs) != 0 {
		t.Errorf("%d runs are followed", len(tr.runs))
	}
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if strings.Count(s.bodies[0], `"name":"invoke_agent"`) != 2 || s.attrs("invoke_agent")["error.type"] != "max_iterations" || s.attrs("execute_tool t")["gen_ai.tool.type"] != "function" ||
		s.attrs("execute_tool u")["gen_ai.tool.call.id"] != "d" {
		t.Errorf("%s", s.bodies)
	}
}

// A collector that fails blocks no caller.
func TestSpansThatCannotBeSent(t *testing.T) {
	t.Parallel()
	s := collect(t)
	s.status = 500
	tr := newTraces(t, &TracesOptions{Endpoint: s.URL})
	emitRun(t, tr, t.Context())
	if err := tr.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for _, endpoint := range []string{"", "localhost:4318", "ftp://x/y", "http://"} {
		if _, err := NewTraces(&TracesOptions{Endpoint: endpoint}); err == nil {
			t.Errorf("%q was taken", endpoint)
		}
	}
}

// The span of a call whose run another node owns is a child of the span that the node names; the span of a run
// that a call has started is a child of the call's; a trace context that is not well formed is ignored.
func TestSpansBelowOthers(t *testing.T) {
	t.Parallel()
	s := collect(t)
	tr := newTraces(t, &TracesOptions{Endpoint: s.URL})
	emitted := func(ctx context.Context, run string, d event.Data) {
		tr.Emit(ctx, event.Event{RunID: run, Turn: 1, Time: time.Unix(1, 0), Data: d})
	}
	ctx := event.WithRemoteTrace(t.Context(), event.TraceContext{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: strings.Repeat("a", 600)})
	emitted(ctx, "run_1", &event.ToolCallProposed{ToolCallID: "c1", ToolName: "far"})
	far := tr.Trace("run_1", "c1")
	if !strings.HasPrefix(far.Parent, "00-0af7651916cd43dd8448eb211c80319c-") || far.State != "" || tr.Trace("run_1", "").Parent != "" || tr.Trace("run_2", "").Parent != "" {
		t.Errorf("%+v, %+v", far, tr.Trace("run_1", ""))
	}
	below := event.WithTracer(lathe.WithCallMeta(ctx, &lathe.CallMeta{RunID: "run_1", CallID: "c1"}), "run_2", []event.Sink{tr})
	emitted(below, "run_2", &event.RunStarted{})
	emitted(below, "run_2", &event.ModelCallStarted{Model: "m"})
	if got := event.TraceFrom(below); got != tr.Trace("run_2", "") || got.Parent == far.Parent {
		t.Errorf("%+v", got)
	}
	emitted(below, "run_2", &event.RunFinished{})
	emitted(ctx, "run_1", &event.ToolCallResult{ToolCallID: "c1"})
	emitted(event.WithRemoteTrace(t.Context(), event.TraceContext{Parent: "00-0-0-0\n"}), "run_3", &event.ToolCallProposed{ToolCallID: "c1", ToolName: "lost"})
	emitted(t.Context(), "run_3", &event.ToolCallResult{ToolCallID: "c1"})
	if len(tr.runs) != 0 {
		t.Errorf("%d runs are followed", len(tr.runs))
	}
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	call, run, lost := s.spans["execute_tool far"], s.spans["invoke_agent"], s.spans["execute_tool lost"]
	if call["parentSpanId"] != "b7ad6b7169203331" || run["parentSpanId"] != call["spanId"] || run["traceId"] != call["traceId"] || lost["parentSpanId"] != nil || lost == nil {
		t.Errorf("%v\n%v\n%v", call, run, lost)
	}
	for _, h := range []http.Header{{}, {"Traceparent": {"a", "b"}}} {
		if ctx := RemoteTrace(t.Context(), h); ctx != t.Context() {
			t.Errorf("%v has changed the context", h)
		}
	}
}

// Spans name the version of the conventions that they follow.
func TestSpansNameTheNextVersion(t *testing.T) {
	t.Parallel()
	s := collect(t)
	tr := newTraces(t, &TracesOptions{Endpoint: s.URL, Latest: true})
	emitRun(t, tr, t.Context())
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(s.bodies, ""), `"schemaUrl":"`+latestSchema+`"`) {
		t.Errorf("%s", s.bodies)
	}
}

// Spans can refer to the content where it is stored, and have none of it then.
func TestSpansReferToTheContent(t *testing.T) {
	t.Parallel()
	s := collect(t)
	tr := newTraces(t, &TracesOptions{Endpoint: s.URL, ContentURL: "https://lathe.example.com"})
	emitRun(t, tr, t.Context())
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"invoke_agent", "chat m1", "execute_tool calculator"} {
		if got := s.attrs(name)["lathe.content_url"]; got != "https://lathe.example.com/runs/run_1" {
			t.Errorf("%s refers to %v", name, got)
		}
	}
	if strings.Contains(strings.Join(s.bodies, ""), traceCanary) {
		t.Error("the spans have content")
	}
	for _, bad := range []string{"lathe.example.com", "ftp://x", "https://user:pass@x"} {
		if _, err := NewTraces(&TracesOptions{Endpoint: s.URL, ContentURL: bad}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

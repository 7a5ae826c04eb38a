package observe_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/observe"
)

const canary = "canary-7f3a"

// withCanaries returns one event of each type with the canary in each field that is content.
func withCanaries(t testing.TB) []event.Data {
	t.Helper()
	var out []event.Data
	msg := lathe.Assistant(canary)
	for _, name := range event.Types() {
		var e event.Event
		if err := json.Unmarshal(fmt.Appendf(nil, `{"type":%q,"data":{},"time":"2026-01-01T00:00:00Z"}`, name), &e); err != nil {
			t.Fatal(err)
		}
		v := reflect.ValueOf(e.Data).Elem()
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" {
				continue
			}
			switch f := v.Field(i).Addr().Interface().(type) {
			case *string:
				*f = canary
			case *json.RawMessage:
				*f = json.RawMessage(`"` + canary + `"`)
			case *[]lathe.Message:
				*f = []lathe.Message{msg}
			case *map[string]string:
				*f = map[string]string{canary: canary}
			case *[]lathe.Blob:
				*f = []lathe.Blob{{Name: canary, URL: canary, Data: []byte(canary)}}
			case **lathe.Message:
				*f = &msg
			case **lathe.Delta:
				*f = &lathe.Delta{Kind: lathe.DeltaPart, Part: lathe.Text{Text: canary}}
			case **event.ModelRequest:
				*f = &event.ModelRequest{Server: canary, Messages: []lathe.Message{msg}, Tools: []*lathe.ToolSpec{{Name: canary, Description: canary}}}
			case **event.Result:
				*f = &event.Result{Answer: canary, History: []lathe.Message{msg}, Err: errors.New(canary)}
			default:
				t.Fatalf("%s.%s: no canary for a %T", name, v.Type().Field(i).Name, f)
			}
		}
		out = append(out, e.Data)
	}
	return out
}

func TestJSONLines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		opts  *observe.JSONLinesOptions
		lines int
	}{
		{nil, 14}, {&observe.JSONLinesOptions{Content: true}, 14},
		{&observe.JSONLinesOptions{Deltas: true}, 19}, {&observe.JSONLinesOptions{Content: true, Deltas: true}, 19},
	} {
		var buf bytes.Buffer
		sink := observe.NewJSONLines(&buf, tt.opts)
		data := withCanaries(t)
		emit(sink, "run_1", data...)
		if err := sink.Err(); err != nil {
			t.Fatal(err)
		}
		lines := slices.Collect(strings.Lines(buf.String()))
		if len(lines) != tt.lines {
			t.Errorf("%+v: got %d lines, want %d", tt.opts, len(lines), tt.lines)
		}
		for _, line := range lines {
			var e event.Event
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
		content := tt.opts != nil && tt.opts.Content
		if got := strings.Contains(buf.String(), canary); got != content {
			t.Errorf("%+v: content shows: %v, want %v", tt.opts, got, content)
		}
	}
}

type failingWriter struct{ left, calls int }

func (w *failingWriter) Write(p []byte) (int, error) {
	w.calls++
	if w.left--; w.left < 0 {
		return 0, fmt.Errorf("disk full at call %d", w.calls)
	}
	return len(p), nil
}

func TestJSONLinesKeepsTheFirstError(t *testing.T) {
	t.Parallel()
	w := &failingWriter{left: 2}
	sink := observe.NewJSONLines(w, nil)
	for range 5 {
		emit(sink, "run_1", &event.RunResumed{})
	}
	if err := sink.Err(); err == nil || err.Error() != "disk full at call 3" {
		t.Errorf("got %v, want the third call's error", err)
	}
	if w.calls != 3 {
		t.Errorf("%d writes, want none after the error", w.calls)
	}
}

// Not parallel: it counts allocations.
func TestJSONLinesReusesItsBuffer(t *testing.T) {
	testdata.CountsAllocations(t)
	sink := observe.NewJSONLines(io.Discard, &observe.JSONLinesOptions{Deltas: true, Content: true})
	e := &event.TextDelta{Bytes: 5, Text: strings.Repeat("long ", 2000)}
	emit(sink, "run_1", e)
	if n := testing.AllocsPerRun(100, func() { emit(sink, "run_1", e) }); n > 20 {
		t.Errorf("%v allocations a line, want at most 20", n)
	}
}

func TestSlogNeverShowsContent(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	sink := observe.NewSlog(slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: slog.LevelDebug})))
	emit(sink, "run_1", withCanaries(t)...)
	if buf.Len() == 0 || strings.Contains(buf.String(), canary) {
		t.Errorf("content in the log:\n%s", buf.String())
	}
}

func TestSlogLines(t *testing.T) {
	t.Parallel()
	rc := -28
	log := func(level slog.Level) string {
		var buf bytes.Buffer
		sink := observe.NewSlog(slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})))
		emit(sink, "run_1",
			&event.RunStarted{Provider: "sim", Model: "sim/demo", Dialect: "tags", ToolUseMode: lathe.ModeRelaxed, Tools: event.ToolsDigest{Count: 2}},
			&event.ModelCallFinished{Attempt: 1, Provider: "sim", Model: "sim/demo", Status: "error", ErrorCode: "timeout", LatencyMS: 9, UpstreamStatus: 503, ProviderCode: "busy", ErrorMessage: "try later"},
			&event.ModelCallFinished{Attempt: 2, Provider: "sim", Model: "sim/demo", Status: "success", FinishReason: lathe.FinishToolCalls, ToolCalls: 2, LatencyMS: 8, UpstreamRequestID: "up_1"},
			&event.ToolCallProposed{ToolName: "clock", Dialect: "tags", DeprecatedSyntax: true},
			&event.ToolCallProposed{ToolName: "clock", Dialect: "tags", DeprecatedSyntax: true},
			&event.ToolCallExecuted{ToolCallID: "c1", ToolName: "clock", OutputSizeBytes: 11, Success: true},
			&event.ToolCallResult{ToolCallID: "c1", Tool: "clock", Status: "ok", LatencyMS: 3},
			&event.ToolCallExecuted{ToolCallID: "c2", ToolName: "sum", OutputSizeBytes: 0, RC: &rc},
			&event.ToolCallResult{ToolCallID: "c2", Tool: "sum", Seq: 1, Status: "error", ErrorType: lathe.CodeExecutionFailed},
			&event.ToolCallResult{ToolCallID: "c3", Tool: "unknown", Seq: 2, Status: "error", ErrorType: lathe.CodeUnknownTool},
			&event.ToolCallParseError{Dialect: "tags", Error: lathe.CodePayloadParseError, ExcerptBytes: 4},
			&event.RunFinished{Reason: lathe.ReasonMaxIterations, Status: "limited", Turns: 1, ToolCalls: 3, Limit: "max_iterations", LatencyMS: 40},
		)
		return buf.String()
	}
	warn := `level=WARN msg="model call failed" run_id=run_1 request_id=req iteration=1 attempt=1 provider=sim model=sim/demo code=timeout latency_ms=9 upstream_request_id="" upstream_status=503 provider_code=busy error_message="try later"
level=WARN msg="deprecated tool call syntax" run_id=run_1 request_id=req iteration=1 dialect=tags tool_name=clock
level=WARN msg="tool call failed" run_id=run_1 request_id=req iteration=1 tool_name=sum tool_call_id=c2 seq=1 status=error code=execution_failed output_size_bytes=0 latency_ms=0 upstream_request_id=UP rc=-28
level=WARN msg="tool call failed" run_id=run_1 request_id=req iteration=1 tool_name=unknown tool_call_id=c3 seq=2 status=error code=unknown_tool output_size_bytes=0 latency_ms=0 upstream_request_id=UP
level=WARN msg="run finished" run_id=run_1 request_id=req iteration=1 reason=max_iterations status=limited turns=1 tool_calls=3 input_tokens=0 output_tokens=0 latency_ms=40 limit=max_iterations
`
	if got, warn := log(slog.LevelWarn), strings.ReplaceAll(warn, "=UP", `=""`); got != warn { // only debug lines follow model calls
		t.Errorf("warnings:\n got %s\nwant %s", got, warn)
	}
	debug := []string{
		`level=INFO msg="run started" run_id=run_1 request_id=req iteration=1 provider=sim model=sim/demo dialect=tags tool_use_mode=relaxed tools=2`,
		`level=DEBUG msg="model call" run_id=run_1 request_id=req iteration=1 attempt=2 provider=sim model=sim/demo finish_reason=tool_calls tool_calls=2 input_tokens=0 output_tokens=0 latency_ms=8 upstream_request_id=up_1`,
		`level=DEBUG msg="tool call" run_id=run_1 request_id=req iteration=1 tool_name=clock tool_call_id=c1 seq=0 status=ok code="" output_size_bytes=11 latency_ms=3 upstream_request_id=up_1`,
		`level=DEBUG msg="tool call not readable" run_id=run_1 request_id=req iteration=1 dialect=tags code=tool_payload_parse_error bytes=4`,
	}
	got := log(slog.LevelDebug)
	for _, line := range append(debug, strings.Split(strings.TrimSpace(strings.ReplaceAll(warn, "=UP", "=up_1")), "\n")...) {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("missing line\n%s\nin\n%s", line, got)
		}
	}
	if n := strings.Count(got, "\n"); n != len(debug)+5 {
		t.Errorf("%d lines, want %d:\n%s", n, len(debug)+5, got)
	}
}

func TestSlogLevels(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		data event.Data
		want string
	}{
		{&event.RunStarted{}, "INFO run started"},
		{&event.RunPaused{}, "INFO run paused"},
		{&event.RunResumed{}, "INFO run resumed"},
		{&event.RunFinished{Status: "completed"}, "INFO run finished"},
		{&event.RunFinished{Status: "cancelled"}, "INFO run finished"},
		{&event.RunFinished{Status: "failed"}, "WARN run finished"},
		{&event.RunFinished{Status: "limited"}, "WARN run finished"},
		{&event.ModelCallFinished{Status: "success"}, "DEBUG model call"},
		{&event.ModelCallFinished{Status: "error"}, "WARN model call failed"},
		{&event.ModelCallFinished{Status: "error", ErrorCode: string(lathe.CodeCancelled)}, "DEBUG model call"},
		{&event.ToolCallResult{Status: "ok"}, "DEBUG tool call"},
		{&event.ToolCallResult{Status: "error", ErrorType: lathe.CodeExecutionFailed}, "WARN tool call failed"},
		{&event.ToolCallResult{Status: "error", ErrorType: lathe.CodeInvalidArguments}, "WARN tool call failed"},
		{&event.ToolCallResult{Status: "error", ErrorType: lathe.CodePolicyDenied}, "WARN tool call failed"},
		{&event.ToolCallResult{Status: "error", ErrorType: lathe.CodeApprovalDenied}, "DEBUG tool call"},
		{&event.ToolCallResult{Status: "error", ErrorType: lathe.CodeCancelled}, "DEBUG tool call"},
		{&event.ToolCallResult{Status: "error", ErrorType: lathe.CodeExecutionFailed, Client: true}, "DEBUG tool call"},
		{&event.ApprovalRequested{}, "INFO approval requested"},
		{&event.ApprovalResolved{}, "INFO approval resolved"},
		{&event.ToolCallParseError{}, "DEBUG tool call not readable"},
		{&event.ToolCallProposed{DeprecatedSyntax: true}, "WARN deprecated tool call syntax"},
		{&event.ToolsLoaded{}, "DEBUG tools loaded"},
		{&event.TextDelta{}, ""},
	} {
		var buf bytes.Buffer
		emit(observe.NewSlog(slog.New(slog.NewJSONHandler(&buf, &slog.HandlerOptions{Level: slog.LevelDebug}))), "run_1", tt.data)
		var line struct{ Level, Msg string }
		if err := json.Unmarshal(buf.Bytes(), &line); err != nil && tt.want != "" {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(line.Level + " " + line.Msg); got != tt.want {
			t.Errorf("%T %+v: got %q, want %q", tt.data, tt.data, got, tt.want)
		}
	}
}

func TestSlogNamesTheApprover(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	sink := observe.NewSlog(slog.New(slog.NewTextHandler(&buf, nil)))
	emit(sink, "run_1",
		&event.ApprovalRequested{ToolCallID: "c1", Tool: "pay", Rule: "writes", ExpiresAt: time.Unix(0, 0).UTC()},
		&event.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{"c1"}},
		&event.RunResumed{Reason: lathe.ReasonAwaitingApproval},
		&event.ApprovalResolved{ToolCallID: "c1", Tool: "pay", Decision: "denied", By: "ann", ReasonCode: "denied_by_user"},
		&event.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed"})
	for _, want := range []string{
		`msg="approval requested" run_id=run_1 request_id=req iteration=1 tool_call_id=c1 tool_name=pay rule=writes expires_at=1970-01-01T00:00:00.000Z`,
		`msg="run paused" run_id=run_1 request_id=req iteration=1 reason=awaiting_approval pending=1`,
		`msg="run resumed" run_id=run_1 request_id=req iteration=1 reason=awaiting_approval pending=0`,
		`msg="approval resolved" run_id=run_1 request_id=req iteration=1 tool_call_id=c1 tool_name=pay decision=denied by=ann reason_code=denied_by_user`,
		`level=INFO msg="run finished"`,
	} {
		if !strings.Contains(buf.String(), want) {
			t.Errorf("missing %s in\n%s", want, buf.String())
		}
	}
}

// All sinks at once, from several runs at once: for the race detector.
func TestSinksTakeManyRunsAtOnce(t *testing.T) {
	t.Parallel()
	var r recorder
	bus := observe.NewBus(&observe.BusOptions{Buffer: 4})
	watch := bus.Subscribe("")
	defer watch.Close()
	metrics := observe.NewMetrics(nil)
	sinks := observe.Sinks{&r, bus, metrics, observe.NewJSONLines(io.Discard, nil), observe.NewSlog(slog.New(slog.DiscardHandler))}
	events := withCanaries(t)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 20 {
				emit(sinks, fmt.Sprint("run_", i), events...)
			}
		})
	}
	wg.Wait()
	if got, want := len(r.Events()), 4*20*len(events); got != want {
		t.Errorf("recorded %d events, want %d", got, want)
	}
	if _, series := scrape(t, metrics); series["lathe_tool_call_parse_errors_total"] != "80" {
		t.Errorf("parse errors: got %s, want 80", series["lathe_tool_call_parse_errors_total"])
	}
}

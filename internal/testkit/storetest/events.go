package storetest

import (
	"encoding/json"
	"iter"
	"reflect"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

var start = time.Date(2026, 3, 4, 5, 6, 7, 890_000, time.UTC)

func stamped(runID string, id int64, d event.Data) event.Event {
	return event.Event{ID: id, Time: start.Add(time.Duration(id) * time.Millisecond), RunID: runID, RequestID: "req", SessionID: "session", Turn: 1, Data: d}
}

// events returns n events that follow last.
func events(runID string, last int64, n int) []event.Event {
	out := make([]event.Event, n)
	for i := range out {
		id := last + int64(i) + 1
		out[i] = stamped(runID, id, &event.ToolCallPlanned{ToolCallID: "call", Tool: "clock", Seq: int(id)})
	}
	return out
}

// everyType returns one event of each stored type with nothing left out.
func everyType() []event.Data {
	raw := func() json.RawMessage { return json.RawMessage(`{"city":"Ulm <&>","n":1.50}`) }
	blob := func() lathe.Blob {
		return lathe.Blob{MediaType: "image/png", Data: []byte{0, 1, 255}, Name: "a.png", Detail: "low", Raw: raw()}
	}
	members := func() []lathe.Member { return []lathe.Member{{Name: "x_vendor", Value: raw()}} }
	message := func() lathe.Message {
		return lathe.Message{Role: lathe.RoleAssistant, Name: "ann", Extra: members(), Synthetic: true, Parts: []lathe.Part{
			lathe.Text{Text: "text \u2028 \x00 é", Commentary: true}, lathe.Reasoning{Text: "hm", Field: "thinking"}, lathe.Refusal{Text: "no"}, blob(),
			lathe.ToolCall{ID: "c1", Name: "clock", Arguments: " {\"tz\": 1.00}\n", Dialect: "tags", Deprecated: true, Recovered: true,
				Incomplete: true, ParseError: lathe.CodePayloadParseError, Extra: members()},
			lathe.ToolResult{CallID: "c1", Name: "clock", Content: "12:00", Blobs: []lathe.Blob{blob()}, IsError: true, Code: lathe.CodeTimeout},
		}}
	}
	usage := lathe.Usage{InputTokens: 1 << 40, OutputTokens: 2, TotalTokens: 3, CachedTokens: 4, ReasoningTokens: 5}
	cost, rc, msg := 0.1, -28, message()
	return []event.Data{
		&event.RunStarted{Model: "sim/demo", Provider: "sim", Dialect: "native", ToolUseMode: lathe.ModeRelaxed, FailurePolicy: lathe.FailureFatal,
			Tools: event.ToolsDigest{Count: 2, Hash: "ab"}, Limits: event.LimitsView{MaxIterations: 8, RunTimeoutMS: 9}, Messages: []lathe.Message{lathe.User("hi"), message()},
			Principal: "ann", Labels: map[string]string{"team": "a"}, Target: "main", Input: raw()},
		&event.ModelCallStarted{Attempt: 1, Provider: "sim", Model: "sim/demo", PromptHash: "phv1:aa", Messages: 2, Tools: 2},
		&event.ModelCallFinished{Attempt: 1, Provider: "sim", Model: "sim/demo", Status: "success", ErrorCode: "x", FinishReason: lathe.FinishToolCalls, Usage: usage,
			LatencyMS: 12, FirstTokenMS: 3, ToolCalls: 1, IgnoredToolCalls: 1, UpstreamRequestID: "up", ProviderCost: &cost, Faults: []lathe.Fault{{Kind: "bad_line", Count: 2}}, Message: &msg},
		&event.ToolCallProposed{ToolCallID: "c1", ToolName: "clock", Seq: 1, Dialect: "native", DeprecatedSyntax: true, Recovered: true, ArgsBytes: 9,
			ArgsPreviewHash: "cd", RawName: "Clock", RawArgs: " {\"tz\": 1.00}\n"},
		&event.ToolCallParseError{Dialect: "tags", Error: lathe.CodePayloadParseError, ExcerptBytes: 3, RawExcerpt: "<to"},
		&event.ToolCallPlanned{ToolCallID: "c1", Tool: "clock", Seq: 1, ArgsPreviewHash: "cd", ArgsSchemaVersion: "v1"},
		&event.ApprovalRequested{ToolCallID: "c1", Tool: "clock", Seq: 1, ArgsDigest: "ef", Rule: "writes", ExpiresAt: start, Arguments: raw()},
		&event.ApprovalResolved{ToolCallID: "c1", Tool: "clock", Seq: 1, Decision: "edited", By: "ann", ReasonCode: "fixed", Arguments: raw()},
		&event.ApprovalResolved{ToolCallID: "c1", Tool: "clock", Seq: 1, Decision: "approved", By: "ann"},
		&event.ToolCallExecuted{ToolCallID: "c1", ToolName: "clock", Seq: 1, Success: true, LatencyMS: 1, OutputTruncated: true, OutputSizeBytes: 9, Cached: true, Attempts: 1, RC: &rc},
		&event.ToolsLoaded{ToolCallID: "c1", Seq: 1, Tools: []string{"clock", "calendar"}, Hash: "ab"},
		&event.ToolCallResult{ToolCallID: "c1", Tool: "clock", Seq: 1, Status: "error", ErrorType: lathe.CodeTimeout, Message: "fixed text", LatencyMS: 1, Repaired: true,
			PolicyDecision: "allow", PolicyRule: "all", Limit: "tool_timeout", Result: "12:00 <&>", Blobs: []lathe.Blob{blob()}},
		&event.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{"c1"}},
		&event.RunResumed{Reason: lathe.ReasonAwaitingApproval, Pending: []string{"c1"}},
		&event.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed", Turns: 2, ToolCalls: 1, Usage: usage, LatencyMS: 20, ErrorCode: "x", Limit: "max_iterations",
			Answer: "It is noon.", Result: &event.Result{Answer: "It is noon."}},
	}
}

// scribble changes everything that can be reached from e through pointers and slices.
func scribble(e *event.Event) { scribbleValue(reflect.ValueOf(e).Elem()) }

func scribbleValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return
		}
		if v.Elem().Kind() == reflect.Pointer {
			scribbleValue(v.Elem())
			return
		}
		// The value in an interface cannot be set, but what its slices hold can be.
		c := reflect.New(v.Elem().Type()).Elem()
		c.Set(v.Elem())
		scribbleValue(c)
		v.Set(c)
	case reflect.Pointer:
		if !v.IsNil() {
			scribbleValue(v.Elem())
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Time{}))
			return
		}
		for i := range v.NumField() {
			scribbleValue(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			scribbleValue(v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			e := reflect.New(v.Type().Elem()).Elem()
			e.Set(v.MapIndex(k))
			scribbleValue(e)
			v.SetMapIndex(k, e)
		}
	case reflect.String:
		v.SetString("scribbled")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Uint8:
		v.SetUint('7') // any JSON text becomes a number of sevens
	case reflect.Int, reflect.Int64:
		v.SetInt(-v.Int() - 1)
	case reflect.Float64:
		v.SetFloat(-v.Float() - 1)
	default:
		panic("storetest: no way to scribble on " + v.Type().String())
	}
}

func mustAppend(t *testing.T, s store.Store, runID string, last int64, events ...event.Event) {
	t.Helper()
	end, err := s.Append(t.Context(), runID, last, events...)
	if want := last + int64(len(events)); err != nil || end != want {
		t.Fatalf("append of %d events to %s after %d: got %d, %v, want %d", len(events), runID, last, end, err, want)
	}
}

func read(t *testing.T, s store.Store, runID string, after int64) []event.Event {
	t.Helper()
	got, err := collect(s.Read(t.Context(), runID, after))
	if err != nil {
		t.Fatalf("read of %s after %d: %v", runID, after, err)
	}
	return got
}

// collect returns the events of a sequence up to its error. Events after an error would be lost
// on a caller, so they are returned too.
func collect(seq iter.Seq2[event.Event, error]) ([]event.Event, error) {
	var out []event.Event
	var first error
	for e, err := range seq {
		if err != nil && first == nil {
			first = err
			continue
		}
		out = append(out, e)
	}
	return out, first
}

func encode(t *testing.T, e event.Event) []byte {
	t.Helper()
	b, err := e.MarshalJSON()
	if err != nil {
		t.Fatalf("event %d: %v", e.ID, err)
	}
	return b
}

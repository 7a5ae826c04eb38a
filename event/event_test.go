package event_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/reflecttest"
)

// contract is the table of event data: the members that every event of the type has, those that
// it may leave out, and the members of its content.
var contract = map[string]struct{ always, maybe, content string }{
	"RunStarted":       {"dialect limits model provider tool_failure_policy tool_use_mode tools", "continues executor parent_run_id parent_tool_call_id replays retention taken_over", "input labels messages principal profile target"},
	"ModelCallStarted": {"attempt messages model prompt_hash prompt_hash_v2 provider tools", "agent", "asked"},
	"TextDelta":        {"bytes", "", "text"},
	"ReasoningDelta":   {"bytes", "", "text"},
	"CommentaryDelta":  {"bytes", "", "text"},
	"ToolCallDelta":    {"bytes index", "tool tool_call_id", "text"},
	"ToolCallProgress": {"done tool tool_call_id", "total", "text"},
	"ModelCallFinished": {
		"attempt finish_reason first_token_ms latency_ms model provider status tool_calls upstream_request_id usage",
		"cost dropped error_code faults ignored_tool_calls provider_code provider_cost response_id upstream_status", "error_message message"},
	"ToolCallProposed": {
		"args_bytes args_preview_hash deprecated_syntax dialect seq tool_call_id tool_name", "client recovered", "raw_args tool_name"},
	"ToolCallParseError": {"dialect error excerpt_bytes", "", "raw_excerpt"},
	"ToolCallPlanned":    {"args_preview_hash args_schema_version seq tool tool_call_id", "", ""},
	"ApprovalRequested":  {"args_digest expires_at seq tool tool_call_id", "rule", "arguments"},
	"ApprovalResolved":   {"by decision reason_code seq tool tool_call_id", "in_request", "arguments"},
	"ToolCallExecuted": {
		"attempts cached latency_ms output_size_bytes output_truncated seq success tool_call_id tool_name", "child_cost child_run_id child_usage rc", ""},
	"ToolsLoaded": {"hash seq tool_call_id tools", "", ""},
	"ToolCallResult": {
		"latency_ms seq status tool tool_call_id", "cause client error_type limit message policy_decision policy_rule repair repaired", "blobs result"},
	"RunPaused":   {"pending reason", "", ""},
	"RunResumed":  {"pending reason", "", ""},
	"RunFinished": {"latency_ms reason status tool_calls turns usage", "blank error_code limit", "answer"},
}

// newData returns a zero event of the type, as a reader of the JSON form gets it.
func newData(t testing.TB, name string) event.Data {
	t.Helper()
	var e event.Event
	line := fmt.Sprintf(`{"event_id":1,"time":"2026-01-02T03:04:05Z","run_id":"run_1","request_id":"r","turn":1,"type":%q,"data":{}}`, name)
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		t.Fatalf("event type %s: %v", name, err)
	}
	return e.Data
}

// members returns the sorted member names of a JSON object.
func members(t testing.TB, obj []byte) string {
	t.Helper()
	if obj == nil {
		return ""
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(obj, &m); err != nil {
		t.Fatalf("%s: %v", obj, err)
	}
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

type envelope struct {
	Type    string          `json:"type"`
	Data    json.RawMessage `json:"data"`
	Content json.RawMessage `json:"content"`
}

func split(t testing.TB, line []byte) envelope {
	t.Helper()
	var v envelope
	if err := json.Unmarshal(line, &v); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return v
}

func TestEventTypesAreComplete(t *testing.T) {
	t.Parallel()
	want := reflecttest.Receivers(t, "event.go", "EventType")
	if diff := cmp.Diff(want, event.Types()); diff != "" {
		t.Errorf("EventTypes against the types of event.go (-declared +listed):\n%s", diff)
	}
	for _, name := range event.Types() {
		if got := newData(t, name).EventType(); got != name {
			t.Errorf("reading %s gives %s", name, got)
		}
		if _, ok := contract[name]; !ok {
			t.Errorf("%s has no row in the contract table", name)
		}
	}
	if len(contract) != len(event.Types()) {
		t.Errorf("the contract table has %d rows, want %d", len(contract), len(event.Types()))
	}
}

func TestEventMembersAreTheContracts(t *testing.T) {
	t.Parallel()
	for _, name := range event.Types() {
		row := contract[name]
		zero, err := event.Event{ID: 1, Data: newData(t, name)}.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if got := members(t, split(t, zero).Data); got != row.always {
			t.Errorf("%s always has %q, want %q", name, got, row.always)
		}
		full := newData(t, name)
		reflecttest.Fill(reflect.ValueOf(full).Elem(), "x")
		line, err := event.Event{ID: 1, Data: full}.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Fields(row.always + " " + row.maybe)
		slices.Sort(all)
		if got, want := members(t, split(t, line).Data), strings.Join(all, " "); got != want {
			t.Errorf("%s with all fields set has %q, want %q", name, got, want)
		}
		if got := members(t, split(t, line).Content); got != row.content {
			t.Errorf("content of %s has %q, want %q", name, got, row.content)
		}
	}
}

const canary = "canary-7f3a"

// Each field with the tag json:"-" is content. Filled by reflection, so that a new field cannot be forgotten:
// it must stay out of MarshalData, be in MarshalJSON, and come back.
func TestContentStaysOutOfData(t *testing.T) {
	t.Parallel()
	for _, name := range event.Types() {
		typ := reflect.TypeOf(newData(t, name)).Elem()
		for i := range typ.NumField() {
			field := typ.Field(i)
			if field.Tag.Get("json") != "-" {
				continue
			}
			data := newData(t, name)
			reflecttest.Fill(reflect.ValueOf(data).Elem().Field(i), canary)
			e := event.Event{Time: time.Unix(0, 0).UTC(), RunID: "run_1", Data: data}
			public, err := e.MarshalData()
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(public, []byte(canary)) || split(t, public).Content != nil {
				t.Errorf("%s.%s shows in MarshalData: %s", name, field.Name, public)
			}
			whole, err := e.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if field.Type == reflect.TypeFor[*event.Result]() || field.Type == reflect.TypeFor[*event.ModelRequest]() || field.Type == reflect.TypeFor[*lathe.Delta]() {
				if bytes.Contains(whole, []byte(canary)) {
					t.Errorf("%s.%s is for the same process only but is written: %s", name, field.Name, whole)
				}
				continue
			}
			if !bytes.Contains(whole, []byte(canary)) {
				t.Errorf("%s.%s is missing from MarshalJSON: %s", name, field.Name, whole)
			}
			var back event.Event
			if err := json.Unmarshal(whole, &back); err != nil {
				t.Errorf("%s.%s: %v", name, field.Name, err)
			} else if diff := cmp.Diff(e, back); diff != "" {
				t.Errorf("%s.%s (-want +got):\n%s", name, field.Name, diff)
			}
		}
	}
}

func TestEventRoundTrip(t *testing.T) {
	t.Parallel()
	for _, name := range event.Types() {
		data := newData(t, name)
		reflecttest.Fill(reflect.ValueOf(data).Elem(), "text <&> \u2028 \u00e9 \"q\"")
		switch d := data.(type) { // results and requests are for the same process
		case *event.ModelCallStarted:
			d.Request = nil
		case *event.TextDelta:
			d.Delta = nil
		case *event.RunFinished:
			d.Result = nil
		case *event.RunPaused:
			d.Result = nil
		}
		e := event.Event{Time: time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.UTC), RunID: "run_1", RequestID: "req \"1\"", SessionID: "s", Turn: 2, Data: data}
		if event.IsDelta(data) {
			e.After, e.N = 7, 3
		} else {
			e.ID = 8
		}
		line, err := e.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsAny(line, "\n") || bytes.Contains(line, []byte(`\u003c`)) {
			t.Errorf("%s is not one plain line: %s", name, line)
		}
		var back event.Event
		if err := json.Unmarshal(line, &back); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(e, back); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		again, err := back.MarshalJSON()
		if err != nil || !bytes.Equal(line, again) {
			t.Errorf("%s written again: %v\n got %s\nwant %s", name, err, again, line)
		}
	}
}

func TestEventEnvelope(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 60_000_000, time.FixedZone("", 3600))
	tests := []struct {
		name string
		e    event.Event
		want string
	}{
		{"stored", event.Event{ID: 3, After: 9, N: 9, Time: at, RunID: "run_1", RequestID: "q", Turn: 1, Data: &event.RunPaused{Reason: lathe.ReasonAwaitingApproval, Pending: []string{"c1"}}},
			`{"event_id":3,"time":"2026-01-02T02:04:05.06Z","run_id":"run_1","request_id":"q","turn":1,"type":"RunPaused","data":{"reason":"awaiting_approval","pending":["c1"]}}`},
		{"delta before the first stored event", event.Event{N: 1, Time: at.UTC(), RunID: "run_1", RequestID: "q", SessionID: "s", Turn: 1, Data: &event.TextDelta{Bytes: 3, Text: "<a>"}},
			`{"after":0,"n":1,"time":"2026-01-02T02:04:05.06Z","run_id":"run_1","request_id":"q","session_id":"s","turn":1,"type":"TextDelta","data":{"bytes":3},"content":{"text":"<a>"}}`},
		{"an end that was not stored", event.Event{After: 7, Time: at, RunID: "run_1", RequestID: "q", Turn: 2, Data: &event.RunResumed{Reason: lathe.ReasonInternal, Pending: []string{}}},
			`{"after":7,"time":"2026-01-02T02:04:05.06Z","run_id":"run_1","request_id":"q","turn":2,"type":"RunResumed","data":{"reason":"internal","pending":[]}}`},
		{"nothing edited", event.Event{ID: 1, Time: at.UTC(), RunID: "r", RequestID: "q\n", Data: &event.ApprovalResolved{ToolCallID: "c", Tool: "t", Decision: "approved", By: "ann", ReasonCode: "ok"}},
			`{"event_id":1,"time":"2026-01-02T02:04:05.06Z","run_id":"r","request_id":"q\n","turn":0,"type":"ApprovalResolved","data":{"tool_call_id":"c","tool":"t","seq":0,"decision":"approved","by":"ann","reason_code":"ok"}}`},
		{"nothing pending", event.Event{ID: 1, Time: at.UTC(), RunID: "r", RequestID: "q", Data: &event.RunResumed{Reason: lathe.ReasonAwaitingApproval}},
			`{"event_id":1,"time":"2026-01-02T02:04:05.06Z","run_id":"r","request_id":"q","turn":0,"type":"RunResumed","data":{"reason":"awaiting_approval","pending":[]}}`},
	}
	for _, tt := range tests {
		got, err := tt.e.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
		appended, err := tt.e.AppendWithContent([]byte("before "))
		if err != nil || string(appended) != "before "+tt.want {
			t.Errorf("%s: AppendJSON: %v %s", tt.name, err, appended)
		}
	}
}

func TestEventErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"unknown type", `{"type":"RunExploded","data":{}}`, `lathe: unknown event type "RunExploded"`},
		{"no type", `{"data":{}}`, `lathe: unknown event type ""`},
		{"no object", `[]`, `lathe: reading an event: `},
		{"data of another kind", `{"type":"TextDelta","data":[]}`, `lathe: reading TextDelta: `},
		{"no data", `{"type":"TextDelta"}`, `lathe: reading TextDelta: `},
		{"content of another kind", `{"type":"TextDelta","data":{},"content":{"text":1}}`, `lathe: reading TextDelta: `},
		{"unknown part", `{"type":"RunStarted","data":{},"content":{"messages":[{"role":"user","parts":[{"type":"hologram"}]}]}}`,
			`lathe: reading RunStarted: lathe: unknown part type "hologram"`},
	}
	for _, tt := range tests {
		var e event.Event
		err := json.Unmarshal([]byte(tt.in), &e)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s…", tt.name, err, tt.want)
		}
	}
	if _, err := (event.Event{ID: 4}).MarshalJSON(); err == nil || err.Error() != "lathe: event 4 has no data" {
		t.Errorf("event without data: got %v", err)
	}
	if dst, err := (event.Event{ID: 4}).AppendWithContent([]byte("kept")); err == nil || string(dst) != "kept" {
		t.Errorf("a failed append leaves %q, %v", dst, err)
	}
}

func TestIsDelta(t *testing.T) {
	t.Parallel()
	var got []string
	for _, name := range event.Types() {
		if event.IsDelta(newData(t, name)) {
			got = append(got, name)
		}
	}
	if want := "TextDelta ReasoningDelta CommentaryDelta ToolCallDelta ToolCallProgress"; strings.Join(got, " ") != want {
		t.Errorf("delta events: got %v, want %s", got, want)
	}
}

// A caller that changes the list of event types changes its own copy.
func TestTypesAreACopy(t *testing.T) {
	t.Parallel()
	types := event.Types()
	types[0] = "changed"
	if got := event.Types()[0]; got != "RunStarted" {
		t.Errorf("the first type is %q now", got)
	}
}

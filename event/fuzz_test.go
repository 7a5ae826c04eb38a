package event_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/reflecttest"
)

// What was read once is written and read again without a change, and data shows no content.
func FuzzEvent(f *testing.F) {
	for _, name := range event.Types() {
		data := newData(f, name)
		reflecttest.Fill(reflect.ValueOf(data).Elem(), "x <é>")
		line, err := event.Event{ID: 1, N: 2, RunID: "run_1", RequestID: "q", Turn: 1, Data: data}.MarshalJSON()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	f.Add([]byte(`{"type":"ApprovalResolved","data":{},"content":{"arguments":null}}`))
	f.Add([]byte(`{"type":"ModelCallFinished","data":{},"content":null}`))
	f.Add([]byte(`{"type":"RunPaused","data":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e event.Event
		if json.Unmarshal(b, &e) != nil {
			return
		}
		first, err := e.MarshalJSON()
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if !json.Valid(first) {
			t.Fatalf("not JSON: %s", first)
		}
		var back event.Event
		if err := json.Unmarshal(first, &back); err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, first)
		}
		second, err := back.MarshalJSON()
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("written again: %v\n got %s\nwant %s", err, second, first)
		}
		public, err := e.MarshalData()
		if err != nil || split(t, public).Content != nil {
			t.Fatalf("MarshalData: %v\n%s", err, public)
		}
	})
}

func BenchmarkEventAppendWithContent(b *testing.B) {
	e := event.Event{ID: 7, RunID: "run_01", RequestID: "req_01", Turn: 1, Data: &event.ToolCallResult{ToolCallID: "call_1", Tool: "clock", Status: "ok", LatencyMS: 3, Result: "12:00"}}
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		var err error
		if buf, err = e.AppendWithContent(buf[:0]); err != nil {
			b.Fatal(err)
		}
	}
}

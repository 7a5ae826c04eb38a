package store

import (
	"fmt"
	"runtime"
	"testing"
	"weak"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// At the limit the principal with the most records of removed runs loses them, and the others lose none.
func TestMemoryBoundsTheRecordsOfRemovedRuns(t *testing.T) {
	t.Parallel()
	s := NewMemory(&MemoryOptions{MaxFinished: 1, Share: 2})
	end := func(id, principal string) {
		if _, err := s.Append(t.Context(), id, 0, event.Event{ID: 1, RunID: id, Data: &event.RunStarted{Principal: principal}},
			event.Event{ID: 2, RunID: id, Data: &event.RunFinished{Reason: lathe.ReasonAnswered}}); err != nil {
			t.Fatal(err)
		}
	}
	end("quiet", "quiet")
	for i := range maxGone + 100 {
		end(fmt.Sprint(i), "busy")
		if len(s.kept.gone) > maxGone {
			t.Fatalf("%d records", len(s.kept.gone))
		}
	}
	if s.kept.gone["quiet"] == nil || s.kept.gone[fmt.Sprint(maxGone+50)] == nil || s.kept.gone["0"] != nil {
		t.Error("the wrong records were removed")
	}
}

// A stored run holds no request of a model call, and with it neither the conversation that was sent nor the memory of the run.
func TestMemoryReleasesTheRequestsOfModelCalls(t *testing.T) {
	t.Parallel()
	s := NewMemory(nil)
	sent := func() weak.Pointer[event.ModelRequest] {
		r := &event.ModelRequest{Messages: []lathe.Message{lathe.User("hello")}}
		events := []event.Event{{ID: 1, RunID: "r", Data: &event.RunStarted{}}, {ID: 2, RunID: "r", Data: &event.ModelCallStarted{Model: "m", Request: r}}}
		if _, err := s.Append(t.Context(), "r", 0, events...); err != nil {
			t.Fatal(err)
		}
		if events[1].Data.(*event.ModelCallStarted).Request != r {
			t.Error("the caller's event was changed")
		}
		return weak.Make(r)
	}()
	runtime.GC()
	if sent.Value() != nil {
		t.Error("the store holds the request")
	}
	for e, err := range s.Read(t.Context(), "r", 1) {
		if d, ok := e.Data.(*event.ModelCallStarted); err != nil || !ok || d.Model != "m" || d.Request != nil {
			t.Errorf("%+v, %v", e.Data, err)
		}
	}
	runtime.KeepAlive(s)
}

package store

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

func TestGoneRunsRemembersWhatWasRemoved(t *testing.T) {
	t.Parallel()
	g := newGoneRuns()
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.FixedZone("", 3600))
	g.add("a", "alice", at)
	g.add("b", "bob", time.Time{})
	if want := (GoneError{RunID: "a", Principal: "alice", Time: at.UTC()}); *g.find("a") != want {
		t.Errorf("got %+v, want %+v", *g.find("a"), want)
	}
	if got := g.find("b"); got.Principal != "bob" || !got.Time.IsZero() {
		t.Errorf("got %+v", got)
	}
	g.add("a", "bob", at) // imported anew under another principal, and removed again
	if got := g.find("a"); got.Principal != "bob" {
		t.Errorf("got %+v, want the last record", got)
	}
	g.removePrincipal("alice")
	g.remove("unknown")
	g.remove("b")
	if g.find("unknown") != nil || g.find("b") != nil || g.find("a") == nil {
		t.Error("the wrong records were removed")
	}
	g.removePrincipal("bob")
	if g.find("a") != nil || len(g.byID)+len(g.numbers) != 0 {
		t.Errorf("%d records and %d principals remain", len(g.byID), len(g.numbers))
	}
}

// At the limit the principal with the most records loses them, the others lose none, and the table of principals does not grow.
func TestGoneRunsAreBounded(t *testing.T) {
	t.Parallel()
	g := newGoneRuns()
	g.add("quiet", "quiet", time.Time{})
	for i := range 3 * maxGone {
		g.add(fmt.Sprint(i), "busy", time.Time{})
		once := fmt.Sprint("once ", i)
		g.add(once, once, time.Time{})
		g.remove(once)
		if len(g.byID) > maxGone {
			t.Fatalf("%d records", len(g.byID))
		}
	}
	if g.find("quiet") == nil || g.find(fmt.Sprint(3*maxGone-1)) == nil || g.find("0") != nil {
		t.Error("the wrong records were removed")
	}
	if len(g.owners) > 3 {
		t.Errorf("numbers for %d principals, of at most three at once", len(g.owners))
	}
}

// The garbage collector reads the records of a map if their types have pointers.
func TestGoneRunsHaveNoPointers(t *testing.T) {
	t.Parallel()
	of := reflect.TypeFor[goneRuns]()
	byID, _ := of.FieldByName("byID")
	for _, of := range append(reflect.VisibleFields(byID.Type.Elem()), reflect.StructField{Type: byID.Type.Key()}) {
		if k := of.Type.Kind(); k < reflect.Bool || k > reflect.Complex128 || k == reflect.Uintptr {
			t.Errorf("%s has the kind %v", of.Name, k)
		}
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

package tool

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

type shower struct {
	spec lathe.ToolSpec
	data string
}

func (s *shower) Spec() *lathe.ToolSpec { return &s.spec }
func (s *shower) Call(context.Context, json.RawMessage) (*lathe.Output, error) {
	return &lathe.Output{Data: json.RawMessage(`{"shown":"` + s.data + `","hidden":1}`)}, nil
}

type allower struct{}

func (allower) Tool(*lathe.RunInfo, *lathe.ToolSpec) lathe.Verdict {
	return lathe.Verdict{Decision: lathe.Allow}
}
func (allower) Step(*lathe.StepInfo) lathe.Verdict { return lathe.Verdict{Decision: lathe.Allow} }
func (allower) Call(*lathe.CallInfo) lathe.Verdict { return lathe.Verdict{Decision: lathe.Allow} }

// A run holds the memory of its calls until it is closed, but no large one: its model may take long.
func TestWorkHoldsLittleBetweenCalls(t *testing.T) {
	t.Parallel()
	show := &shower{spec: lathe.ToolSpec{Name: "show", Effect: lathe.ReadOnly, Schema: json.RawMessage(`{"type":"object"}`), Allowlist: []string{"shown"}}}
	set, err := NewSet(show)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRunner(set, &Options{Policy: allower{}})
	if err != nil {
		t.Fatal(err)
	}
	w := r.Begin(nil, nil)
	execute := func(id, data string) *scratch {
		show.data = data
		out := w.Execute(t.Context(), 1, []Call{{ToolCall: lathe.ToolCall{ID: id, Name: "show", Arguments: "{}"}}}, func(event.Data) {})
		if got := out.Messages[0].Parts[0].(lathe.ToolResult).Content; got != `{"shown":"`+data+`"}` {
			t.Fatalf("got %.80s", got)
		}
		return w.scratch
	}
	first := execute("a", "little")
	if first == nil || execute("b", "little") != first {
		t.Error("the next call of the run does not use the memory of the one before")
	}
	if l := execute("c", strings.Repeat("much ", maxBetween)); l != nil {
		t.Errorf("%d bytes are held", cap(l.proj.buf))
	}
	w.Close()
	if w.scratch != nil {
		t.Error("a closed run holds memory")
	}
}

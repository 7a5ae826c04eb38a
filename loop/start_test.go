package loop

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/runinput"
)

// Each member of a start is written: a member that is added to the struct and not to startJSON fails here.
func TestStartHasEachMember(t *testing.T) {
	t.Parallel()
	on, hot := true, 0.5
	in := &Input{Run: lathe.RunInfo{Depth: 1}, ClientTools: []*lathe.ToolSpec{{Name: "a"}}, Allow: []string{"a"}, Settings: &lathe.Settings{ParallelToolCalls: &on}, Limits: &lathe.Limits{},
		Sampling: &lathe.Sampling{Temperature: &hot}, extra: runinput.Extra{User: "u", HostedTools: []json.RawMessage{json.RawMessage("{}")}, Betas: []string{"b"}, APIVersion: "v", Client: json.RawMessage("{}")}, Overrides: []lathe.Member{{Name: "n", Value: json.RawMessage("1")}}}
	got, err := in.startJSON()
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(got, &members); err != nil {
		t.Fatal(err)
	}
	want := structMembers(t)
	delete(want, "allow_none") // beside allow
	for name := range want {
		if members[name] == nil {
			t.Errorf("the start lacks %q: %s", name, got)
		}
	}
	if len(members) != len(want) {
		t.Errorf("%d members, want %d: %s", len(members), len(want), got)
	}
}

// structMembers returns the names of the members of a start.
func structMembers(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	of := reflect.TypeFor[start]()
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		names[name] = true
	}
	return names
}

func TestStartThatCannotBeWrittenIsAnError(t *testing.T) {
	t.Parallel()
	if got, err := (&Input{Limits: &lathe.Limits{MaxCost: math.NaN()}}).startJSON(); err == nil || got != nil {
		t.Errorf("%s, %v", got, err)
	}
}

// A program that embeds the module sees the fields that it may set, and no more.
func TestInputShowsFewFields(t *testing.T) {
	visible := 0
	for f := range reflect.TypeFor[Input]().Fields() {
		if f.IsExported() {
			visible++
		}
	}
	if visible > 12 {
		t.Errorf("Input has %d exported fields, want at most 12: what only the gateway and the engine set belongs into runinput.Extra", visible)
	}
}

func TestInputCopiesItsExtra(t *testing.T) {
	in := runinput.With(&Input{Target: "main"}, runinput.Extra{User: "ann"})
	own := *in
	runinput.Of(&own).User = "bob"
	if in.Target != "main" || in.extra.User != "ann" || own.extra.User != "bob" {
		t.Errorf("the input has %q and user %q, its copy user %q", in.Target, in.extra.User, own.extra.User)
	}
	defer func() {
		if recover() == nil {
			t.Error("an Input that is no pointer was accepted")
		}
	}()
	runinput.Of(own)
}

package loop

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/lathe-run/lathe"
)

// startOf returns the start of an input as a value.
func startOf(in *Input) *start {
	s := &start{Version: startPlain, Depth: in.Run.Depth, ClientTools: in.ClientTools, Allow: in.Allow, AllowNone: in.Allow != nil && len(in.Allow) == 0,
		Settings: in.Settings, Limits: in.Limits, Sampling: in.Sampling, User: in.User, Overrides: in.Overrides, Client: in.Client,
		HostedTools: in.HostedTools, Betas: in.Betas, APIVersion: in.APIVersion}
	if len(in.HostedTools) > 0 || len(in.Betas) > 0 || in.APIVersion != "" {
		s.Version = startVersion
	}
	return s
}

// The start of a run is the JSON that package encoding/json writes, whatever the loop has kept of the run before.
func TestStartIsWrittenAsTheStandardLibraryWritesIt(t *testing.T) {
	t.Parallel()
	maybe := func(t *rapid.T, label string) bool { return rapid.Bool().Draw(t, label) }
	text := rapid.SampledFrom([]string{"a", "<b> & \"c\"", "\u2028é", "\x00"})
	l := &Loop{}
	rapid.Check(t, func(t *rapid.T) {
		in := &Input{Run: lathe.RunInfo{Depth: rapid.IntRange(0, 2).Draw(t, "depth")}}
		if maybe(t, "settings") {
			in.Settings = &lathe.Settings{ToolUseMode: lathe.ToolUseMode(text.Draw(t, "mode")), MaxParallel: rapid.IntRange(0, 2).Draw(t, "parallel")}
			if maybe(t, "parallel calls") {
				on := maybe(t, "on")
				in.Settings.ParallelToolCalls = &on
			}
		}
		if maybe(t, "limits") {
			in.Limits = &lathe.Limits{MaxCost: rapid.SampledFrom([]float64{0, 0.5, 1e21}).Draw(t, "cost"), MaxTools: rapid.IntRange(-1, 2).Draw(t, "tools")}
		}
		if maybe(t, "sampling") {
			in.Sampling = &lathe.Sampling{}
			if maybe(t, "set") {
				hot := 0.7
				in.Sampling.Temperature, in.Sampling.Stop = &hot, []string{text.Draw(t, "stop")}
			}
		}
		switch rapid.IntRange(0, 2).Draw(t, "allow") {
		case 1:
			in.Allow = []string{}
		case 2:
			in.Allow = []string{text.Draw(t, "allowed")}
		}
		if maybe(t, "client tools") {
			in.ClientTools = []*lathe.ToolSpec{{Name: text.Draw(t, "tool"), Schema: json.RawMessage(`{ "type": "object" }`)}, nil}
		}
		if maybe(t, "overrides") {
			in.Overrides = []lathe.Member{{Name: text.Draw(t, "member"), Value: json.RawMessage(`[1, "<"]`)}}
		}
		if maybe(t, "hosted") {
			in.HostedTools, in.Betas, in.APIVersion = []json.RawMessage{json.RawMessage(`{"a": 1}`)}, []string{text.Draw(t, "beta")}, text.Draw(t, "version")
		}
		if maybe(t, "client") {
			in.Client, in.User = json.RawMessage(`{"x": "<>"}`), text.Draw(t, "user")
		}
		want, err := json.Marshal(startOf(in))
		if err != nil {
			t.Fatal(err)
		}
		got, err := (&run{loop: l, in: in}).startInput()
		if err != nil || string(got) != string(want) {
			t.Fatalf("%v\n%s\nwant\n%s", err, got, want)
		}
	})
}

// Each member of a start is written: a member that is added to the struct and not to the writer fails here.
func TestStartHasEachMember(t *testing.T) {
	t.Parallel()
	on, hot := true, 0.5
	in := &Input{Run: lathe.RunInfo{Depth: 1}, ClientTools: []*lathe.ToolSpec{{Name: "a"}}, Allow: []string{"a"}, Settings: &lathe.Settings{ParallelToolCalls: &on}, Limits: &lathe.Limits{},
		Sampling: &lathe.Sampling{Temperature: &hot}, User: "u", Overrides: []lathe.Member{{Name: "n", Value: json.RawMessage("1")}}, HostedTools: []json.RawMessage{json.RawMessage("{}")},
		Betas: []string{"b"}, APIVersion: "v", Client: json.RawMessage("{}")}
	got, err := (&run{loop: &Loop{}, in: in}).startInput()
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
	l := &Loop{}
	for range 2 { // nothing of it is kept
		if got, err := (&run{loop: l, in: &Input{Limits: &lathe.Limits{MaxCost: math.NaN()}}}).startInput(); err == nil || got != nil {
			t.Errorf("%s, %v", got, err)
		}
	}
}

// Runs that are started alike share their start, a run with another one does not change it, and appending to it does not either.
func TestRunsShareTheirStart(t *testing.T) {
	t.Parallel()
	l := &Loop{}
	r := &run{loop: l}
	input := func(tools int) json.RawMessage {
		r.in = &Input{Limits: &lathe.Limits{MaxTools: tools}}
		got, err := r.startInput()
		if err != nil || cap(got) != len(got) {
			t.Fatalf("%v, %d of %d", err, len(got), cap(got))
		}
		return got
	}
	first := input(1)
	text := string(first)
	if again := input(1); &again[0] != &first[0] {
		t.Error("the same start is encoded twice")
	}
	_, large := input(2), append(input(1), "more"...)
	if string(first) != text || string(large) != text+"more" {
		t.Errorf("%s became %s", text, first)
	}
	r.in = &Input{User: strings.Repeat("x", maxScratch)}
	if _, err := r.startInput(); err != nil || len(*l.lastStart.Load()) > maxScratch {
		t.Error("the loop keeps a large start")
	}
}

func TestStartsOfRunsAtTheSameTime(t *testing.T) {
	t.Parallel()
	l := &Loop{}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			r := &run{loop: l}
			for k := range 50 {
				r.in = &Input{Settings: &lathe.Settings{MaxParallel: i % 2}, Limits: &lathe.Limits{MaxTools: k % 3}}
				want, _ := json.Marshal(startOf(r.in))
				got, err := r.startInput()
				if err != nil || string(got) != string(want) {
					t.Errorf("%v: %s, want %s", err, got, want)
				}
			}
		})
	}
	all.Wait()
}

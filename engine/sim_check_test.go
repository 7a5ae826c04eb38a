package engine_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/enginetest"
)

// One seed is one history: whatever happens in it, happens again.
func TestSimulationsAreFunctionsOfTheirSeed(t *testing.T) {
	t.Parallel()
	for seed := range uint64(testdata.Cases(20)) {
		one, _ := try(t, &enginetest.Options{Seed: 7_000 + seed})
		two, _ := try(t, &enginetest.Options{Seed: 7_000 + seed})
		if a, b := marshal(t, one), marshal(t, two); a != b {
			t.Fatalf("seed %d: two histories\n%s\n\n%s", seed, a, b)
		}
	}
}

func marshal(t *testing.T, h *enginetest.History) string {
	t.Helper()
	lines := slices.Clone(h.Trace)
	for i := range h.Runs {
		for _, e := range h.Runs[i].Events {
			b, err := e.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(b))
		}
	}
	return strings.Join(lines, "\n")
}

// sound returns the history of one run in which an approver approved one call, the model made another, and the
// process was killed once.
func sound(t *testing.T) *enginetest.History {
	t.Helper()
	killed := false
	h, bad := try(t, &enginetest.Options{
		Scripts: []enginetest.Script{{Turns: []enginetest.Turn{enginetest.Ask(1, enginetest.AskPay, enginetest.Pay, enginetest.Look), enginetest.Reply("done")}}},
		Outcome: func(st *enginetest.Stop) enginetest.Outcome {
			if st.Point == enginetest.PointReturn && strings.Contains(st.What, "pay c1_1") && !killed {
				killed = true
				return enginetest.KillBefore
			}
			return enginetest.Go
		}})
	if len(bad) > 0 || h.Kills == 0 {
		t.Fatalf("%v after %d kills:\n%s", bad, h.Kills, strings.Join(h.Trace, "\n"))
	}
	return h
}

// Each check refuses a history that breaks its promise.
func TestChecksRefuseBrokenHistories(t *testing.T) {
	t.Parallel()
	pause := func(reason lathe.Reason) func(*enginetest.History) {
		return func(h *enginetest.History) {
			r := &h.Runs[0]
			i := slices.IndexFunc(r.Events, func(e event.Event) bool { _, ok := e.Data.(*event.RunPaused); return ok })
			r.Events = r.Events[:i+1]
			r.Events[i].Data = &event.RunPaused{Reason: reason}
		}
	}
	for _, tt := range []struct {
		check, name string
		breaks      func(*enginetest.History)
	}{
		{"C1", "a run is not there", func(h *enginetest.History) { h.Runs[0].Events = nil }},
		{"C1", "a run goes on for ever", func(h *enginetest.History) { r := &h.Runs[0]; r.Events = r.Events[:len(r.Events)-1] }},
		{"C1", "a run waits for no input", pause(lathe.ReasonInternal)},
		{"C2", "an event is missing", func(h *enginetest.History) { h.Runs[0].Events = slices.Delete(h.Runs[0].Events, 3, 4) }},
		{"C2", "an event is there twice", func(h *enginetest.History) {
			h.Runs[0].Events = slices.Insert(h.Runs[0].Events, 3, h.Runs[0].Events[3])
		}},
		{"C2", "an event is of another run", func(h *enginetest.History) { h.Runs[0].Events[2].RunID = "run_x" }},
		{"C2", "the run ends twice", func(h *enginetest.History) {
			e := h.Runs[0].Events[len(h.Runs[0].Events)-1]
			e.ID++
			h.Runs[0].Events = append(h.Runs[0].Events, e)
		}},
		{"C2", "the index is behind", func(h *enginetest.History) { h.Runs[0].Row.LastID-- }},
		{"C2", "the index has another status", func(h *enginetest.History) { h.Runs[0].Row.Status = "running" }},
		{"C2", "the index does not have it", func(h *enginetest.History) { h.Runs[0].Row = nil }},
		{"C3", "a write is made twice", func(h *enginetest.History) { h.Deeds = append(h.Deeds, *deed(h, enginetest.Pay)) }},
		{"C3", "a look is made under another key", func(h *enginetest.History) {
			d := *deed(h, enginetest.Look)
			d.Key = "other"
			h.Deeds = append(h.Deeds, d)
		}},
		{"C4", "a result without an execution", func(h *enginetest.History) {
			h.Deeds = slices.DeleteFunc(h.Deeds, func(d enginetest.Deed) bool { return d.Tool == enginetest.AskPay })
		}},
		{"C4", "a call is answered twice", func(h *enginetest.History) { twice[*event.ToolCallResult](h) }},
		{"C4", "a call is not answered", func(h *enginetest.History) { drop[*event.ToolCallResult](h) }},
		{"C4", "a call is answered that was not planned", func(h *enginetest.History) { drop[*event.ToolCallPlanned](h) }},
		{"C5", "what only looks is interrupted", func(h *enginetest.History) {
			first[*event.ToolCallResult](h, func(d *event.ToolCallResult) bool { return d.Tool == enginetest.Look }).ErrorType = lathe.CodeInterrupted
		}},
		{"C5", "what was not begun is interrupted", func(h *enginetest.History) {
			drop[*event.ApprovalResolved](h)
			first[*event.ToolCallResult](h, func(d *event.ToolCallResult) bool { return d.Tool == enginetest.AskPay }).ErrorType = lathe.CodeInterrupted
		}},
		{"C6", "a watcher missed an event", func(h *enginetest.History) {
			h.Tails[0].IDs, h.Tails[0].Lines = slices.Delete(h.Tails[0].IDs, 2, 3), slices.Delete(h.Tails[0].Lines, 2, 3)
		}},
		{"C6", "a watcher received an event twice", func(h *enginetest.History) { h.Tails[0].IDs = slices.Insert(h.Tails[0].IDs, 2, h.Tails[0].IDs[2]) }},
		{"C6", "a watcher received another event", func(h *enginetest.History) { h.Tails[0].Lines[2] = "{}" }},
		{"C6", "a watcher received what is not stored", func(h *enginetest.History) {
			h.Tails[0].IDs = append(h.Tails[0].IDs, int64(len(h.Tails[0].IDs))+1)
		}},
		{"C6", "a watcher does not know the end", func(h *enginetest.History) { h.Tails[0].IDs = h.Tails[0].IDs[:2] }},
		{"C6", "a watcher of nothing", func(h *enginetest.History) { h.Tails[0].RunID = "run_x" }},
		{"C7", "what was asked about runs with other arguments", func(h *enginetest.History) { deed(h, enginetest.AskPay).Args = json.RawMessage(`{"n":99}`) }},
		{"C7", "what is allowed runs with other arguments", func(h *enginetest.History) { deed(h, enginetest.Pay).Args = json.RawMessage(`{"n":99}`) }},
		{"C7", "no approver has approved", func(h *enginetest.History) {
			first[*event.ApprovalResolved](h, func(*event.ApprovalResolved) bool { return true }).Decision = "denied"
		}},
		{"C8", "a process appends to a run of another", func(h *enginetest.History) { h.Appends[len(h.Appends)-1].Process = "p0" }},
		{"C8", "an append under an old claim", func(h *enginetest.History) { h.Appends[2].Newest = h.Appends[2].Epoch + 1 }},
		{"C9", "the model is asked without a record", func(h *enginetest.History) { h.Runs[0].Asked = 9 }},
		{"C9", "more calls than allowed", func(h *enginetest.History) { h.Runs[0].Limits.MaxToolCalls = 1 }},
		{"C9", "more turns than allowed", func(h *enginetest.History) { twice[*event.ModelCallFinished](h); h.Runs[0].Limits.MaxIterations = 1 }},
		{"C9", "model calls without reason", func(h *enginetest.History) {
			for range 4 {
				twice[*event.ModelCallStarted](h)
			}
		}},
		{"C9", "a look without reason", func(h *enginetest.History) {
			h.Deeds = append(h.Deeds, slices.Repeat([]enginetest.Deed{*deed(h, enginetest.Look)}, 5)...)
		}},
	} {
		t.Run(tt.check+" "+tt.name, func(t *testing.T) {
			t.Parallel()
			h := sound(t)
			tt.breaks(h)
			bad := h.Check()
			if !slices.ContainsFunc(bad, func(v enginetest.Violation) bool { return v.Check == tt.check }) {
				t.Errorf("it is taken: %v", bad)
			}
			table := &enginetest.Table{}
			if table.Add(h, bad); !table.Broken() {
				t.Errorf("the table does not show:\n%s", table)
			}
		})
	}
}

func deed(h *enginetest.History, tool string) *enginetest.Deed {
	return &h.Deeds[slices.IndexFunc(h.Deeds, func(d enginetest.Deed) bool { return d.Tool == tool })]
}

func indexOf[T event.Data](h *enginetest.History, match func(T) bool) int {
	return slices.IndexFunc(h.Runs[0].Events, func(e event.Event) bool {
		d, ok := e.Data.(T)
		return ok && match(d)
	})
}

func first[T event.Data](h *enginetest.History, match func(T) bool) T {
	return h.Runs[0].Events[indexOf(h, match)].Data.(T)
}

// drop takes an event out of the log as if it had never been, and twice puts one in again.
func drop[T event.Data](h *enginetest.History) {
	i := indexOf(h, func(T) bool { return true })
	h.Runs[0].Events = slices.Delete(h.Runs[0].Events, i, i+1)
	number(h)
}

func twice[T event.Data](h *enginetest.History) {
	i := indexOf(h, func(T) bool { return true })
	h.Runs[0].Events = slices.Insert(h.Runs[0].Events, i, h.Runs[0].Events[i])
	number(h)
}

func number(h *enginetest.History) {
	for i := range h.Runs[0].Events {
		h.Runs[0].Events[i].ID = int64(i) + 1
	}
}

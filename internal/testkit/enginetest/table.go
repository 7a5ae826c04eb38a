package enginetest

import (
	"fmt"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
)

// A Table sums up the histories of many simulations: what happened, and how many violations of each kind were found.
type Table struct {
	Runs, Events, Deeds, Watchers int
	Kills, Resumed, Interrupted   int

	NotDone       int // runs
	LostOrDoubled int // events, in logs or at watchers
	Repeated      int // writes
	NoEffect      int // results without an execution
	Others        int // broken promises of other kinds
}

// Add adds a history and the violations that [History.Check] found in it.
func (t *Table) Add(h *History, found []Violation) {
	t.Runs += len(h.Runs)
	t.Deeds += len(h.Deeds)
	t.Watchers += len(h.Tails)
	t.Kills += h.Kills
	for i := range h.Runs {
		t.Events += len(h.Runs[i].Events)
		t.Resumed += len(of[*event.RunResumed](h.Runs[i].Events))
		for _, d := range of[*event.ToolCallResult](h.Runs[i].Events) {
			if d.ErrorType == lathe.CodeInterrupted {
				t.Interrupted++
			}
		}
	}
	for _, v := range found {
		switch v.Check {
		case "C1":
			t.NotDone++
		case "C2", "C6":
			t.LostOrDoubled++
		case "C3":
			t.Repeated++
		case "C4":
			t.NoEffect++
		default:
			t.Others++
		}
	}
}

// Broken reports whether there is a violation.
func (t *Table) Broken() bool {
	return t.NotDone+t.LostOrDoubled+t.Repeated+t.NoEffect+t.Others > 0
}

// String returns the table: first the counts of what happened, then the counts that must be zero.
func (t *Table) String() string {
	var b strings.Builder
	for _, row := range []struct {
		name string
		n    int
	}{
		{"runs", t.Runs}, {"processes killed", t.Kills}, {"times a run was gone on with", t.Resumed}, {"events", t.Events}, {"tool executions", t.Deeds},
		{"calls answered interrupted", t.Interrupted}, {"watchers", t.Watchers},
		{"runs not done", t.NotDone}, {"events lost or doubled", t.LostOrDoubled}, {"writes repeated", t.Repeated},
		{"results without effect", t.NoEffect}, {"other promises broken", t.Others},
	} {
		fmt.Fprintf(&b, "%-30s %8d\n", row.name, row.n)
	}
	return b.String()
}

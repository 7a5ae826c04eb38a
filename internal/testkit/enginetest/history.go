package enginetest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

// A History is the record of a simulation, or of a test with real processes: the input of [History.Check].
type History struct {
	Runs    []RunLog
	Deeds   []Deed
	Tails   []Tail   // one for each watcher
	Appends []Append // those that succeeded, in order
	// Tools are the tools of the server, by name.
	Tools map[string]Tool
	Kills int
	// Trace has one line for each step of the simulation, in order.
	Trace []string

	found []Violation // while the simulation ran
}

// A RunLog is the record of one run after the simulation.
type RunLog struct {
	ID     string
	Acked  bool // its client received its first event
	Events []event.Event
	Row    *store.RunSummary // of the index; nil: the index has no row
	Asked  int               // model calls that were made; -1: not counted
	Limits lathe.Limits
}

// Tool holds the properties of a tool that the checks need.
type Tool struct {
	Effect lathe.Effect
	Asks   bool // its calls need an approval
}

// log returns the stored events of a run.
func (s *Sim) log(runID string) []event.Event {
	var out []event.Event
	for e, err := range s.opts.Store.Read(context.Background(), runID, 0) {
		if err != nil {
			if !errors.Is(err, lathe.ErrNotFound) {
				s.found = append(s.found, Violation{Check: "C2", RunID: runID, Text: err.Error()})
			}
			break
		}
		out = append(out, e)
	}
	return out
}

// history returns the history after the end of the simulation.
func (s *Sim) history(t testing.TB) *History {
	t.Helper()
	h := &History{Deeds: s.world.deeds, Appends: s.appends, Tools: map[string]Tool{}, Kills: s.kills, Trace: s.trace, found: s.found}
	for name, effect := range effects {
		h.Tools[name] = Tool{Effect: effect, Asks: asks(name)}
	}
	for _, tail := range s.tails {
		h.Tails = append(h.Tails, Tail{RunID: tail.RunID, Lines: tail.Lines, IDs: tail.IDs, Whole: true})
	}
	for _, r := range s.runs {
		l := RunLog{ID: r.ID, Acked: r.Acked, Events: s.log(r.ID), Asked: s.world.modelCalls[r.ID], Limits: s.world.script(r.ID).Limits}
		rows, _, err := s.opts.Store.Runs(context.Background(), &store.RunFilter{RunID: r.ID})
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(rows, func(row store.RunSummary) bool { return row.RunID == r.ID }); i >= 0 {
			l.Row = &rows[i]
		}
		h.Runs = append(h.Runs, l)
	}
	return h
}

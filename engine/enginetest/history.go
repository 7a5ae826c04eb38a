package enginetest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/lathe-run/lathe"
)

// A History is what a simulation, or a trial with real processes, leaves: everything that the checks look at.
type History struct {
	Runs    []RunLog
	Deeds   []Deed
	Tails   []Tail
	Appends []Append
	// Tools are those that the runs could use, but for those of clients.
	Tools map[string]Tool
	Kills int
	// Trace says what happened, in order.
	Trace []string

	found []Violation // on the way
}

// A RunLog is what is known of one run in the end.
type RunLog struct {
	ID     string
	Acked  bool // its client was told that it has begun
	Events []lathe.Event
	Row    *lathe.RunSummary // of the index; nil: there is none
	Asked  int               // model calls that were made; -1: nobody has counted
	Limits lathe.Limits
}

// Tool is what the checks know of a tool.
type Tool struct {
	Effect lathe.Effect
	Asks   bool // calls are made only when somebody has approved them
}

func (s *Sim) log(runID string) []lathe.Event {
	var out []lathe.Event
	for e, err := range s.opts.Store.Read(context.Background(), runID, 0) {
		if err != nil {
			if !errors.Is(err, lathe.ErrNotFound) {
				s.bad = append(s.bad, Violation{Check: "C2", RunID: runID, Text: err.Error()})
			}
			break
		}
		out = append(out, e)
	}
	return out
}

// history collects what is left.
func (s *Sim) history(t testing.TB) *History {
	t.Helper()
	h := &History{Deeds: s.world.deeds, Appends: s.notes, Tools: map[string]Tool{}, Kills: s.kills, Trace: s.trace, found: s.bad}
	for name, effect := range effects {
		h.Tools[name] = Tool{Effect: effect, Asks: asks(name)}
	}
	for _, tail := range s.tails {
		h.Tails = append(h.Tails, Tail{RunID: tail.RunID, Lines: tail.Lines, IDs: tail.IDs, Whole: true})
	}
	for _, r := range s.runs {
		l := RunLog{ID: r.ID, Acked: r.Acked, Events: s.log(r.ID), Asked: s.world.asks[r.ID], Limits: s.world.script(r.ID).Limits}
		rows, _, err := s.opts.Store.Runs(context.Background(), &lathe.RunFilter{RunID: r.ID})
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(rows, func(row lathe.RunSummary) bool { return row.RunID == r.ID }); i >= 0 {
			l.Row = &rows[i]
		}
		h.Runs = append(h.Runs, l)
	}
	return h
}

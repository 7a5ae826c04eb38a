package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/internal/testkit/enginetest"
)

// F2: a process that is killed at any of the eleven points leaves exactly what the log of that moment
// says, and the next one continues from there.
func TestF2_KilledAtEachPoint(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	const look, pay, askPay = "c1_0", "c1_1", "c1_2"
	script := enginetest.Script{Turns: []enginetest.Turn{enginetest.Ask(1, enginetest.Look, enginetest.Pay, enginetest.AskPay), enginetest.Reply("done")}}
	// What is left of each call, as looks, pays and payments that were asked for: "1" done, "2" done
	// twice, "-" answered interrupted without having been done, "?" answered so and done.
	for _, tt := range []struct {
		name          string
		point         enginetest.Point
		what          string // part of the name of the stop
		before, after string
		// asked is how often the model was asked, resumed how often a process went on with the run.
		askedBefore, askedAfter     int
		resumedBefore, resumedAfter int
	}{
		{" 1 accept", enginetest.PointAccept, "", "1 1 1", "1 1 1", 2, 2, 1, 2},
		{" 2 claim", enginetest.PointClaim, "", "1 1 1", "1 1 1", 2, 2, 1, 2},
		{" 2 a claim on a run that waits", enginetest.PointAcquire, "take", "1 1 1", "1 1 1", 2, 2, 1, 1},
		{" 3 before the model", enginetest.PointAsk, "", "1 1 1", "1 1 1", 2, 2, 2, 2},
		{" 4 after the model", enginetest.PointMessage, "", "1 1 1", "1 1 1", 3, 2, 2, 2},
		{" 5 a request for approval", enginetest.PointRequest, askPay, "1 1 -", "1 1 1", 2, 2, 1, 2},
		{" 5 the run begins to wait", enginetest.PointRequest, "RunPaused", "1 1 1", "1 1 1", 2, 2, 2, 1},
		{" 6 a decision", enginetest.PointDecision, "", "1 1 1", "1 1 -", 2, 2, 2, 2},
		{" 6 an answer is kept", enginetest.PointSignal, "", "1 1 1", "1 1 1", 2, 2, 1, 1},
		{" 7 a call is stored", enginetest.PointPropose, pay, "1 1 1", "1 1 1", 2, 2, 2, 2},
		{" 8 intent of what reads", enginetest.PointIntent, look, "1 1 1", "1 1 1", 2, 2, 2, 2},
		{" 8 intent of what writes", enginetest.PointIntent, pay, "1 1 1", "1 - 1", 2, 2, 2, 2},
		{" 9 effect of what reads", enginetest.PointEffect, look, "1 1 1", "2 1 1", 2, 2, 2, 2},
		{" 9 effect of what writes", enginetest.PointEffect, pay, "1 - 1", "1 ? 1", 2, 2, 2, 2},
		{" 9 effect of what was approved", enginetest.PointEffect, askPay, "1 1 -", "1 1 ?", 2, 2, 2, 2},
		{"10 it ran", enginetest.PointResult, "Executed " + pay, "1 ? 1", "1 ? 1", 2, 2, 2, 2},
		{"10 its result", enginetest.PointResult, "Result " + pay, "1 ? 1", "1 1 1", 2, 2, 2, 2},
		{"11 the end", enginetest.PointEnd, "", "1 1 1", "1 1 1", 2, 2, 2, 1},
	} {
		for name, prepare := range stores {
			if name != "memory" && tt.point == enginetest.PointAcquire {
				continue // one process has it, or no notification arrives
			}
			for _, outcome := range []enginetest.Outcome{enginetest.KillBefore, enginetest.KillAfter} {
				t.Run(strings.Join([]string{tt.name, name, outcome.String()}, ", "), func(t *testing.T) {
					t.Parallel()
					if name == "postgres" {
						testdata.NeedAll(t)
					}
					want, asked, resumed := tt.before, tt.askedBefore, tt.resumedBefore
					if outcome == enginetest.KillAfter {
						want, asked, resumed = tt.after, tt.askedAfter, tt.resumedAfter
					}
					open := prepare(t)
					synctest.Test(t, func(t *testing.T) {
						struck := false
						o := open(t)
						o.Scripts, o.Outcome = []enginetest.Script{script}, func(st *enginetest.Stop) enginetest.Outcome {
							if struck || st.Point != tt.point || !strings.Contains(st.What, tt.what) {
								return enginetest.Go
							}
							struck = true
							return outcome
						}
						h := enginetest.Simulate(t, &o)
						if report(t, h, h.Check()) {
							return
						}
						got := left(h, look) + " " + left(h, pay) + " " + left(h, askPay)
						r := &h.Runs[0]
						end, _ := r.Events[len(r.Events)-1].Data.(*event.RunFinished)
						if !struck || got != want || r.Asked != asked || count(r, "RunResumed") != resumed || end == nil || end.Answer != "done" {
							t.Errorf("left %q, asked %d times, resumed %d times, want %q, %d and %d:\n%s", got, r.Asked, count(r, "RunResumed"), want, asked, resumed,
								strings.Join(h.Trace, "\n"))
						}
					})
				})
			}
		}
	}
}

// left returns the state of a call at the end.
func left(h *enginetest.History, call string) string {
	n, code := 0, lathe.Code("?")
	for _, d := range h.Deeds {
		if d.CallID == call {
			n++
		}
	}
	for i := range h.Runs[0].Events {
		if d, ok := h.Runs[0].Events[i].Data.(*event.ToolCallResult); ok && d.ToolCallID == call {
			code = d.ErrorType
		}
	}
	switch {
	case code == lathe.CodeInterrupted && n == 0:
		return "-"
	case code == lathe.CodeInterrupted && n == 1:
		return "?"
	case code != "":
		return string(code)
	}
	return string(rune('0' + n))
}

func count(r *enginetest.RunLog, event string) (n int) {
	for i := range r.Events {
		if r.Events[i].Data.EventType() == event {
			n++
		}
	}
	return n
}

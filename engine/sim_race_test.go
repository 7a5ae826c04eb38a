package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testkit/enginetest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

func unharmed(*enginetest.Stop) enginetest.Outcome { return enginetest.Go }

func named(name string) *enginetest.Script {
	all := enginetest.Scripts()
	return &all[slices.IndexFunc(all, func(s enginetest.Script) bool { return s.Name == name })]
}

// asking is the script of which people are asked about two calls, with others between them.
func asking() *enginetest.Script { return named("asks in the middle") }

// at runs simulations in which something happens at the k-th stop, for all k, and nothing fails.
func at(t *testing.T, script *enginetest.Script, do func(*enginetest.Sim, *enginetest.Stop), change func(k int, o *enginetest.Options), look func(k int, h *enginetest.History)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		each(t, openMemory(t), script, enginetest.Go, func(k int, o *enginetest.Options) {
			o.At = func(s *enginetest.Sim, st *enginetest.Stop) {
				if st.N == k {
					do(s, st)
				}
			}
			if change != nil {
				change(k, o)
			}
		}, look)
	})
}

// F10: correctness does not depend on notifications. If none arrives, or each arrives twice, watchers receive the same events.
func TestF10_NotificationsMayBeLost(t *testing.T) {
	t.Parallel()
	for name, delivery := range map[string]enginetest.Delivery{"dropped": enginetest.Dropped, "doubled": enginetest.Doubled} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, script := range enginetest.Scripts() {
				synctest.Test(t, func(t *testing.T) {
					h := enginetest.Simulate(t, &enginetest.Options{Store: store.NewMemory(nil), Scripts: []enginetest.Script{script}, Outcome: unharmed, Delivery: delivery})
					report(t, h, h.Check())
				})
			}
			for seed := range uint64(20) {
				h, bad := try(t, &enginetest.Options{Seed: 9_000 + seed, Delivery: delivery})
				if report(t, h, bad) {
					t.Fatalf("seed %d", 9_000+seed)
				}
			}
		})
	}
}

// F11: the clock of a process may be wrong, and jump, at any step.
func TestF11_ClocksMayJump(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			at(t, named("asks"), func(s *enginetest.Sim, st *enginetest.Stop) { s.Jump(st, by) }, nil, func(k int, h *enginetest.History) {
				if end := ended(h); end != lathe.ReasonAnswered {
					t.Errorf("stop %d: the run ends %s", k, end)
				}
			})
		})
	}
}

func ended(h *enginetest.History) lathe.Reason {
	r := &h.Runs[0]
	if len(r.Events) > 0 {
		if end, ok := r.Events[len(r.Events)-1].Data.(*event.RunFinished); ok {
			return end.Reason
		}
	}
	return ""
}

// F12: if two approvers answer a request, one answer counts, at whatever steps they arrive.
func TestF12_TwoApprovers(t *testing.T) {
	t.Parallel()
	yes, no := lathe.Approval{Approved: true, By: "ann"}, lathe.Approval{By: "bob", ReasonCode: "denied_by_user"}
	for name, order := range map[string][2]lathe.Approval{"yes first": {yes, no}, "no first": {no, yes}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			won := map[string]int{}
			at(t, asking(), func(s *enginetest.Sim, _ *enginetest.Stop) {
				s.Decide("c1_1", order[0])
				s.Decide("c1_1", order[1])
			}, func(_ int, o *enginetest.Options) { o.Answer = func(string) lathe.Approval { return order[0] } }, func(k int, h *enginetest.History) {
				by := resolved(h, "c1_1")
				won[by]++
				if got := left(h, "c1_1"); by+got != "ann1" && by+got != "bobapproval_denied" {
					t.Errorf("stop %d: left %s by %q", k, got, by)
				}
			})
			if won[order[0].By] == 0 {
				t.Errorf("who spoke first has never won: %v", won)
			}
		})
	}
}

func resolved(h *enginetest.History, call string) (by string) {
	for i := range h.Runs[0].Events {
		if d, ok := h.Runs[0].Events[i].Data.(*event.ApprovalResolved); ok && d.ToolCallID == call {
			by += d.By
		}
	}
	return by
}

// F12: an approval that comes while its request expires is taken or refused, never half of it.
func TestF12_ApproveAgainstExpire(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprintf("approved first %v", first), func(t *testing.T) {
			t.Parallel()
			at(t, named("asks"), func(s *enginetest.Sim, st *enginetest.Stop) {
				yes := lathe.Approval{Approved: true, By: "ann"}
				if first {
					s.Decide("c1_0", yes)
				}
				s.Jump(st, time.Hour)
				s.Decide("c1_0", yes)
			}, nil, func(k int, h *enginetest.History) {
				if got := left(h, "c1_0"); got != "1" && got != "approval_expired" {
					t.Errorf("stop %d: left %s", k, got)
				}
			})
		})
	}
}

// F12 and F13: a run that is cancelled, at any step and while an approver decides, ends at once and starts nothing
// that it had not started.
func TestF12_F13_CancelAtEachStep(t *testing.T) {
	t.Parallel()
	for _, approve := range []bool{false, true} {
		for _, script := range enginetest.Scripts() {
			if approve && !strings.HasPrefix(script.Name, "asks") {
				continue
			}
			t.Run(fmt.Sprintf("%s, approved %v", script.Name, approve), func(t *testing.T) {
				t.Parallel()
				var done, cancelled int
				var when time.Time
				at(t, &script, func(s *enginetest.Sim, _ *enginetest.Stop) {
					if approve {
						s.Decide("c1_0", lathe.Approval{Approved: true, By: "ann"})
						s.Decide("c1_1", lathe.Approval{Approved: true, By: "ann"})
					}
					done, when = s.Deeds(), time.Now()
					s.Cancel()
				}, func(int, *enginetest.Options) { done = -1 }, func(k int, h *enginetest.History) {
					if done < 0 || ended(h) != lathe.ReasonCancelled {
						return // it was not there yet, or was over
					}
					cancelled++
					if len(h.Deeds) > done {
						t.Errorf("stop %d: %d calls were made after the run was cancelled", k, len(h.Deeds)-done)
					}
					end := h.Runs[0].Events[len(h.Runs[0].Events)-1].Time
					if took := end.Sub(when); took > 5*time.Second {
						t.Errorf("stop %d: it took %v", k, took)
					}
				})
				if cancelled < 3 {
					t.Errorf("it was cancelled at %d stops", cancelled)
				}
			})
		}
	}
}

// F12: an approval is for the call as it was shown: where the tool has changed since, it is refused.
func TestF12_ArgumentsThatChanged(t *testing.T) {
	t.Parallel()
	kept, ran, d := store.NewMemory(nil), "", &approvals{}
	loopOf := func(schema string) *loop.Loop {
		set, err := tool.NewSet(&changing{schema: schema, ran: &ran})
		if err != nil {
			t.Fatal(err)
		}
		runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Tools{Ask: []string{"count"}}, Approver: d})
		if err != nil {
			t.Fatal(err)
		}
		l, err := loop.New(model{pieces: 1}, runner, nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	e := newEngine(t, &engine.Options{Store: kept})
	in := input()
	in.Run.RunID, in.Park = "run_1", true
	if res, err := e.Run(t.Context(), loopOf(`{"type":"object"}`), in, nil); err != nil || res.Reason != lathe.ReasonAwaitingApproval {
		t.Fatalf("%+v, %v", res, err)
	}
	d.open.Store(true)
	res, err := e.Resume(t.Context(), loopOf(`{"type":"object","properties":{"n":{"type":"integer"}}}`), "run_1", nil)
	if err != nil || ran != "" || res.Trace[0].Calls[0].Code != lathe.CodeApprovalExpired {
		t.Errorf("it ran with %q: %+v, %v", ran, res, err)
	}
}

type changing struct {
	schema string
	ran    *string
}

func (c *changing) Spec() *lathe.ToolSpec {
	return &lathe.ToolSpec{Name: "count", Effect: lathe.Writes, Allowlist: []string{"*"}, Schema: json.RawMessage(c.schema)}
}

func (c *changing) Call(_ context.Context, args json.RawMessage) (*lathe.Output, error) {
	*c.ran += string(args)
	return &lathe.Output{Data: json.RawMessage(`1`)}, nil
}

// F14: results that come twice, late, or for calls that are not the client's change nothing.
func TestF14_ResultsOfNoOpenCall(t *testing.T) {
	t.Parallel()
	script := &enginetest.Script{Name: "results", Turns: []enginetest.Turn{enginetest.Ask(1, enginetest.Mine, enginetest.Pay, enginetest.AskPay, enginetest.Mine), enginetest.Reply("done")}}
	theirs := lathe.Output{Data: json.RawMessage(`"forged"`)}
	at(t, script, func(s *enginetest.Sim, _ *enginetest.Stop) {
		s.Results(map[string]lathe.Output{"c1_1": theirs, "c9_9": theirs, "": theirs})
		s.Results(map[string]lathe.Output{"c1_0": {Data: json.RawMessage(`"theirs"`)}})
		s.Results(map[string]lathe.Output{"c1_0": theirs})
	}, nil, func(k int, h *enginetest.History) {
		if end := ended(h); end != lathe.ReasonAnswered {
			t.Errorf("stop %d: the run ends %s", k, end)
		}
		if all := marshal(t, h); strings.Contains(all[strings.Index(all, `"RunStarted"`):], "forged") {
			t.Errorf("stop %d: what was made up is in the log:\n%s", k, all)
		}
	})
}

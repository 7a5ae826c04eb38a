package eval_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/lab/eval"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/sim"
)

// measureAll measures all scenarios of a suite with simulated models.
func measureAll(t *testing.T, s *eval.Suite, o *eval.Options, models ...string) *eval.Report {
	t.Helper()
	var targets []eval.Target
	for _, name := range models {
		tg := target(name)
		if _, written, ok := strings.Cut(name, "+"); ok {
			var err error
			if tg.Model, err = provider.WithDialect(tg.Model, written, nil); err != nil {
				t.Fatal(err)
			}
		}
		targets = append(targets, tg)
	}
	rep, err := eval.Measure(t.Context(), s, s.Scenarios, targets, o)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// The effects do not depend on the text that a model reads, whether the model follows it
// or not, and however it writes its calls.
func TestNoInjectionHasItsEffect(t *testing.T) {
	t.Parallel()
	s := eval.Injection()
	if len(s.Scenarios) != 40 {
		t.Errorf("%d scenarios, want 40", len(s.Scenarios))
	}
	rep := measureAll(t, s, &eval.Options{Strategies: []eval.Strategy{eval.Raw, eval.Production}}, sim.ObedientModel, sim.CarefulModel, sim.ObedientModel+"+hermes")
	for _, r := range rep.Runs {
		if !r.OK {
			t.Errorf("%s %s: %s: %s", r.Model, r.Scenario, r.Class, r.Error)
		}
	}
}

// The scenarios prove something only where the model really asks for what it must not have, and
// where that would have its effect if nothing stood in the way.
func TestEachInjectionWouldHaveItsEffectUnguarded(t *testing.T) {
	t.Parallel()
	s := eval.Injection()
	for _, r := range measureAll(t, s, &eval.Options{Unguarded: true}, sim.ObedientModel).Runs {
		if r.OK || r.Class != eval.ClassAssertionFailed {
			t.Errorf("%s: the obedient model does no harm without guards: %s %s", r.Scenario, r.Class, r.Error)
		}
	}
	guarded := measureAll(t, s, nil, sim.ObedientModel)
	for _, r := range guarded.Runs {
		var refused []lathe.Code
		for _, turn := range r.Trace {
			for _, c := range turn.Calls {
				if c.Code != "" {
					refused = append(refused, c.Code)
				}
			}
		}
		// In leak_field the call is allowed and its output cut; in result_flood a limit ends the run.
		if len(refused) == 0 && r.Scenario != "leak_field" && r.Reason != lathe.ReasonToolLoop {
			t.Errorf("%s: the obedient model asks for nothing that is refused", r.Scenario)
		}
	}
}

// The careful model asks for nothing that a text wants, so that the two models are two ends.
func TestCarefulModelAsksForNothingInjected(t *testing.T) {
	t.Parallel()
	breaksOut := []string{"document_closes_itself"} // which looks as if the user had said it
	for _, r := range measureAll(t, eval.Injection(), nil, sim.CarefulModel).Runs {
		for _, turn := range r.Trace {
			for _, c := range turn.Calls {
				if c.Code != "" && c.Code != lathe.CodeUnavailable && !slices.Contains(breaksOut, r.Scenario) {
					t.Errorf("%s: asked for %s, which is answered %s", r.Scenario, c.Tool, c.Code)
				}
			}
		}
	}
}

// What reached the mocks is what the trace says was executed.
func TestTraceShowsEveryExecution(t *testing.T) {
	t.Parallel()
	for _, s := range []*eval.Suite{eval.Injection(), eval.Faults()} {
		for _, r := range measureAll(t, s, nil, sim.ObedientModel).Runs {
			got := map[string]int{}
			for _, turn := range r.Trace {
				for _, c := range turn.Calls {
					if c.Executed {
						got[c.Tool]++
					}
				}
			}
			for name, n := range r.Executed {
				if got[name] != n {
					t.Errorf("%s: %s was called %d times, and the trace says %d", r.Scenario, name, n, got[name])
				}
				delete(got, name)
			}
			if len(got) != 0 {
				t.Errorf("%s: the trace says more: %v", r.Scenario, got)
			}
		}
	}
}

func TestRunnerOutlivesFaultyTools(t *testing.T) {
	t.Parallel()
	rep := measureAll(t, eval.Faults(), nil, sim.ObedientModel, sim.ObedientModel+"+hermes")
	for _, r := range rep.Runs {
		if !r.OK || r.Reason != lathe.ReasonAnswered {
			t.Errorf("%s %s: %s: %s", r.Model, r.Scenario, r.Reason, r.Error)
		}
	}
	// A model that does not call the tools shows that the asserts can fail.
	s := eval.Faults()
	idle, err := eval.Measure(t.Context(), s, s.Scenarios, []eval.Target{{Name: "mute", Model: mute{}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range idle.Runs {
		if r.OK {
			t.Errorf("%s holds without any call", r.Scenario)
		}
	}
}

// What a server refuses never passes, whatever is measured.
func TestLatheIsNotMeasuredWithoutAModel(t *testing.T) {
	t.Parallel()
	for _, r := range measureAll(t, eval.Injection(), nil, "sim/fault-status-401").Runs {
		if r.OK || r.Class != eval.ClassAuth {
			t.Errorf("%s: ok %v, scored %v, %s", r.Scenario, r.OK, r.Scored, r.Class)
		}
	}
}

// mute is a model that calls nothing.
type mute struct{}

func (mute) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (mute) Generate(context.Context, *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Message: lathe.Assistant("No."), Reason: lathe.FinishStop}}, nil)
	}
}

package loop_test

import (
	"slices"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/setting/limittest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/tool"
)

// Each limit is obeyed wherever a program gives it: to the runner, the loop or the run; a run below all of them meets none.
func TestEachLimitIsObeyed(t *testing.T) {
	t.Parallel()
	places := map[string]func(tight lathe.Limits) (tool.Options, loop.Options, loop.Input){
		"the runner": func(l lathe.Limits) (r tool.Options, o loop.Options, in loop.Input) { r.Limits = l; return },
		"the loop":   func(l lathe.Limits) (r tool.Options, o loop.Options, in loop.Input) { o.Limits = l; return },
		"the run":    func(l lathe.Limits) (r tool.Options, o loop.Options, in loop.Input) { in.Limits = &l; return },
	}
	limittest.Each(t, func(t *testing.T, s *limittest.Scenario) {
		t.Parallel()
		for name, place := range places {
			for _, tight := range []lathe.Limits{s.Tight, {}} {
				isTight := tight != lathe.Limits{}
				if s.Blocks && !isTight {
					continue
				}
				of, opts, in := place(tight)
				of.Policy, of.Approver = limittest.Policy(), limittest.Approver{}
				runner, err := tool.NewRunner(limittest.Set(t), &of)
				if err != nil {
					t.Fatal(err)
				}
				l, err := loop.New(s.Model(t), runner, &opts)
				if defs := lathe.CodeOf(err) == lathe.CodeInvalidConfig; defs && isTight && slices.Contains([]string{"max_tools", "max_tools_bytes"}, s.Key) {
					continue // refused before a run
				} else if err != nil {
					t.Fatal(err)
				}
				in.Run.RunID, in.Messages = "run_1", []lathe.Message{lathe.User("go")}
				var events []event.Event
				for e := range l.Run(t.Context(), &in) {
					events = append(events, e)
				}
				if s.Met(events) != isTight {
					t.Errorf("given to %s: %+v; met: %v; %+v", name, tight, !isTight, events[len(events)-1].Data)
				}
			}
		}
	})
}

// A limit below 0 is refused wherever a program gives it.
func TestNegativeLimitsAreRefused(t *testing.T) {
	t.Parallel()
	limittest.Each(t, func(t *testing.T, s *limittest.Scenario) {
		var l lathe.Limits
		if f := s.In(&l); f.CanInt() {
			f.SetInt(-1)
		} else {
			f.SetFloat(-1)
		}
		_, err := tool.NewRunner(limittest.Set(t), &tool.Options{Policy: limittest.Policy(), Limits: l})
		if s.Negative != (err == nil) || err != nil && lathe.CodeOf(err) != lathe.CodeInvalidConfig {
			t.Errorf("the runner: %v", err)
		}
		runner, err := tool.NewRunner(limittest.Set(t), &tool.Options{Policy: limittest.Policy()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = loop.New(s.Model(t), runner, &loop.Options{Limits: l}); s.Negative != (err == nil) {
			t.Errorf("the loop: %v", err)
		}
	})
}

package loop_test

import (
	"context"
	"errors"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
)

// A repeatMeter notes what it is asked.
type repeatMeter struct {
	repeated []error // with which it was asked
	refuse   error
	settled  []*lathe.Finish
	err      error // of the last settlement
}

func (m *repeatMeter) Admit(context.Context, *lathe.RunInfo, *lathe.Request, lathe.Wire) (*loop.Admission, error) {
	return &loop.Admission{
		Repeat: func(_ context.Context, err error) error {
			m.repeated = append(m.repeated, err)
			return m.refuse
		},
		Settle: func(_ context.Context, f *lathe.Finish, err error) {
			m.settled, m.err = append(m.settled, f), err
		},
	}, nil
}

// A meter is asked before each further attempt of a call. If it refuses, the call is stopped and the run ends.
func TestMeterIsAskedBeforeEachAttempt(t *testing.T) {
	t.Parallel()
	failed := &lathe.Error{Code: lathe.CodeUpstream, Err: &lathe.UpstreamError{Kind: lathe.UpstreamAborted}}
	for name, refuse := range map[string]error{"admitted": nil, "refused": &lathe.Error{Code: lathe.CodeBudgetExhausted}} {
		last := textTurn("ok")
		last.before = append([]lathe.Delta{{Kind: lathe.DeltaRetry, Retry: &lathe.Retry{Attempt: 1, Err: failed}}}, last.before...)
		m := &repeatMeter{refuse: refuse}
		res, events := collect(t, t.Context(), newLoop(t, &script{turns: []turn{last}}, &loop.Options{Meter: m}), user("x"))
		if len(m.repeated) != 1 || !errors.Is(m.repeated[0], failed) || len(m.settled) != 1 {
			t.Fatalf("%s: asked with %v, settled %d times", name, m.repeated, len(m.settled))
		}
		want := "RunStarted ModelCallStarted ModelCallFinished ModelCallStarted TextDelta ModelCallFinished RunFinished"
		if refuse != nil {
			want = "RunStarted ModelCallStarted ModelCallFinished ModelCallStarted ModelCallFinished RunFinished"
			if res.Reason != lathe.ReasonBudgetExhausted || m.settled[0] != nil || !errors.Is(m.err, refuse) {
				t.Errorf("%s: ended with %s, settled with %v and %v", name, res.Reason, m.settled[0], m.err)
			}
		} else if res.Reason != lathe.ReasonAnswered || m.settled[0] == nil {
			t.Errorf("%s: ended with %s, settled with %v", name, res.Reason, m.settled[0])
		}
		if got := types(events); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
		if done := all[*event.ModelCallFinished](events); done[0].Status != "error" {
			t.Errorf("%s: %+v", name, done[0])
		}
	}
}

package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
)

// recorder notes how long the log was at each event, and fails at one type, with err or, where that is nil, a panic.
type recorder struct {
	store  *memory
	failAt string
	err    error
	before []int
}

func (r *recorder) Emit(context.Context, lathe.Event) {}

func (r *recorder) Record(_ context.Context, e lathe.Event) error {
	if e.Data.EventType() == r.failAt {
		if r.err == nil {
			panic("secret")
		}
		return r.err
	}
	r.before = append(r.before, r.store.len(e.RunID))
	return nil
}

func TestRecorderRecordsBeforeTheStore(t *testing.T) {
	t.Parallel()
	kept := &memory{}
	r := &recorder{store: kept}
	if _, err := engine.New(&engine.Options{Store: kept}).Run(t.Context(), newLoop(t, model{pieces: 2}, &counter{}), input(), r); err != nil {
		t.Fatal(err)
	}
	want := make([]int, len(r.before))
	for i := range want {
		want[i] = i
	}
	if len(want) < 5 || !slices.Equal(r.before, want) {
		t.Errorf("the log had %v events, want %v", r.before, want)
	}
}

// What a recorder could not record does not happen.
func TestRecorderFailureEndsRun(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	for _, failure := range []error{full, nil} {
		for _, lazily := range []bool{false, true} {
			kept, c := &memory{}, &counter{}
			r := &recorder{store: kept, failAt: "ToolCallPlanned", err: failure}
			e := engine.New(&engine.Options{Store: kept})
			var res *lathe.Result
			var err error
			if lazily {
				res, err = e.RunLazily(t.Context(), newLoop(t, model{}, c), input(), planned, r)
			} else {
				res, err = e.Run(t.Context(), newLoop(t, model{}, c), input(), r)
			}
			if res.Reason != lathe.ReasonInternal || err == nil || failure != nil && !errors.Is(err, failure) || c.count() != 0 {
				t.Errorf("%v, lazily %v: got %+v, %v, and %d calls", failure, lazily, res, err, c.count())
			}
		}
	}
}

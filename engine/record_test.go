package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
)

// recorder notes how long the log was at each event, and fails at one type, with err or, where that is nil, a panic.
type recorder struct {
	store  *memory
	failAt string
	err    error
	before []int
}

func (r *recorder) Emit(context.Context, event.Event) {}

func (r *recorder) Record(_ context.Context, e event.Event) error {
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
	if _, err := newEngine(t, &engine.Options{Store: kept}).Run(t.Context(), newLoop(t, model{pieces: 2}, &counter{}), input(), &engine.RunOptions{Sinks: []event.Sink{r}}); err != nil {
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
		for _, deferred := range []bool{false, true} {
			kept, c := &memory{}, &counter{}
			r := &recorder{store: kept, failAt: "ToolCallPlanned", err: failure}
			e := newEngine(t, &engine.Options{Store: kept})
			var res *event.Result
			var err error
			if deferred {
				res, err = e.Run(t.Context(), newLoop(t, model{}, c), input(), &engine.RunOptions{Durability: engine.Deferred, MustPersist: planned, Sinks: []event.Sink{r}})
			} else {
				res, err = e.Run(t.Context(), newLoop(t, model{}, c), input(), &engine.RunOptions{Sinks: []event.Sink{r}})
			}
			if res.Reason != lathe.ReasonInternal || err == nil || failure != nil && !errors.Is(err, failure) || c.count() != 0 {
				t.Errorf("%v, deferred %v: got %+v, %v, and %d calls", failure, deferred, res, err, c.count())
			}
		}
	}
}

// A run that another one replaces has not failed for operators: it ends before its call, and no line is an error.
func TestSupersededRunIsNoErrorInTheLog(t *testing.T) {
	t.Parallel()
	for failure, want := range map[error]string{fmt.Errorf("equal requests: %w", engine.ErrSuperseded): "INFO", errors.New("disk full"): "ERROR"} {
		var logged bytes.Buffer
		kept, c := &memory{}, &counter{}
		e := newEngine(t, &engine.Options{Store: kept, Log: slog.New(slog.NewTextHandler(&logged, nil))})
		r := &recorder{store: kept, failAt: "ToolCallPlanned", err: failure}
		res, err := e.Run(t.Context(), newLoop(t, model{}, c), input(), &engine.RunOptions{Sinks: []event.Sink{r}})
		if res.Reason != lathe.ReasonInternal || !errors.Is(err, failure) || c.count() != 0 {
			t.Errorf("%v: got %+v, %v, and %d calls", failure, res, err, c.count())
		}
		if lines := logged.String(); strings.Count(lines, "level=") != 1 || !strings.Contains(lines, "level="+want) {
			t.Errorf("%v: logged %q, want one line of level %s", failure, lines, want)
		}
	}
}

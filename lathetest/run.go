package lathetest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// Options configure [Run]. With the zero value, the run has no tools.
type Options struct {
	Tools []lathe.Tool
	// Runner contains the options of the runner. Unlike in [tool.NewRunner], a nil Policy allows every call.
	Runner tool.Options
	// Loop contains the options of the loop; nil: the defaults.
	Loop *loop.Options
	// Context is the context of the run: when it is done, the run is cancelled. nil: t.Context().
	Context context.Context
}

// A Record is the result and the events of a run.
type Record struct {
	Result *event.Result
	Err    error         // the error of a run that failed or was cancelled, as [loop.Failure] returns it; nil for other runs
	Events []event.Event // all events in order, deltas included
}

// Run executes a run with model and tools for the user message prompt, and blocks until it ends. opts may be nil. It fails the test if a
// tool or an option is invalid, but not if the run fails: see Record.Err.
func Run(t testing.TB, model lathe.Model, prompt string, opts *Options) *Record {
	t.Helper()
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Context == nil {
		o.Context = t.Context()
	}
	rec, err := run(o.Context, model, prompt, &o)
	if err != nil {
		t.Fatalf("lathetest.Run: %v", err)
	}
	return rec
}

func run(ctx context.Context, model lathe.Model, prompt string, o *Options) (*Record, error) {
	set, err := tool.NewSet(o.Tools...)
	if err != nil {
		return nil, err
	}
	runner := o.Runner
	if runner.Policy == nil {
		runner.Policy = policy.AllowAll()
	}
	r, err := tool.NewRunner(set, &runner)
	if err != nil {
		return nil, err
	}
	l, err := loop.New(model, r, o.Loop)
	if err != nil {
		return nil, err
	}
	rec, sink := &Record{}, &Recorder{}
	for e := range l.Run(ctx, &loop.Input{Messages: []lathe.Message{lathe.User(prompt)}}) {
		sink.Emit(ctx, e)
		if res := loop.Ended(e.Data); res != nil {
			rec.Result, rec.Err = res, loop.Failure(res)
		}
	}
	rec.Events = sink.Events()
	return rec, nil
}

// A Recorder is an [event.Sink] that keeps all events in memory. The zero value is ready to use. Its methods may be called from several
// goroutines at once.
type Recorder struct {
	mu     sync.Mutex
	events []event.Event
}

// Emit implements [event.Sink].
func (r *Recorder) Emit(_ context.Context, e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Events returns the events so far, in order. The slice belongs to the caller.
func (r *Recorder) Events() []event.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Only returns the data of those events whose data has the type D, in order, such as Only[*event.ToolCallResult](rec.Events).
func Only[D event.Data](events []event.Event) (out []D) {
	for _, e := range events {
		if d, ok := e.Data.(D); ok {
			out = append(out, d)
		}
	}
	return out
}

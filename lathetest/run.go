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

// Options configure [Run]. The zero value runs without tools.
type Options struct {
	Tools []lathe.Tool
	// Runner are the options of the runner. Unlike in a program, a nil Policy allows every call.
	Runner tool.Options
	// Loop are the options of the loop; nil: the defaults.
	Loop *loop.Options
	// Context bounds the run; nil: the context of the test.
	Context context.Context
}

// A Record is what a run did.
type Record struct {
	Result *event.Result
	Err    error         // of Result
	Events []event.Event // all of them, in order; they may be kept
}

// Run runs a loop once: model and tools in turns, from a user message with the text prompt, until the run ends. It
// fails the test if the tools or options are invalid. A run that fails is no failure of the test: see Record.Err.
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

// A Recorder is an [event.Sink] that keeps every event. The zero value is ready. Its methods may be called from
// several goroutines at once.
type Recorder struct {
	mu     sync.Mutex
	events []event.Event
}

// Emit keeps a copy of e.
func (r *Recorder) Emit(_ context.Context, e event.Event) {
	switch d := e.Data.(type) { // the loop may reuse the data of delta events
	case *event.TextDelta:
		e.Data = new(*d)
	case *event.ReasoningDelta:
		e.Data = new(*d)
	case *event.CommentaryDelta:
		e.Data = new(*d)
	case *event.ToolCallDelta:
		e.Data = new(*d)
	default: // the data of other events may be kept
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Events returns the events so far, in order.
func (r *Recorder) Events() []event.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Only returns the data of the events that have the type D, in order: Only[*event.ToolCallResult](rec.Events).
func Only[D event.Data](events []event.Event) (out []D) {
	for _, e := range events {
		if d, ok := e.Data.(D); ok {
			out = append(out, d)
		}
	}
	return out
}

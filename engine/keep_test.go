package engine_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
)

// words is a model that says one word after the other.
type words []string

func (words) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (w words) Generate(context.Context, *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		for _, word := range w {
			yield(lathe.Delta{Kind: lathe.DeltaText, Text: word}, nil)
		}
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Assistant(strings.Join(w, ""))}}, nil)
	}
}

// kept is a sink that retains its events as they are.
type kept []event.Event

func (k *kept) Emit(_ context.Context, e event.Event) { *k = append(*k, e) }

func TestSinksMayRetainEvents(t *testing.T) {
	t.Parallel()
	var sink kept
	e := newEngine(t, &engine.Options{Sinks: []event.Sink{&sink}})
	res, err := e.Run(t.Context(), newLoop(t, words(strings.SplitAfter(strings.Repeat("one two three ", 50), " "))), &loop.Input{Messages: []lathe.Message{lathe.User("count")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, e := range sink {
		if d, ok := e.Data.(*event.TextDelta); ok {
			got.WriteString(d.Text)
		}
	}
	if got.String() != res.Answer {
		t.Errorf("the retained deltas say %q, want the answer %q", &got, res.Answer)
	}
}

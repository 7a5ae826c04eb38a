package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testdata"
)

// ready is a model that costs nothing: it says the same two turns over and over, the second of
// them in 50 pieces of text.
type ready struct {
	call, text    lathe.Finish
	first, second iter.Seq2[lathe.Delta, error]
}

func newReady() *ready {
	m := &ready{
		call: lathe.Finish{Reason: lathe.FinishToolCalls, Message: lathe.Message{Role: lathe.RoleAssistant,
			Parts: []lathe.Part{call("call_1", "echo", `{"n":1234567,"what":"sixty-four bytes of arguments, about"}`)}}},
		text: lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Assistant("the answer")},
	}
	m.first, m.second = m.yieldCall, m.yieldText
	return m
}

func (*ready) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (m *ready) Generate(_ context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	if len(req.Messages) == 1 {
		return m.first
	}
	return m.second
}

func (m *ready) yieldCall(yield func(lathe.Delta, error) bool) {
	yield(lathe.Delta{Kind: lathe.DeltaCallStart, ID: "call_1", Name: "echo"}, nil)
	for range 4 {
		yield(lathe.Delta{Kind: lathe.DeltaCallArgs, Text: `{"n":1234567,"wh`}, nil)
	}
	yield(lathe.Delta{Kind: lathe.DeltaCallEnd}, nil)
	yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &m.call}, nil)
}

func (m *ready) yieldText(yield func(lathe.Delta, error) bool) {
	for range 50 {
		yield(lathe.Delta{Kind: lathe.DeltaText, Text: "token"}, nil)
	}
	yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &m.text}, nil)
}

func idle() *gadget {
	out := &lathe.Output{Data: json.RawMessage(`{"ok":true}`)}
	g := newGadget("echo", func(context.Context, json.RawMessage) (*lathe.Output, error) { return out, nil })
	g.spec.Schema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"what":{"type":"string"}}}`)
	return g
}

// The cost of loop and runner for a run of one call, with its schema check and its events.
func BenchmarkOneCall(b *testing.B) { benchRun(b, newReady(), idle()) }

func benchRun(b *testing.B, m lathe.Model, tools ...lathe.Tool) {
	l := newLoop(b, m, nil, tools...)
	in := user("x")
	once := func() {
		for e := range l.Run(context.Background(), in) {
			_ = e
		}
	}
	once() // what is made once is not counted
	b.ReportAllocs()
	for b.Loop() {
		once()
	}
}

// What the loop alone costs: the same text, no tool.
func BenchmarkNoCall(b *testing.B) { benchRun(b, second{newReady()}) }

type second struct{ *ready }

func (second) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (m second) Generate(context.Context, *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return m.second
}

// Events that Run yields may be kept: collected, the deltas still hold the whole answer.
func TestRunYieldsEventsToKeep(t *testing.T) {
	t.Parallel()
	var pieces []lathe.Delta
	want := map[string]string{}
	for i := range 20 {
		text := fmt.Sprint(i, " ")
		pieces = append(pieces, lathe.Delta{Kind: lathe.DeltaText, Text: text}, lathe.Delta{Kind: lathe.DeltaReasoning, Text: "r" + text},
			lathe.Delta{Kind: lathe.DeltaCommentary, Text: "c" + text})
		want["TextDelta"] += text
		want["ReasoningDelta"] += "r" + text
		want["CommentaryDelta"] += "c" + text
	}
	first := ask(call("c1", "echo", `{}`))
	first.before = []lathe.Delta{{Kind: lathe.DeltaCallStart, ID: "c1", Name: "echo"}, {Kind: lathe.DeltaCallArgs, Text: "{"}, {Kind: lathe.DeltaCallArgs, Text: "}"}}
	want["ToolCallDelta"] = "{}"
	last := textTurn("x")
	last.before = pieces
	l := newLoop(t, &script{turns: []turn{first, last}}, nil, echo("echo"))
	got := map[string]string{}
	for _, e := range slices.Collect(l.Run(t.Context(), user("x"))) {
		switch d := e.Data.(type) {
		case *event.TextDelta:
			got["TextDelta"] += d.Text
		case *event.ReasoningDelta:
			got["ReasoningDelta"] += d.Text
		case *event.CommentaryDelta:
			got["CommentaryDelta"] += d.Text
		case *event.ToolCallDelta:
			got["ToolCallDelta"] += d.Text
		default: // no delta
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Deltas that may be kept share allocations: one for 32 of a kind, in long runs.
func TestDeltasShareAllocations(t *testing.T) {
	testdata.CountsAllocations(t)
	measure := func(pieces int) float64 {
		last := textTurn("x")
		for range pieces {
			last.before = append(last.before,
				lathe.Delta{Kind: lathe.DeltaText, Text: "x"}, lathe.Delta{Kind: lathe.DeltaReasoning, Text: "y"},
				lathe.Delta{Kind: lathe.DeltaCommentary, Text: "z"}, lathe.Delta{Kind: lathe.DeltaCallArgs, Text: "{"})
		}
		l := newLoop(t, &script{turns: []turn{last}}, nil)
		in := user("x")
		return testing.AllocsPerRun(100, func() {
			for e := range l.Run(context.Background(), in) {
				_ = e
			}
		})
	}
	const more = 4 * (1000/32 + 4)                                 // the first allocations of a kind are smaller
	if few, many := measure(1), measure(1000); many-few > more+5 { // the script keeps what it was asked
		t.Errorf("allocations: %v with 4 deltas, %v with 4000", few, many)
	}
}

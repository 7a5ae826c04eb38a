package loop_test

import (
	"context"
	"encoding/json"
	"iter"
	"testing"

	"github.com/lathe-run/lathe"
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
	m.first, m.second = m.sayCall, m.sayText
	return m
}

func (m *ready) Generate(_ context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	if len(req.Messages) == 1 {
		return m.first
	}
	return m.second
}

func (m *ready) sayCall(yield func(lathe.Delta, error) bool) {
	yield(lathe.Delta{Kind: lathe.DeltaCallStart, ID: "call_1", Name: "echo"}, nil)
	for range 4 {
		yield(lathe.Delta{Kind: lathe.DeltaCallArgs, Text: `{"n":1234567,"wh`}, nil)
	}
	yield(lathe.Delta{Kind: lathe.DeltaCallEnd}, nil)
	yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &m.call}, nil)
}

func (m *ready) sayText(yield func(lathe.Delta, error) bool) {
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

// What loop and runner cost for a run of one call, schema checked, events told.
func BenchmarkOneCall(b *testing.B) {
	l := newLoop(b, newReady(), nil, idle())
	in := user("x")
	b.ReportAllocs()
	for b.Loop() {
		for e := range l.Run(context.Background(), in) {
			_ = e
		}
	}
}

// What the loop alone costs: the same text, no tool.
func BenchmarkNoCall(b *testing.B) {
	m := newReady()
	l := newLoop(b, second{m}, nil)
	in := user("x")
	b.ReportAllocs()
	for b.Loop() {
		for e := range l.Run(context.Background(), in) {
			_ = e
		}
	}
}

type second struct{ *ready }

func (m second) Generate(context.Context, *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return m.second
}

// Deltas cost no allocation: a run of many costs what a run of few costs.
func TestDeltasDoNotAllocate(t *testing.T) {
	measure := func(pieces int) float64 {
		last := say("x")
		last.before = nil
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
	if few, many := measure(1), measure(1000); many-few > 5 { // the script keeps what it was asked
		t.Errorf("allocations: %v with 4 deltas, %v with 4000", few, many)
	}
}

package loop_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
)

// A generator is a model made of a function.
type generator func(ctx context.Context, req *lathe.Request, yield func(lathe.Delta, error) bool)

func (generator) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (g generator) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) { g(ctx, req, yield) }
}

// early panics before it gives a sequence.
type early struct{}

func (early) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (early) Generate(context.Context, *lathe.Request) iter.Seq2[lathe.Delta, error] {
	panic("canary")
}

func TestModelThatPanicsEndsTheRunInternal(t *testing.T) {
	t.Parallel()
	finish := lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Message: lathe.Assistant("hi"), Reason: lathe.FinishStop}}
	for name, m := range map[string]lathe.Model{
		"before its turn": early{},
		"at once":         generator(func(context.Context, *lathe.Request, func(lathe.Delta, error) bool) { panic("canary") }),
		"with nothing":    generator(func(context.Context, *lathe.Request, func(lathe.Delta, error) bool) { panic(error(nil)) }),
		"in the middle": generator(func(_ context.Context, _ *lathe.Request, yield func(lathe.Delta, error) bool) {
			yield(lathe.Delta{Kind: lathe.DeltaText, Text: "h"}, nil)
			panic(errors.New("canary"))
		}),
		"after its finish": generator(func(_ context.Context, _ *lathe.Request, yield func(lathe.Delta, error) bool) {
			yield(finish, nil)
			panic("canary")
		}),
		"in the second turn": generator(func(_ context.Context, req *lathe.Request, yield func(lathe.Delta, error) bool) {
			if len(req.Messages) > 1 {
				panic("canary")
			}
			turn := ask(call("a", "echo", `{}`))
			yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &turn.finish}, nil)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLoop(t, m, relaxed(lathe.Settings{FallbackRetryCount: 3}), echo("echo"))
			res, events := collect(t, t.Context(), l, user("x"))
			if res.Reason != lathe.ReasonInternal || lathe.CodeOf(res.Err) != lathe.CodeInternal {
				t.Errorf("ended %s: %v", res.Reason, res.Err)
			}
			var p *loop.PanicError
			if !errors.As(res.Err, &p) || !strings.Contains(p.Stack, "loop_test") || strings.Contains(res.Err.Error()+p.Stack, "canary") {
				t.Errorf("error %v, stack %+v", res.Err, p)
			}
			calls := all[*event.ModelCallFinished](events)
			if last := calls[len(calls)-1]; last.Status != "error" || last.ErrorCode != "internal" {
				t.Errorf("call %+v", last)
			}
			checkRun(t, res, events)
		})
	}
}

// A panic of the consumer of a run is not taken for one of the model and is not recovered, whatever the event. The loop can
// be used again afterwards.
func TestPanicOfTheConsumerGoesThrough(t *testing.T) {
	t.Parallel()
	m := &script{turns: []turn{ask(call("a", "echo", `{}`)), textTurn("hi")}}
	l := newLoop(t, m, nil, echo("echo"))
	_, events := collect(t, t.Context(), l, user("x"))
	for at := range events {
		m.mu.Lock()
		m.asked = nil
		m.mu.Unlock()
		func() {
			defer func() {
				if got := recover(); got != "mine" {
					t.Errorf("event %d: recovered %v", at, got)
				}
			}()
			n := 0
			for range l.Run(t.Context(), user("x")) {
				if n == at {
					panic("mine")
				}
				n++
			}
			t.Errorf("event %d: the run went on", at)
		}()
	}
	m.mu.Lock()
	m.asked = nil
	m.mu.Unlock()
	if res, again := collect(t, t.Context(), l, user("x")); types(again) != types(events) {
		t.Errorf("after panics: %s, %s", res.Reason, types(again))
	}
}

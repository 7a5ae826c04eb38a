package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// steps executes a run step by step, each in a process of its own, and returns what each step did.
type steps struct {
	kept  store.Store
	loop  func() *loop.Loop
	after int64
	next  *engine.NextStep
	did   []string
}

// step executes one step; a step that failed is repeated as an engine does that lost its worker.
func (s *steps) step(t *testing.T, opts engine.StepOptions) *engine.Step {
	t.Helper()
	opts.After = s.after
	for range 20 {
		out, err := newEngine(t, &engine.Options{Store: s.kept}).Step(t.Context(), s.loop(), "run_1", &opts)
		if err != nil {
			if lathe.CodeOf(err) != lathe.CodeUnavailable {
				t.Fatal(err)
			}
			opts.After = -1
			continue
		}
		s.after, s.next = out.LastID, out.Next
		s.did = append(s.did, describe(out))
		return out
	}
	t.Fatal("the step failed 20 times")
	return nil
}

func describe(s *engine.Step) string {
	switch {
	case s.Next == nil:
		return string(s.Reason)
	case s.Next.CallID == "":
		return "model"
	}
	return fmt.Sprintf("%s:%t", s.Next.Tool, s.Next.Writes())
}

// accept stores the beginning of run_1.
func (s *steps) accept(t *testing.T) {
	t.Helper()
	in := input()
	in.Run.RunID = "run_1"
	for i := 0; ; i++ {
		_, err := newEngine(t, &engine.Options{Store: s.kept}).Accept(t.Context(), s.loop(), in)
		if err == nil {
			return
		}
		if i > 5 {
			t.Fatal(err)
		}
	}
}

func (s *steps) run(t *testing.T) *engine.Step {
	t.Helper()
	s.accept(t)
	for range 100 {
		if out := s.step(t, engine.StepOptions{}); out.Next == nil {
			return out
		}
	}
	t.Fatalf("the run does not end: %s", strings.Join(s.did, " "))
	return nil
}

// stepLoop has a model that calls a tool that reads, one that writes and an unknown one, and then the writing one again.
func stepLoop(t *testing.T, write *counter) func() *loop.Loop {
	look := tool.Func("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil }, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}})
	call := func(id, name, args string) lathe.ToolCall { return lathe.ToolCall{ID: id, Name: name, Arguments: args} }
	model := &turns{[]lathe.Message{
		{Role: lathe.RoleAssistant, Parts: []lathe.Part{call("a", "look", `{}`), call("b", "count", `{}`), call("c", "other", `{}`)}},
		{Role: lathe.RoleAssistant, Parts: []lathe.Part{call("d", "count", `{}`)}},
		lathe.Assistant("done"),
	}}
	return func() *loop.Loop { return newLoop(t, model, look, write) }
}

// turns is a model that answers a conversation with its nth message, where n is the number of its messages in it.
type turns struct{ messages []lathe.Message }

func (*turns) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (m *turns) Generate(_ context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	n := 0
	for i := range req.Messages {
		if req.Messages[i].Role == lathe.RoleAssistant {
			n++
		}
	}
	return func(yield func(lathe.Delta, error) bool) {
		message := m.messages[n]
		reason := lathe.FinishStop
		if len(message.Calls()) > 0 {
			reason = lathe.FinishToolCalls
		}
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Reason: reason, Message: message}}, nil)
	}
}

// Each model call and each tool call is a step of its own, whose result says what follows.
func TestStepsOfARun(t *testing.T) {
	t.Parallel()
	write, kept := &counter{}, store.NewMemory(nil)
	s := &steps{kept: kept, loop: stepLoop(t, write)}
	out := s.run(t)
	if want := []string{"look:false", "count:true", ":false", "model", "count:true", "model", "answered"}; !slices.Equal(s.did, want) {
		t.Errorf("what followed each step: %q, want %q", s.did, want)
	}
	if out.Reason != lathe.ReasonAnswered || out.Status != "completed" || write.count() != 2 {
		t.Errorf("the run ended %+v, the tool ran %d times", out, write.count())
	}
	again := s.step(t, engine.StepOptions{})
	if again.Reason != lathe.ReasonAnswered || again.LastID != out.LastID {
		t.Errorf("a step of a run that has ended: %+v", again)
	}
	s.accept(t) // changes nothing
}

// kinds returns the events of run_1 by type and call.
func kinds(t *testing.T, s store.Store) string {
	t.Helper()
	var b strings.Builder
	for e, err := range s.Read(t.Context(), "run_1", 0) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%d %d %s", e.ID, e.Turn, e.Data.EventType())
		if r, ok := e.Data.(*event.ToolCallResult); ok {
			fmt.Fprintf(&b, " %s %s", r.ToolCallID, r.ErrorType)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// fragile is a store of which one append fails, before or after it has stored its events.
type fragile struct {
	*store.Memory
	left int // appends until the failure
	late bool
}

func (f *fragile) AppendAs(ctx context.Context, c store.Claim, last int64, events ...event.Event) (int64, error) {
	f.left--
	gone := &lathe.Error{Code: lathe.CodeUnavailable, Op: "test", Err: errors.New("the connection broke")}
	if f.left == 0 && !f.late {
		return 0, gone
	}
	n, err := f.Memory.AppendAs(ctx, c, last, events...)
	if f.left == 0 {
		return 0, gone
	}
	return n, err
}

// Wherever a step fails, it can be repeated: each call has one result, a tool that writes runs at most once per call, and the run
// comes to its end.
func TestStepIsRepeatedAfterAFailure(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		for at := 1; ; at++ {
			write := &counter{}
			f := &fragile{Memory: store.NewMemory(nil), left: at, late: late}
			s := &steps{kept: f, loop: stepLoop(t, write)}
			out := s.run(t)
			if f.left > 0 { // the run has fewer appends
				if at < 20 {
					t.Fatalf("the run has %d appends", at)
				}
				break
			}
			state, err := engine.ReadState(t.Context(), f.Memory, "run_1")
			if err != nil {
				t.Fatal(err)
			}
			results, interrupted := map[string]int{}, 0
			for _, m := range state.Messages {
				for _, p := range m.Parts {
					if r, ok := p.(lathe.ToolResult); ok {
						results[r.CallID]++
						if r.Code == lathe.CodeInterrupted {
							interrupted++
						}
					}
				}
			}
			if want := map[string]int{"a": 1, "b": 1, "c": 1, "d": 1}; fmt.Sprint(results) != fmt.Sprint(want) || len(state.Open) > 0 {
				t.Errorf("append %d, late %t: results %v, want one each", at, late, results)
			}
			if out.Reason != lathe.ReasonAnswered || write.count() > 2 || write.count()+interrupted < 2 || interrupted > 1 {
				t.Errorf("append %d, late %t: the run ended %s, the tool ran %d times, %d calls are interrupted\n%s", at, late, out.Reason, write.count(), interrupted, kinds(t, f.Memory))
			}
		}
	}
}

// A step that settles begins nothing.
func TestStepSettles(t *testing.T) {
	t.Parallel()
	write := &counter{}
	s := &steps{kept: store.NewMemory(nil), loop: stepLoop(t, write)}
	s.accept(t)
	s.step(t, engine.StepOptions{}) // the model
	before := s.after
	if out := s.step(t, engine.StepOptions{Settle: true}); out.LastID != before || out.Next == nil || out.Next.Tool != "look" {
		t.Errorf("nothing was begun, and the step did %+v", out)
	}
	s.step(t, engine.StepOptions{}) // look
	row := &fragile{Memory: s.kept.(*store.Memory), left: 4}
	s.kept = row // the result of count is not stored
	if _, err := newEngine(t, &engine.Options{Store: row}).Step(t.Context(), s.loop(), "run_1", &engine.StepOptions{After: s.after}); err == nil || write.count() != 1 {
		t.Fatalf("the step returned %v, and the tool ran %d times", err, write.count())
	}
	if out := s.step(t, engine.StepOptions{Settle: true}); out.Next == nil || out.Next.CallID != "c" || write.count() != 1 {
		t.Errorf("the step that settles did %+v, and the tool ran %d times", out, write.count())
	}
	if log := kinds(t, row.Memory); !strings.Contains(log, "ToolCallResult b interrupted") {
		t.Errorf("the call that was begun is not interrupted:\n%s", log)
	}
}

// A run that waits says for what, and a step changes nothing until the answer is there.
func TestStepOfARunThatWaits(t *testing.T) {
	t.Parallel()
	kept, c, d := store.NewMemory(nil), &counter{}, &approvals{}
	s := &steps{kept: kept, loop: func() *loop.Loop { return askingLoop(t, d, c) }}
	out := s.run(t)
	if out.Status != "parked" || len(out.Waiting) != 1 || out.Waiting[0].Digest == "" || !out.Waiting[0].ExpiresAt.After(time.Unix(0, 0)) {
		t.Fatalf("the run waits: %+v", out)
	}
	d.open.Store(true)
	if again := s.step(t, engine.StepOptions{}); again.LastID != out.LastID || again.Status != "parked" {
		t.Errorf("a step without an answer: %+v", again)
	}
	if err := kept.PutSignal(t.Context(), store.Signal{RunID: "run_1", Kind: store.SignalApproval, Key: "a", Body: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	if out = s.step(t, engine.StepOptions{}); out.Next == nil || c.count() != 1 {
		t.Errorf("the step after the answer: %+v, the tool ran %d times", out, c.count())
	}
}

// A step whose context is left stores nothing more, and says where the log ends.
func TestStepIsLeft(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	leaves := tool.Func("count", "Leaves.", func(ctx context.Context, _ struct{}) (string, error) {
		cancel(lathe.ErrLeft)
		<-ctx.Done()
		return "", ctx.Err()
	}, &tool.FuncOptions{Effect: lathe.Writes, Show: []string{"*"}})
	kept := store.NewMemory(nil)
	s := &steps{kept: kept, loop: func() *loop.Loop { return newLoop(t, model{pieces: 1}, leaves) }}
	s.accept(t)
	s.step(t, engine.StepOptions{})
	out, err := newEngine(t, &engine.Options{Store: kept}).Step(ctx, s.loop(), "run_1", &engine.StepOptions{After: s.after})
	if !errors.Is(err, lathe.ErrLeft) || out == nil || out.LastID != s.after+2 {
		t.Errorf("got %+v, %v; want the events of the call and ErrLeft", out, err)
	}
}

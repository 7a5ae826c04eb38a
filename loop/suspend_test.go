package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/tool"
)

// A run that is suspended before each of its steps and continued from its log, each time with another loop and another runner,
// has the events of the run that is executed in one go: limits, repeated calls and the end included.
func TestSuspendedRunHasTheEventsOfOneRun(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := drawScene(rt)
		s.settings.MaxParallel, s.settings.FallbackRetryCount = 0, 0
		s.limits.RunTimeout = time.Hour
		for i := range s.turns {
			if s.turns[i].block {
				s.turns[i] = turn{silent: true}
			}
			for k, p := range s.turns[i].finish.Message.Parts { // a tool that is abandoned or whose memory is broken takes its process with it
				if c, ok := p.(lathe.ToolCall); ok && c.Name == "deaf" {
					c.Name = "echo"
					s.turns[i].finish.Message.Parts[k] = c
				}
			}
		}
		var wrong string
		synctest.Test(t, func(t *testing.T) {
			whole, _ := s.playSteps(t, false)
			parts, steps := s.playSteps(t, true)
			if whole != parts {
				wrong = fmt.Sprintf("in one go:\n%s\nin %d steps:\n%s", whole, steps, parts)
			}
		})
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// playSteps runs the scene as a run that can be resumed and returns its log as text, without times.
func (s *scene) playSteps(t *testing.T, suspend bool) (log string, steps int) {
	model := &script{turns: s.turns}
	tools := []lathe.Tool{
		echo("echo"), broken("broken"), faulty("guest"),
		newGadget("panics", func(context.Context, json.RawMessage) (*lathe.Output, error) { panic("of a tool") }),
		newGadget("sleeps", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
			time.Sleep(700 * time.Millisecond)
			return &lathe.Output{Data: json.RawMessage(`"slept"`)}, nil
		}),
	}
	in := user("x")
	in.Park = true
	if s.client {
		in.ClientTools = []*lathe.ToolSpec{{Name: "yours", Schema: json.RawMessage(`{"type":"object"}`), Owner: lathe.OwnerClient}}
	}
	state, events, newID := &loop.State{}, []event.Event(nil), ids()
	for steps = 1; steps < 1_000; steps++ {
		ropts := &tool.Options{Policy: s.policy, NewID: newID}
		if s.later {
			ropts.Approver = later{}
		}
		l, err := loop.New(model, newRunner(t, ropts, tools...), &loop.Options{Settings: s.settings, Limits: s.limits})
		if err != nil {
			t.Fatal(err)
		}
		progress, suspended := false, false
		runinput.Of(in).Suspend = func(*lathe.ToolCall, *lathe.ToolSpec) bool {
			suspended = suspend && progress
			return suspended
		}
		for e := range l.Run(t.Context(), in) {
			if event.IsDelta(e.Data) {
				continue
			}
			e.ID = state.LastID + 1
			e.RunID = "run_1"
			_, first := e.Data.(*event.RunStarted)
			progress = progress || !first
			if err := state.Apply(&e); err != nil {
				t.Fatal(err)
			}
			events = append(events, e)
		}
		if !suspended {
			break
		}
		in = runinput.With(&loop.Input{Run: in.Run, Resume: state}, runinput.Extra{Suspended: true, Elapsed: runinput.Of(in).Elapsed})
	}
	var b strings.Builder
	for _, e := range events {
		switch d := e.Data.(type) {
		case *event.RunFinished:
			d.Result, d.LatencyMS = nil, 0
		case *event.RunPaused:
			d.Result = nil
		case *event.ApprovalRequested:
			d.ExpiresAt = time.Time{}
		}
		data, err := json.Marshal(e.Data)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%d %s %s\n", e.Turn, e.Data.EventType(), data)
	}
	return b.String(), steps
}

// ids returns a source of the same ids for each run.
func ids() func(string) string {
	n := 0
	return func(prefix string) string {
		n++
		return fmt.Sprintf("%s%d", prefix, n)
	}
}

// Suspend is asked before each step, and a run that is continued says nothing of it.
func TestSuspendNamesTheNextStep(t *testing.T) {
	t.Parallel()
	writes := echo("save")
	writes.spec.Effect = lathe.Writes
	m := &script{turns: []turn{ask(call("a", "echo", `{}`), call("b", "save", `{}`)), textTurn("done")}}
	l := newLoop(t, m, nil, echo("echo"), writes)
	in := user("x")
	in.Park = true
	var next []string
	runinput.Of(in).Suspend = func(c *lathe.ToolCall, spec *lathe.ToolSpec) bool {
		if c == nil {
			next = append(next, "model")
		} else {
			next = append(next, c.ID+" "+spec.Name+" "+spec.Effect.String())
		}
		return false
	}
	res, err := l.Do(t.Context(), in)
	if err != nil || res.Answer != "done" {
		t.Fatalf("%+v, %v", res, err)
	}
	if want := []string{"model", "a echo read_only", "b save writes", "model"}; !slices.Equal(next, want) {
		t.Errorf("Suspend was asked about %q, want %q", next, want)
	}
}

// A suspended run has no result, and what it has spent of its time limit counts.
func TestElapsedTimeCountsForTheTimeLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := newGadget("slow", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
			select {
			case <-time.After(3 * time.Second):
				return &lathe.Output{Data: json.RawMessage(`1`)}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		m := &script{turns: []turn{ask(call("a", "slow", `{"n":1}`)), ask(call("b", "slow", `{"n":2}`)), textTurn("done")}}
		l := newLoop(t, m, &loop.Options{Limits: lathe.Limits{RunTimeout: 5 * time.Second, ToolTimeout: time.Minute}}, slow)
		in, state := user("x"), &loop.State{}
		in.Park = true
		var res *event.Result
		for range 20 {
			progress := false
			runinput.Of(in).Suspend = func(*lathe.ToolCall, *lathe.ToolSpec) bool { return progress }
			began := time.Now()
			var end *event.Result
			for e := range l.Run(t.Context(), in) {
				if event.IsDelta(e.Data) {
					continue
				}
				e.ID, e.RunID, progress = state.LastID+1, "run_1", true
				if err := state.Apply(&e); err != nil {
					t.Fatal(err)
				}
				end = loop.Ended(e.Data)
			}
			if res = end; res != nil {
				break
			}
			in = runinput.With(&loop.Input{Run: in.Run, Resume: state}, runinput.Extra{Suspended: true, Elapsed: runinput.Of(in).Elapsed + time.Since(began)})
		}
		if res == nil || res.Reason != lathe.ReasonRunTimeout || state.Finished.LatencyMS != 5_000 {
			t.Fatalf("the run ended %+v after %d ms, want run_timeout after 5000", res, state.Finished.LatencyMS)
		}
	})
}

// Repeated calls and calls of unknown tools end a run that is suspended before each step as they end any other.
func TestSuspendedRunCountsRepetitions(t *testing.T) {
	t.Parallel()
	for name, tool := range map[string]string{"repeated": "echo", "unknown": "none"} {
		s := &scene{policy: anything{}, turns: []turn{ask(call("", tool, `{"n":"x"}`))}, limits: lathe.Limits{MaxRepeatedCalls: 3, MaxUnknownTools: 3, MaxIterations: 20}}
		log, steps := s.playSteps(t, true)
		if !strings.Contains(log, `"reason":"tool_loop"`) || steps < 6 {
			t.Errorf("%s: the run ended after %d steps:\n%s", name, steps, log)
		}
	}
}

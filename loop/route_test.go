package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/lathetest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/tool"
)

// relayRace returns the first of two loops, which alternate: the number of calls of the tool `pass` with a result decides.
func relayRace(t *testing.T, first, second lathe.Model, limits lathe.Limits) *loop.Loop {
	t.Helper()
	var loops [2]*loop.Loop
	route := func(messages []lathe.Message) *loop.Loop {
		passed := 0
		for _, m := range messages {
			for _, p := range m.Parts {
				if r, ok := p.(lathe.ToolResult); ok && r.Name == "pass" && !r.IsError {
					passed++
				}
			}
		}
		return loops[passed%2]
	}
	for i, model := range []lathe.Model{first, second} {
		done := func(context.Context, json.RawMessage) (*lathe.Output, error) {
			return &lathe.Output{Data: json.RawMessage(`"done"`)}, nil
		}
		r := newRunner(t, &tool.Options{Policy: policy.AllowAll(), NewID: ids()}, newGadget("pass", done), newGadget([]string{"own_1", "own_2"}[i], done))
		var err error
		if loops[i], err = loop.New(model, r, &loop.Options{Agent: []string{"one", "two"}[i], Route: route, Limits: limits}); err != nil {
			t.Fatal(err)
		}
	}
	return loops[0]
}

// A run that is handed over between loops has the same events and the same result if it is suspended before each step and continued from
// its log by a new process.
func TestRoutedRunHasTheEventsOfOneContinuedFromItsLog(t *testing.T) {
	t.Parallel()
	pass, both := lathetest.Call("pass", `{}`), lathetest.Step{Calls: []lathe.ToolCall{{Name: "own_2", Arguments: `{}`}, {Name: "pass", Arguments: `{}`}}}
	models := func() (one, two lathe.Model) {
		return lathetest.NewModel(lathetest.Call("own_1", `{}`), pass, lathetest.Call("own_2", `{}`), lathetest.Text("The end.")), lathetest.NewModel(lathetest.Call("own_2", `{}`), both)
	}
	play := func(t *testing.T, suspend bool, limits lathe.Limits) (log string, result *event.Result) {
		one, two := models()
		state, in := &loop.State{}, user("x")
		in.Park = true
		var text strings.Builder
		for range 100 {
			progress, suspended := false, false
			if suspend {
				runinput.Of(in).Suspend = func(*lathe.ToolCall, *lathe.ToolSpec) bool {
					suspended = progress
					return suspended
				}
			}
			for e := range relayRace(t, one, two, limits).Run(t.Context(), in) {
				if event.IsDelta(e.Data) {
					continue
				}
				_, begins := e.Data.(*event.RunStarted)
				progress = progress || !begins
				e.ID, e.RunID = state.LastID+1, "run_1"
				if err := state.Apply(&e); err != nil {
					t.Fatal(err)
				}
				if end := loop.Ended(e.Data); end != nil {
					result = end
				}
				b, err := json.Marshal(e.Data)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&text, "%d %s %s\n", e.Turn, e.Data.EventType(), b)
			}
			if !suspended {
				return text.String(), result
			}
			in = &loop.Input{Resume: state}
			runinput.Of(in).Suspended = true
		}
		t.Fatal("the run does not end")
		return "", nil
	}
	for i, limits := range []lathe.Limits{{}, {MaxIterations: 4}, {MaxToolCalls: 3}} {
		var whole, parts string
		var res, again *event.Result
		synctest.Test(t, func(t *testing.T) { // latencies are 0
			whole, res = play(t, false, limits)
			parts, again = play(t, true, limits)
		})
		if whole != parts {
			t.Errorf("limits %+v: in one go:\n%s\nin steps:\n%s", limits, whole, parts)
		}
		if len(res.Trace) != len(again.Trace) || len(res.History) != len(again.History) || res.Answer != again.Answer || res.Usage != again.Usage || res.ToolCalls != again.ToolCalls {
			t.Errorf("limits %+v: in one go: %+v\nin steps: %+v", limits, res, again)
		}
		if i == 0 {
			var agents []string
			for _, turn := range res.Trace {
				agents = append(agents, turn.Agent)
			}
			if got := strings.Join(agents, " "); got != "one one two two one one" || res.Answer != "The end." || res.Trace[4].Calls[0].Code != lathe.CodeUnknownTool {
				t.Errorf("turns of %s, answer %q, %+v", got, res.Answer, res.Trace[4])
			}
		}
	}
}

package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/agent"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/lathetest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/sqlite"
	"github.com/lathe-run/lathe/tool"
)

type place struct {
	City string `json:"city"`
}

func weather() lathe.Tool {
	return tool.Func("weather", "Returns the weather of a city.", func(_ context.Context, in place) (string, error) {
		return "dry in " + in.City, nil
	}, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}})
}

// refund returns a tool that writes, and counts its calls.
func refund(calls *int) lathe.Tool {
	return tool.Func("refund", "Refunds an order.", func(context.Context, struct {
		Order string `json:"order"`
	}) (string, error) {
		*calls++
		return "refunded", nil
	}, &tool.FuncOptions{Effect: lathe.Writes, Show: []string{"*"}})
}

func newAgent(t *testing.T, model lathe.Model, opts *agent.Options) *agent.Agent {
	t.Helper()
	a, err := agent.New(model, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(context.Background()) })
	return a
}

func TestRun(t *testing.T) {
	t.Parallel()
	model := lathetest.NewModel(lathetest.Call("weather", `{"city":"Oslo"}`), lathetest.Text("It is dry."), lathetest.Text("Still dry."))
	a := newAgent(t, model, &agent.Options{Instructions: "Be brief.", Tools: []lathe.Tool{weather()}})
	res, err := a.Run(t.Context(), lathe.User("What is the weather in Oslo?"))
	if err != nil || res.Answer != "It is dry." || res.ToolCalls != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	res, err = a.Run(t.Context(), append(res.History, lathe.User("And now?"))...)
	if err != nil || res.Answer != "Still dry." {
		t.Fatalf("%+v, %v", res, err)
	}
	systems := 0
	for _, m := range res.History {
		if m.Role == lathe.RoleSystem {
			systems++
		}
	}
	if systems != 1 || res.History[0].Text() != "Be brief." {
		t.Errorf("%d system messages, the first message is %q", systems, res.History[0].Text())
	}
}

// The events of a stream may be kept, and the last one has the result.
func TestStream(t *testing.T) {
	t.Parallel()
	a := newAgent(t, lathetest.NewModel(lathetest.Text("hello there, how are you?")), nil)
	var events []event.Event
	for e, err := range a.Stream(t.Context(), lathe.User("hi")) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	var text strings.Builder
	for _, d := range lathetest.Only[*event.TextDelta](events) {
		text.WriteString(d.Text)
	}
	res := loop.Ended(events[len(events)-1].Data)
	if res == nil || res.Answer != text.String() || res.Answer == "" {
		t.Errorf("text %q, result %+v", text.String(), res)
	}
}

// Each range over a stream executes a run of its own.
func TestStreamTwice(t *testing.T) {
	t.Parallel()
	a := newAgent(t, lathetest.NewModel(lathetest.Text("one"), lathetest.Text("two")), nil)
	ids := map[string]bool{}
	stream := a.Stream(t.Context(), lathe.User("hi"))
	for range 2 {
		for e, err := range stream {
			if err != nil {
				t.Fatal(err)
			}
			ids[e.RunID] = true
		}
	}
	if len(ids) != 2 {
		t.Errorf("%d runs, want 2", len(ids))
	}
}

// A range that ends early cancels the run and waits for its end; the same holds for a context.
func TestStreamEndsItsRun(t *testing.T) {
	t.Parallel()
	runs := store.NewMemory(nil)
	a := newAgent(t, lathetest.NewModel(lathetest.Step{Text: "one two three", Hang: true}, lathetest.Step{Text: "four", Hang: true}), &agent.Options{Store: runs})
	for e, err := range a.Stream(t.Context(), lathe.User("hi")) {
		if _, ok := e.Data.(*event.TextDelta); ok || err != nil {
			break
		}
	}
	rows, _, err := runs.Runs(t.Context(), &store.RunFilter{})
	if err != nil || len(rows) != 1 || rows[0].Status != "cancelled" {
		t.Errorf("runs %+v, %v", rows, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var last error
	for e, err := range a.Stream(ctx, lathe.User("hi")) {
		if _, ok := e.Data.(*event.TextDelta); ok {
			cancel()
		}
		last = err
	}
	cancel()
	if !errors.Is(last, context.Canceled) {
		t.Errorf("the stream ended with %v", last)
	}
}

// The partial text of a cancelled run is in its result.
func TestCancelledRunHasItsPart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t, lathetest.NewModel(lathetest.Call("weather", `{"city":"Oslo"}`), lathetest.Step{Hang: true}), &agent.Options{Tools: []lathe.Tool{weather()}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		res, err := a.Run(ctx, lathe.User("hi"))
		if res == nil || res.ToolCalls != 1 || len(res.History) < 3 || err == nil {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

func TestApproval(t *testing.T) {
	t.Parallel()
	for _, verb := range []approval.Verb{approval.Approve, approval.Deny} {
		t.Run(string(verb), func(t *testing.T) {
			t.Parallel()
			calls := 0
			a := newAgent(t, lathetest.NewModel(lathetest.Call("refund", `{"order":"A-1"}`), lathetest.Text("Done.")), &agent.Options{Tools: []lathe.Tool{refund(&calls)}})
			res, err := a.Run(t.Context(), lathe.User("Refund A-1."))
			if !errors.Is(err, agent.ErrWaiting) || res.Reason != lathe.ReasonAwaitingApproval || calls != 0 {
				t.Fatalf("%+v, %v, %d calls", res, err, calls)
			}
			waiting, err := a.Waiting(t.Context())
			if err != nil || len(waiting) != 1 || waiting[0].Tool != "refund" {
				t.Fatalf("%+v, %v", waiting, err)
			}
			id := waiting[0].RunID
			if id != res.RunID || waiting[0].Effect != "writes" || len(waiting[0].Details) == 0 {
				t.Errorf("run %q, request %+v", res.RunID, waiting[0])
			}
			if err := a.Answer(t.Context(), waiting[0].Digest, approval.Answer{Verb: verb, By: "ann"}); err != nil {
				t.Fatal(err)
			}
			res, err = a.Wait(t.Context(), id)
			if err != nil || res.Answer != "Done." || (calls == 1) != (verb == approval.Approve) {
				t.Errorf("%+v, %v, %d calls", res, err, calls)
			}
			if err := a.Approve(t.Context(), waiting[0].Digest, "ann"); lathe.CodeOf(err) != lathe.CodeNotFound {
				t.Errorf("the request of a run that has ended: %v", err)
			}
			var types []string
			for e, err := range a.Events(t.Context(), id, 0) {
				if err != nil {
					t.Fatal(err)
				}
				types = append(types, e.Data.EventType())
			}
			if types[0] != "RunStarted" || types[len(types)-1] != "RunFinished" {
				t.Errorf("events %v", types)
			}
		})
	}
}

// A request without an answer expires, and its run goes on without the call.
func TestApprovalExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		a := newAgent(t, lathetest.NewModel(lathetest.Call("refund", `{"order":"A-1"}`), lathetest.Text("No answer came.")), &agent.Options{Tools: []lathe.Tool{refund(&calls)}})
		_, err := a.Run(t.Context(), lathe.User("Refund A-1."))
		waiting, werr := a.Waiting(t.Context())
		if !errors.Is(err, agent.ErrWaiting) || werr != nil || len(waiting) != 1 {
			t.Fatalf("%v, %v, %v", err, waiting, werr)
		}
		time.Sleep(time.Until(waiting[0].ExpiresAt) + time.Second)
		synctest.Wait()
		res, err := a.Wait(t.Context(), waiting[0].RunID)
		if err != nil || res.Answer != "No answer came." || calls != 0 {
			t.Errorf("%+v, %v, %d calls", res, err, calls)
		}
	})
}

// After a restart Recover restores the requests, and the answer resumes the run; runs of other agents are left alone.
func TestRecover(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "runs.db")
	calls := 0
	model := lathetest.NewModel(lathetest.Call("refund", `{"order":"A-1"}`), lathetest.Call("refund", `{"order":"B-2"}`), lathetest.Text("Done."))
	open := func(name string, model lathe.Model, runs store.Store) *agent.Agent {
		a, err := agent.New(model, &agent.Options{Name: name, Store: runs, Tools: []lathe.Tool{refund(&calls)}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	runs, err := sqlite.Open(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	first, other := open("desk", model, runs), open("other", model, runs)
	for _, a := range []*agent.Agent{first, other} {
		if _, err := a.Run(t.Context(), lathe.User("Refund it.")); !errors.Is(err, agent.ErrWaiting) {
			t.Fatal(err)
		}
	}
	first.Close(t.Context())
	other.Close(t.Context())
	if err := runs.Close(); err != nil {
		t.Fatal(err)
	}

	if runs, err = sqlite.Open(file, nil); err != nil {
		t.Fatal(err)
	}
	defer runs.Close()
	second := open("desk", model, runs)
	defer second.Close(t.Context())
	if n, err := second.Recover(t.Context()); n != 0 || err != nil {
		t.Fatalf("%d runs resumed, %v", n, err)
	}
	waiting, err := second.Waiting(t.Context())
	if err != nil || len(waiting) != 1 || waiting[0].Tool != "refund" || string(waiting[0].Arguments) != `{"order":"A-1"}` ||
		waiting[0].Effect != "writes" || waiting[0].Origin != "go" || len(waiting[0].Details) == 0 {
		t.Fatalf("%+v, %v", waiting, err)
	}
	if err := second.Approve(t.Context(), waiting[0].Digest, "ann"); err != nil {
		t.Fatal(err)
	}
	if res, err := second.Wait(t.Context(), waiting[0].RunID); err != nil || res.Answer != "Done." || calls != 1 {
		t.Errorf("%+v, %v, %d calls", res, err, calls)
	}
}

// A run waits for the result of a tool of the caller, and Resume continues with it.
func TestResume(t *testing.T) {
	t.Parallel()
	a := newAgent(t, lathetest.NewModel(lathetest.Call("where_am_i", `{}`), lathetest.Text("In Oslo.")), nil)
	own := a.With(loop.Input{Run: lathe.RunInfo{RunID: "run_1"}, ClientTools: []*lathe.ToolSpec{{Name: "where_am_i", Schema: json.RawMessage(`{"type":"object"}`)}}})
	res, err := own.Run(t.Context(), lathe.User("Where am I?"))
	if !errors.Is(err, agent.ErrWaiting) || len(res.Pending) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	if res, err = a.Resume(t.Context(), "run_1", map[string]lathe.Output{res.Pending[0].ID: {Data: json.RawMessage(`"Oslo"`)}}); err != nil || res.Answer != "In Oslo." {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := a.Resume(t.Context(), "run_1", nil); lathe.CodeOf(err) != lathe.CodeConflict {
		t.Errorf("a run that has ended: %v", err)
	}
	if _, err := a.Wait(t.Context(), "run_2"); lathe.CodeOf(err) != lathe.CodeNotFound {
		t.Errorf("no such run: %v", err)
	}
}

// Events that begin at the first event of a run that has been resumed do not end where it was parked.
func TestEventsFollowAResumedRun(t *testing.T) {
	t.Parallel()
	for range 20 {
		calls := 0
		a := newAgent(t, lathetest.NewModel(lathetest.Call("refund", `{"order":"A-1"}`), lathetest.Text("Done.")), &agent.Options{Tools: []lathe.Tool{refund(&calls)}})
		if _, err := a.Run(t.Context(), lathe.User("Refund A-1.")); !errors.Is(err, agent.ErrWaiting) {
			t.Fatal(err)
		}
		waiting, err := a.Waiting(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Approve(t.Context(), waiting[0].Digest, "ann"); err != nil {
			t.Fatal(err)
		}
		var last event.Event
		for e, err := range a.Events(t.Context(), waiting[0].RunID, 0) {
			if err != nil {
				t.Fatal(err)
			}
			last = e
		}
		if _, ok := last.Data.(*event.RunFinished); !ok {
			t.Fatalf("the last event is %s", last.Data.EventType())
		}
	}
}

// Events follows a run from the store into what happens now, and ends with the run.
func TestEventsFollow(t *testing.T) {
	t.Parallel()
	a := newAgent(t, lathetest.NewModel(lathetest.Step{Text: "one two", Hang: true}), nil)
	id, err := a.Start(t.Context(), lathe.User("hi"))
	if err != nil {
		t.Fatal(err)
	}
	var last event.Event
	for e, err := range a.Events(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := e.Data.(*event.ModelCallStarted); ok {
			if err := a.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		last = e
	}
	if f, ok := last.Data.(*event.RunFinished); !ok || f.Reason != lathe.ReasonCancelled {
		t.Errorf("the last event is %+v", last.Data)
	}
	for _, err := range a.Events(t.Context(), "run_none", 0) {
		if lathe.CodeOf(err) != lathe.CodeNotFound {
			t.Errorf("no such run: %v", err)
		}
	}
}

// A run whose first event cannot be stored has not begun.
func TestStartIsStored(t *testing.T) {
	t.Parallel()
	runs, err := sqlite.Open(filepath.Join(t.TempDir(), "runs.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, lathetest.NewModel(lathetest.Text("hi"), lathetest.Text("hi")), &agent.Options{Store: runs})
	id, err := a.Start(t.Context(), lathe.User("hi"))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := a.Wait(t.Context(), id); err != nil || res.RunID != id || res.Answer != "hi" {
		t.Errorf("%+v, %v", res, err)
	}
	if err := runs.Close(); err != nil {
		t.Fatal(err)
	}
	if id, err := a.Start(t.Context(), lathe.User("hi")); err == nil || id != "" {
		t.Errorf("started %q on a closed store", id)
	}
}

// A budget in Policy also limits model calls.
func TestPolicyDecidesOnModelCalls(t *testing.T) {
	t.Parallel()
	first := lathetest.Call("weather", `{"city":"Oslo"}`)
	first.Usage = lathe.Usage{InputTokens: 60, OutputTokens: 40}
	a := newAgent(t, lathetest.NewModel(first, lathetest.Text("It is dry.")), &agent.Options{Tools: []lathe.Tool{weather()},
		Policy: policy.All(policy.Budget{Tokens: 50}, policy.AllowAll())})
	res, err := a.Run(t.Context(), lathe.User("Weather?"))
	if err != nil || res.Reason != lathe.ReasonBudgetExceeded || lathe.CodeOf(res.Err) != lathe.CodePolicyDenied {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	type plain struct{ store.Store }
	for name, opts := range map[string]*agent.Options{
		"store":   {Store: plain{store.NewMemory(nil)}},
		"sink":    {Sinks: []event.Sink{nil}},
		"runs":    {MaxRuns: -1},
		"no tool": {Tools: []lathe.Tool{nil}},
		"name":    {Tools: []lathe.Tool{weather()}, Policy: policy.Tools{Allow: []string{"wether"}}},
		"pointer": {Tools: []lathe.Tool{weather()}, Policy: &policy.Tools{Deny: []string{"weathr"}}},
	} {
		if _, err := agent.New(lathetest.NewModel(), opts); lathe.CodeOf(err) != lathe.CodeInvalidConfig {
			t.Errorf("%s: %v", name, err)
		}
	}
	newAgent(t, lathetest.NewModel(), &agent.Options{Tools: []lathe.Tool{weather()}, Policy: policy.Tools{Allow: []string{"weather", "tool_of_the_caller"}}})
	if _, err := agent.New(nil, nil); lathe.CodeOf(err) != lathe.CodeInvalidConfig {
		t.Error(err)
	}
}

// Prepare changes what the model receives, and not the history. Around is called for each tool call.
func TestHooks(t *testing.T) {
	t.Parallel()
	model := lathetest.NewModel(lathetest.Call("weather", `{"city":"Oslo"}`), lathetest.Text("It is dry."))
	around := 0
	a := newAgent(t, model, &agent.Options{
		Tools: []lathe.Tool{weather()},
		Prepare: func(_ context.Context, req *lathe.Request) error {
			req.Messages = append([]lathe.Message{lathe.System("The user lives in Oslo.")}, req.Messages...)
			return nil
		},
		Runner: tool.Options{Around: func(ctx context.Context, t lathe.Tool, args json.RawMessage) (*lathe.Output, error) {
			around++
			out, err := t.Call(ctx, args)
			out.Data = json.RawMessage(`"wet"`)
			return out, err
		}},
	})
	res, err := a.Run(t.Context(), lathe.User("What is the weather?"))
	if err != nil || len(res.History) != 4 || around != 1 {
		t.Fatalf("%+v, %v, %d", res, err, around)
	}
	second := model.Requests()[1].Messages
	if len(second) != 4 || second[0].Text() != "The user lives in Oslo." || !strings.Contains(lastResult(second), "wet") {
		t.Errorf("the model received %+v", second)
	}
	a = newAgent(t, model, &agent.Options{Prepare: func(context.Context, *lathe.Request) error { return errors.New("no memory") }})
	if res, err := a.Run(t.Context(), lathe.User("hi")); err == nil || !strings.Contains(err.Error(), "no memory") {
		t.Errorf("%+v, %v", res, err)
	}
}

// lastResult returns the text of the last tool result.
func lastResult(messages []lathe.Message) (text string) {
	for _, m := range messages {
		for _, p := range m.Parts {
			if r, ok := p.(lathe.ToolResult); ok {
				text = r.Content
			}
		}
	}
	return text
}

package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/lab/replay"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// recorded runs the turns with the tools of these tests and returns the log.
func recorded(t *testing.T, set *tool.Set, who lathe.Approver, turns []answering) *replay.Record {
	t.Helper()
	var record replay.Record
	e := newEngine(t, &engine.Options{Store: store.NewMemory(nil), Sinks: []event.Sink{sinkFunc(func(e event.Event) {
		if e.ID > 0 {
			record.Events = append(record.Events, e)
		}
	})}})
	l := newLoop(t, &scripted{turns: turns}, set, who, lathe.Settings{FailurePolicy: lathe.FailureTolerated}, nil)
	in := &loop.Input{Messages: []lathe.Message{{Role: lathe.RoleUser, Parts: []lathe.Part{lathe.Text{Text: "Go."}}}}}
	if _, err := e.Run(t.Context(), l, in, nil); err != nil {
		t.Fatal(err)
	}
	return &record
}

type sinkFunc func(event.Event)

func (f sinkFunc) Emit(_ context.Context, e event.Event) { f(e) }

// results returns the status and result of each call of a log, in its order.
func results(r *replay.Record) (out []string) {
	for i := range r.Events {
		if d, ok := r.Events[i].Data.(*event.ToolCallResult); ok {
			out = append(out, d.Tool+" "+d.Status+" "+string(d.ErrorType)+" "+d.Result)
		}
	}
	return out
}

// Another model gets the recorded results for equal calls, whatever their ids and order are, and no tool runs.
func TestAnswersOfTheRecordForAnotherModel(t *testing.T) {
	set, err := tool.NewSet(tools()...)
	if err != nil {
		t.Fatal(err)
	}
	approves := approver(func(r *lathe.ApprovalRequest) (lathe.Approval, error) {
		a := lathe.Approval{Approved: !strings.Contains(string(r.Args), "13"), By: "ann", ReasonCode: "denied_by_user"}
		if strings.Contains(string(r.Args), "5") {
			a.Arguments = json.RawMessage(`{"x":6}`)
		}
		return a, nil
	})
	was := recorded(t, set, approves, []answering{
		{calls: []lathe.ToolCall{call("a", "good", `{"x":1}`)}},
		{calls: []lathe.ToolCall{call("b", "good", `{"x":1}`)}},
		{calls: []lathe.ToolCall{call("c", "good", ""), call("d", "bad", `{}`), call("e", "says", `{}`), call("f", "told", `{}`)}},
		{calls: []lathe.ToolCall{call("g", "asked", `{"x":5}`), call("h", "asked", `{"x":13}`)}},
		{text: "Done."},
	})
	recordedResults := results(was)
	if len(recordedResults) != 8 {
		t.Fatalf("the record has %q", recordedResults)
	}
	never, err := tool.NewSet(neverCalled(t)...)
	if err != nil {
		t.Fatal(err)
	}
	standIns, who, err := was.Answers(never, lathe.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	is := recorded(t, standIns, who, []answering{
		{calls: []lathe.ToolCall{call("1", "asked", ` { "x" : 13 } `)}},
		{calls: []lathe.ToolCall{call("2", "asked", `{"x":5}`), call("3", "good", `null`)}},
		{calls: []lathe.ToolCall{call("4", "good", `{"x":1.0}`)}},
		{calls: []lathe.ToolCall{call("5", "good", `{"x": 1}`)}},
		{calls: []lathe.ToolCall{call("6", "good", `{"x":1}`)}}, // once more than in the record
		{calls: []lathe.ToolCall{call("7", "bad", `{}`), call("8", "says", `{}`), call("9", "told", `{}`)}},
		{calls: []lathe.ToolCall{call("10", "good", `{"x":2}`), call("11", "asked", `{"x":77}`)}}, // not in the record
		{text: "Done."},
	})
	got := results(is)
	byTool := func(prefix string, n int) string {
		var all []string
		for _, r := range recordedResults {
			if strings.HasPrefix(r, prefix+" ") {
				all = append(all, r)
			}
		}
		return all[n]
	}
	want := []string{byTool("asked", 1), byTool("asked", 0), byTool("good", 2), byTool("good", 0), byTool("good", 1), byTool("good", 1),
		byTool("bad", 0), byTool("says", 0), byTool("told", 0)}
	if len(got) != len(want)+2 || !slices.Equal(got[:len(want)], want) {
		t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, r := range got[len(want):] {
		if !strings.Contains(r, "error unavailable") {
			t.Errorf("a call that the record does not have: %s", r)
		}
	}
}

// neverCalled returns the same definitions as tools, of tools that fail the test when they are called.
func neverCalled(t *testing.T) (out []lathe.Tool) {
	for _, one := range tools() {
		f := *one.(*fake)
		f.do = func(string) (*lathe.Output, error) {
			t.Errorf("%s was called", f.name)
			return nil, errors.New("called")
		}
		out = append(out, &f)
	}
	return out
}

func TestAnswersNeedTheContentOfTheRecord(t *testing.T) {
	set, err := tool.NewSet(tools()...)
	if err != nil {
		t.Fatal(err)
	}
	was := recorded(t, set, nil, []answering{{text: "Done."}})
	was.Events[1].Removed = 3
	if _, _, err := was.Answers(set, lathe.Limits{}); lathe.CodeOf(err) != lathe.CodeContentRemoved {
		t.Errorf("got %v", err)
	}
}

// A run with other answers defers what the recorded run deferred; its client's tools are sent, and with a client's own search
// nothing is deferred.
func TestAnswersOfARunThatSearches(t *testing.T) {
	t.Parallel()
	set, err := tool.NewSetWithSearch(lathe.Limits{}, tool.Search{Mode: tool.SearchOn, Always: []string{"good"}}, tools()...)
	if err != nil {
		t.Fatal(err)
	}
	for client, want := range map[string]int{"mine": 3, tool.SearchName: len(tools()) + 1} {
		kept := store.NewMemory(nil)
		l := newLoop(t, &scripted{turns: []answering{{text: "Done."}}}, set, nil, lathe.Settings{}, nil)
		in := &loop.Input{Run: lathe.RunInfo{RunID: "run_1"}, Messages: []lathe.Message{lathe.User("Go.")}, Park: true, ClientTools: []*lathe.ToolSpec{{Name: client}}}
		if _, err := newEngine(t, &engine.Options{Store: kept}).Run(t.Context(), l, in, nil); err != nil {
			t.Fatal(err)
		}
		record := export(t, kept, "run_1")
		standIns, _, err := record.Answers(set, lathe.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		runner, err := tool.NewRunner(standIns, &tool.Options{Policy: wants{}})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(runner.Begin(nil, &tool.RunOptions{Defer: true}).Specs()); got != want || record.Started().Tools.Count != want {
			t.Errorf("beside the client's %s %d definitions are sent, and were %d; want %d", client, got, record.Started().Tools.Count, want)
		}
	}
}

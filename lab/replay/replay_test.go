package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/leaktest"
	"github.com/lathe-run/lathe/lab/replay"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A saying is one turn of a scripted model: what it finishes with, or how it fails.
type answering struct {
	text  string
	calls []lathe.ToolCall
	err   *lathe.Error
	retry *lathe.Error // before it says the rest
	bad   bool         // a call of 300 bytes cannot be read
}

type scripted struct {
	mu    sync.Mutex
	turns []answering
}

func (*scripted) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (s *scripted) Generate(context.Context, *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		s.mu.Lock()
		now := s.turns[0]
		s.turns = s.turns[1:]
		s.mu.Unlock()
		if now.retry != nil && !yield(lathe.Delta{Kind: lathe.DeltaRetry, Retry: &lathe.Retry{Attempt: 1, Err: now.retry}}, nil) {
			return
		}
		if now.err != nil {
			yield(lathe.Delta{}, now.err)
			return
		}
		m := lathe.Message{Role: lathe.RoleAssistant}
		if now.text != "" {
			if !yield(lathe.Delta{Kind: lathe.DeltaText, Text: now.text}, nil) {
				return
			}
			m.Parts = append(m.Parts, lathe.Text{Text: now.text})
		}
		if now.bad {
			if !yield(lathe.Delta{Kind: lathe.DeltaParseError, Index: -1, Code: lathe.CodePayloadParseError, Text: "{", Bytes: 300}, nil) {
				return
			}
			m.Parts = append(m.Parts, lathe.ToolCall{Name: "good", Arguments: "{", ParseError: lathe.CodePayloadParseError})
		}
		reason := lathe.FinishStop
		for _, c := range now.calls {
			m.Parts, reason = append(m.Parts, c), lathe.FinishToolCalls
		}
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Message: m, Reason: reason, Usage: lathe.Usage{InputTokens: 3, OutputTokens: 2, TotalTokens: 5}, UpstreamRequestID: "up_1"}}, nil)
	}
}

// A fake is a tool that answers by its arguments.
type fake struct {
	name   string
	effect lathe.Effect
	do     func(args string) (*lathe.Output, error)
}

func (f *fake) Spec() *lathe.ToolSpec {
	return &lathe.ToolSpec{Name: f.name, Effect: f.effect, Allowlist: []string{"shown", "*"}, Schema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"integer"}}}`)}
}

func (f *fake) Call(_ context.Context, args json.RawMessage) (*lathe.Output, error) {
	return f.do(string(args))
}

func tools() []lathe.Tool {
	var n atomic.Int32
	return []lathe.Tool{
		&fake{"good", lathe.ReadOnly, func(string) (*lathe.Output, error) {
			n := n.Add(1) // it never answers the same
			return &lathe.Output{Data: json.RawMessage(`{"shown":` + strings.Repeat("1", int(n)) + `,"text":"a <b> c"}`)}, nil
		}},
		&fake{"bad", lathe.ReadOnly, func(string) (*lathe.Output, error) { return nil, errors.New("secret") }},
		&fake{"told", lathe.ReadOnly, func(string) (*lathe.Output, error) {
			return nil, &tool.Failure{Code: lathe.CodeUnavailable, Message: "closed on Sundays"}
		}},
		&fake{"says", lathe.ReadOnly, func(string) (*lathe.Output, error) {
			return &lathe.Output{IsError: true, Data: json.RawMessage(`{"shown":"no"}`), RC: 3}, nil
		}},
		&fake{"long", lathe.ReadOnly, func(string) (*lathe.Output, error) {
			return &lathe.Output{Data: json.RawMessage(`"` + strings.Repeat("y", 70_000) + `"`)}, nil
		}},
		&fake{"asked", lathe.Writes, func(args string) (*lathe.Output, error) { return &lathe.Output{Data: json.RawMessage(args)}, nil }},
		&fake{"empty", lathe.ReadOnly, func(string) (*lathe.Output, error) { return &lathe.Output{}, nil }},
	}
}

func call(id, name, args string) lathe.ToolCall {
	return lathe.ToolCall{ID: id, Name: name, Arguments: args}
}

// wants asks about tools that write.
type wants struct{ lathe.Policy }

func (wants) Tool(*lathe.RunInfo, *lathe.ToolSpec) lathe.Verdict {
	return lathe.Verdict{Decision: lathe.Allow}
}
func (wants) Call(c *lathe.CallInfo) lathe.Verdict {
	if c.Tool.Effect == lathe.Writes {
		return lathe.Verdict{Decision: lathe.Ask, Rule: "writes"}
	}
	return lathe.Verdict{Decision: lathe.Allow, Rule: "reads"}
}

type approver func(*lathe.ApprovalRequest) (lathe.Approval, error)

func (a approver) Approve(_ context.Context, r *lathe.ApprovalRequest) (lathe.Approval, error) {
	return a(r)
}

func newLoop(t testing.TB, m lathe.Model, set *tool.Set, a lathe.Approver, s lathe.Settings, now func() time.Time) *loop.Loop {
	t.Helper()
	p := wants{policy.AllowAll()}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: p, Approver: a, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loop.New(m, runner, &loop.Options{Settings: s, Policy: p, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func upstream(kind lathe.UpstreamKind, status int, text string) *lathe.Error {
	return &lathe.Error{Code: lathe.CodeUpstream, Err: &lathe.UpstreamError{Kind: kind, Status: status, Message: text, RequestID: "up_0"}}
}

// export returns the run as it is exported, and reads it.
func export(t testing.TB, s store.Store, runID string) *replay.Record {
	t.Helper()
	var b bytes.Buffer
	for e, err := range s.Read(t.Context(), runID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		line, err := e.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	r, err := replay.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// play runs the record with stand-ins.
func play(t testing.TB, r *replay.Record, s lathe.Settings) *replay.Result {
	t.Helper()
	return playSearching(t, r, s, tool.Search{})
}

// playSearching is play over tools with a search.
func playSearching(t testing.TB, r *replay.Record, s lathe.Settings, search tool.Search) *replay.Result {
	t.Helper()
	set, err := tool.NewSetWithSearch(lathe.Limits{}, search, tools()...)
	if err != nil {
		t.Fatal(err)
	}
	if set, err = r.StandIns(set, lathe.Limits{}); err != nil {
		t.Fatal(err)
	}
	res, err := r.Run(t.Context(), func(p *replay.Parts) (*loop.Loop, error) { return newLoop(t, p.Model, set, p.Approver, s, p.Now), nil })
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// A run that is played again comes out as it was.
func TestComesOutTheSame(t *testing.T) {
	t.Parallel()
	done := answering{text: "Done."}
	for name, tt := range map[string]struct {
		turns    []answering
		settings lathe.Settings
		search   tool.Search
		in       loop.Input
		approve  approver
		resume   []map[string]lathe.Output // then it is gone on with, so often
	}{
		"an answer": {turns: []answering{done}},
		"tools":     {turns: []answering{{text: "I look.", calls: []lathe.ToolCall{call("a", "good", `{"x":1}`), call("", "good", `{"x":2}`)}}, {calls: []lathe.ToolCall{call("a", "good", `{}`)}}, done}},
		"failures": {turns: []answering{{calls: []lathe.ToolCall{call("a", "bad", ``), call("b", "told", ``), call("c", "says", `{}`), call("d", "long", ``),
			call("e", "nobody", `{}`), call("f", "good", `{"x":"no"}`), call("g", "good", `{`), call("h", "empty", `{}`)}}, done}},
		"envelopes":         {settings: lathe.Settings{ResultFormat: lathe.ResultEnvelope}, turns: []answering{{calls: []lathe.ToolCall{call("a", "good", ``), call("b", "told", ``), call("c", "says", ``), call("d", "bad", ``), call("e", "empty", ``)}}, done}},
		"compact envelopes": {settings: lathe.Settings{ResultFormat: lathe.ResultEnvelope, CompactEnvelope: true}, turns: []answering{{calls: []lathe.ToolCall{call("a", "good", ``), call("b", "told", ``), call("c", "says", ``)}}, done}},
		"side by side":      {settings: lathe.Settings{MaxParallel: 4}, turns: []answering{{calls: []lathe.ToolCall{call("a", "good", `{"x":1}`), call("b", "good", `{"x":2}`), call("c", "good", `{"x":3}`)}}, done}},
		"asked again":       {turns: []answering{{calls: []lathe.ToolCall{call("a", "good", ``)}}, {}, done}},
		"a search": {search: tool.Search{Mode: tool.SearchOn, Always: []string{"good"}}, turns: []answering{{calls: []lathe.ToolCall{call("a", tool.SearchName, `{"names":["told"]}`), call("b", "good", ``)}},
			{calls: []lathe.ToolCall{call("c", "told", ``), call("d", "says", ``)}}, done}},
		"enforced":          {settings: lathe.Settings{ToolUseMode: lathe.ModeEnforced}, turns: []answering{done}},
		"disabled":          {settings: lathe.Settings{ToolUseMode: lathe.ModeDisabled}, turns: []answering{{text: "Done.", calls: []lathe.ToolCall{call("a", "good", ``)}}}},
		"a retry":           {turns: []answering{{retry: upstream(lathe.Upstream5xx, 502, ""), text: "Done."}}},
		"unreadable":        {turns: []answering{{text: "I call.", bad: true}, done}},
		"repeated":          {settings: lathe.Settings{OnParseError: lathe.ParseErrorRetryWithout}, turns: []answering{{bad: true}, done}},
		"not repeated":      {settings: lathe.Settings{OnParseError: lathe.ParseErrorRetryWithout}, turns: []answering{{text: "I call.", bad: true}, done}},
		"a blank answer":    {turns: []answering{{}}},
		"an upstream error": {turns: []answering{{err: upstream(lathe.UpstreamRateLimited, 429, "")}}},
		"no tools upstream": {settings: lathe.Settings{FallbackRetryCount: 1}, turns: []answering{{err: upstream(lathe.Upstream4xx, 400, "tools are not supported")}, done}},
		"approved at once": {approve: func(*lathe.ApprovalRequest) (lathe.Approval, error) {
			return lathe.Approval{Approved: true, By: "ann", ReasonCode: "ok"}, nil
		}, turns: []answering{{calls: []lathe.ToolCall{call("a", "asked", `{"x":1}`)}}, done}},
		"edited": {approve: func(*lathe.ApprovalRequest) (lathe.Approval, error) {
			return lathe.Approval{Approved: true, By: "ann", Arguments: json.RawMessage(`{"x":7}`)}, nil
		}, turns: []answering{{calls: []lathe.ToolCall{call("a", "asked", `{"x":1}`)}}, done}},
		"answered": {approve: func(*lathe.ApprovalRequest) (lathe.Approval, error) {
			return lathe.Approval{Approved: true, By: "ann", Result: json.RawMessage(`{"x":"a person"}`)}, nil
		}, turns: []answering{{calls: []lathe.ToolCall{call("a", "asked", `{"x":1}`)}}, done}},
		"denied": {approve: func(*lathe.ApprovalRequest) (lathe.Approval, error) {
			return lathe.Approval{By: "bob", ReasonCode: "not_today"}, nil
		}, turns: []answering{{calls: []lathe.ToolCall{call("a", "asked", `{"x":1}`)}}, done}},
		"parked twice": {in: loop.Input{Park: true, Target: "t", Allow: []string{"asked", "good"}}, approve: func() approver {
			asked := 0
			return func(*lathe.ApprovalRequest) (lathe.Approval, error) {
				if asked++; asked < 3 {
					return lathe.Approval{}, lathe.ErrPending
				}
				return lathe.Approval{Approved: true, By: "ann"}, nil
			}
		}(), resume: []map[string]lathe.Output{nil, nil}, turns: []answering{{calls: []lathe.ToolCall{call("a", "good", ``), call("b", "asked", `{"x":1}`)}}, done}},
		"a client's tool": {in: loop.Input{Park: true, ClientTools: []*lathe.ToolSpec{{Name: "theirs", Owner: lathe.OwnerClient}}},
			resume: []map[string]lathe.Output{{"a": {Data: json.RawMessage(`{"it":"is"}`)}, "b": {IsError: true, Data: json.RawMessage(`"no"`)}}},
			turns:  []answering{{calls: []lathe.ToolCall{call("a", "theirs", `{}`), call("b", "theirs", `{}`), call("c", "good", ``)}}, done}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept := store.NewMemory(nil)
			e := newEngine(t, &engine.Options{Store: kept})
			set, err := tool.NewSetWithSearch(lathe.Limits{}, tt.search, tools()...)
			if err != nil {
				t.Fatal(err)
			}
			var a lathe.Approver
			if tt.approve != nil {
				a = tt.approve
			}
			l := newLoop(t, &scripted{turns: tt.turns}, set, a, tt.settings, nil)
			in := tt.in
			in.Run, in.Messages = lathe.RunInfo{RunID: "run_1", SessionID: "s", Principal: "ann", Labels: map[string]string{"k": "v"}}, []lathe.Message{lathe.User("Go.")}
			_, _ = e.Run(t.Context(), l, &in, nil)
			for _, answers := range tt.resume {
				if _, err := e.Resume(t.Context(), l, "run_1", answers); err != nil {
					t.Fatal(err)
				}
			}
			r := export(t, kept, "run_1")
			res := playSearching(t, r, tt.settings, tt.search)
			differences, err := r.Compare(res, true)
			if err != nil || len(differences) > 0 || len(res.Events) != len(r.Events) || len(r.Events) < 4 {
				t.Errorf("%d events, then %d; %v, %+v", len(r.Events), len(res.Events), err, differences)
			}
			if in.Park && !r.Ended() {
				t.Error("the run did not end")
			}
		})
	}
}

func record(t testing.TB, settings lathe.Settings) *replay.Record {
	t.Helper()
	kept := store.NewMemory(nil)
	set, err := tool.NewSet(tools()...)
	if err != nil {
		t.Fatal(err)
	}
	l := newLoop(t, &scripted{turns: []answering{{calls: []lathe.ToolCall{call("a", "good", `{"x":1}`)}}, {text: "Done."}}}, set, nil, settings, nil)
	in := &loop.Input{Run: lathe.RunInfo{RunID: "run_1"}, Messages: []lathe.Message{lathe.User("Go.")}, Park: true}
	if _, err := newEngine(t, &engine.Options{Store: kept}).Run(t.Context(), l, in, nil); err != nil {
		t.Fatal(err)
	}
	return export(t, kept, "run_1")
}

// What differs is said, and where.
func TestReportsWhatDiffers(t *testing.T) {
	t.Parallel()
	r := record(t, lathe.Settings{})
	res := play(t, r, lathe.Settings{ResultFormat: lathe.ResultEnvelope})
	differences, err := r.Compare(res, true)
	if err != nil || len(differences) == 0 {
		t.Fatalf("%v, %v", differences, err)
	}
	first := differences[0]
	if first.Type != "ToolCallResult" || first.Path != "content.result" || !strings.Contains(first.Now, "tool_name") || strings.Contains(first.Recorded, "tool_name") {
		t.Errorf("%+v", first)
	}
	res = play(t, r, lathe.Settings{ToolUseMode: lathe.ModeEnforced, StrictUnknownTool: true})
	if differences, err = r.Compare(res, true); err != nil || len(differences) != 1 || differences[0].Path != "data.tool_use_mode" {
		t.Errorf("%+v, %v", differences, err)
	}
	set, err := tool.NewSet(tools()[1:]...) // without the one that was called
	if err != nil {
		t.Fatal(err)
	}
	res, err = r.Run(t.Context(), func(p *replay.Parts) (*loop.Loop, error) {
		return newLoop(t, p.Model, set, p.Approver, lathe.Settings{}, p.Now), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	differences, err = r.Compare(res, true)
	last := differences[len(differences)-1]
	if err != nil || last.Recorded != "ToolCallExecuted" || last.Now != "ToolCallResult" {
		t.Errorf("%+v, %v", last, err)
	}
}

// A run from which the store had nothing to remove is replayed: the mark that the store wrote into the event is no difference.
func TestMarkOfRetentionIsNoDifference(t *testing.T) {
	t.Parallel()
	r := record(t, lathe.Settings{})
	res := play(t, r, lathe.Settings{})
	keep := event.RunRetention{Mode: "metrics_only", MaxOutputBytes: 2048}
	res.Events[0].Data.(*event.RunStarted).Retention = &keep
	applied := keep
	applied.Applied = true
	r.Events[0].Data.(*event.RunStarted).Retention = &applied
	if differences, err := r.Compare(res, true); err != nil || len(differences) != 0 {
		t.Errorf("%+v, %v", differences, err)
	}
	applied.MaxOutputBytes = 64
	if differences, err := r.Compare(res, true); err != nil || len(differences) != 1 {
		t.Errorf("%+v, %v", differences, err)
	}
}

// A record that ends before its run does, and one whose process ended in between, are compared as far
// as they go.
func TestComparesAsFarAsItGoes(t *testing.T) {
	t.Parallel()
	r := record(t, lathe.Settings{})
	for n := 1; n <= len(r.Events); n++ {
		cut := &replay.Record{Events: r.Events[:n]}
		if differences, err := cut.Compare(play(t, cut, lathe.Settings{}), true); err != nil || len(differences) > 0 {
			t.Errorf("%d events: %+v, %v", n, differences, err)
		}
	}
	crashed := &replay.Record{Events: append(r.Events[:4:4], event.Event{ID: 5, RunID: "run_1", Turn: 1, Data: &event.RunResumed{Reason: lathe.ReasonInterrupted, Pending: []string{"a"}}})}
	res := play(t, crashed, lathe.Settings{})
	if differences, err := crashed.Compare(res, true); err != nil || len(differences) > 0 || res.Until != 4 {
		t.Errorf("until %d: %+v, %v", res.Until, differences, err)
	}
}

func TestRefusesWhatIsNoRecord(t *testing.T) {
	t.Parallel()
	r := record(t, lathe.Settings{})
	line := func(i int, content bool) string {
		marshal := r.Events[i].MarshalData
		if content {
			marshal = r.Events[i].MarshalJSON
		}
		b, err := marshal()
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + "\n"
	}
	for text, want := range map[string]string{
		"":                            "no event",
		"hello\n":                     "line 1",
		line(0, false):                "written without texts",
		line(1, true):                 "event 2 where 1 is next",
		line(0, true) + line(2, true): "event 3 where 2 is next",
		line(0, true) + line(0, true): "event 1 where 2 is next",
		strings.Replace(line(0, true), `"data":{`, `"data":{"new":1,`, 1):                         "another version",
		line(0, true) + strings.Replace(line(1, true), `"run_id":"run_1"`, `"run_id":"run_2"`, 1): "another run",
		strings.Replace(line(0, true), `"type":"RunStarted"`, `"type":"RunBegun"`, 1):             "unknown event type",
	} {
		if _, err := replay.Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
	if got, err := replay.Read(strings.NewReader(line(0, true) + "\n" + `{"after":1,"n":1,"time":"2026-01-01T00:00:00Z","run_id":"run_1","request_id":"r","turn":1,"type":"TextDelta","data":{"bytes":1},"content":{"text":"x"}}` + "\n")); err != nil || len(got.Events) != 1 || got.Ended() {
		t.Errorf("%+v, %v", got, err)
	}
}

package lathetest

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/sim"
	"github.com/lathe-run/lathe/tool"
)

// scripted returns models whose turns have text and a call.
func scripted() lathe.Model {
	steps := make([]Step, 20)
	for i := range steps {
		steps[i] = Step{Text: "Let me look.", Calls: []lathe.ToolCall{{Name: "lookup", Arguments: `{"q":"Norwegen, größte Stadt"}`}}}
	}
	return NewModel(steps...)
}

func TestModelsThatKeepTheContract(t *testing.T) {
	t.Run("scripted", func(t *testing.T) { TestModel(t, scripted) })
	t.Run("sim", func(t *testing.T) { TestModel(t, func() lathe.Model { return sim.New(nil).Model("sim/demo") }) })
	t.Run("provider", func(t *testing.T) {
		TestModel(t, func() lathe.Model {
			m, err := provider.OpenAI("sim/demo", &provider.Options{BaseURL: "http://sim.invalid/v1", Transport: sim.New(nil).Transport()})
			if err != nil {
				t.Fatal(err)
			}
			return m
		})
	})
	t.Run("failing", func(t *testing.T) { TestModelError(t, func() lathe.Model { return NewModel(Fail(500)) }) })
}

// A broken model changes the turns of a model that keeps the contract.
type broken struct {
	lathe.Model
	generate func(ctx context.Context, next lathe.Model, req *lathe.Request, yield func(lathe.Delta, error) bool)
}

func (b broken) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) { b.generate(ctx, b.Model, req, yield) }
}

// changed returns a function that yields f of each delta; a delta without a kind is left out.
func changed(f func(lathe.Delta) lathe.Delta) func(context.Context, lathe.Model, *lathe.Request, func(lathe.Delta, error) bool) {
	return func(ctx context.Context, next lathe.Model, req *lathe.Request, yield func(lathe.Delta, error) bool) {
		for d, err := range next.Generate(ctx, req) {
			if err == nil {
				d = f(d)
			}
			if (err != nil || d.Kind != 0) && !yield(d, err) {
				return
			}
		}
	}
}

// finishing returns a function that changes the end of each turn.
func finishing(f func(*lathe.Finish)) func(context.Context, lathe.Model, *lathe.Request, func(lathe.Delta, error) bool) {
	return changed(func(d lathe.Delta) lathe.Delta {
		if d.Kind == lathe.DeltaFinish {
			f(d.Finish)
		}
		return d
	})
}

func TestModelChecksCatchBrokenModels(t *testing.T) {
	defer func(d time.Duration) { patience = d }(patience)
	patience = 50 * time.Millisecond
	stop := make(chan struct{})
	defer close(stop)
	type gen = func(ctx context.Context, next lathe.Model, req *lathe.Request, yield func(lathe.Delta, error) bool)
	for name, c := range map[string]struct {
		check func(func() lathe.Model) error
		gen   gen
		want  string
	}{
		"no end":       {checkOrder, func(context.Context, lathe.Model, *lathe.Request, func(lathe.Delta, error) bool) {}, "without a delta of kind DeltaFinish"},
		"only an end":  {checkOrder, changed(func(d lathe.Delta) lathe.Delta { return only(d, lathe.DeltaFinish) }), "no delta came"},
		"no call ends": {checkOrder, changed(func(d lathe.Delta) lathe.Delta { return except(d, lathe.DeltaCallEnd) }), "has no end"},
		"no call begins": {checkOrder, changed(func(d lathe.Delta) lathe.Delta { return except(d, lathe.DeltaCallStart) }),
			"has not begun"},
		"index from 1": {checkOrder, changed(func(d lathe.Delta) lathe.Delta { d.Index++; return d }), "want 0"},
		"other text": {checkOrder, changed(func(d lathe.Delta) lathe.Delta {
			if d.Kind == lathe.DeltaText {
				d.Text = strings.ToUpper(d.Text)
			}
			return d
		}), "the text of the deltas"},
		"lost arguments": {checkOrder, changed(func(d lathe.Delta) lathe.Delta { return except(d, lathe.DeltaCallArgs) }), "the arguments of call 0"},
		"wrong role":     {checkOrder, finishing(func(f *lathe.Finish) { f.Message.Role = lathe.RoleUser }), "role"},
		"wrong reason":   {checkOrder, finishing(func(f *lathe.Finish) { f.Reason = lathe.FinishStop }), "finish reason"},
		"lost calls":     {checkOrder, finishing(func(f *lathe.Finish) { f.Message.Parts = f.Message.Parts[:1] }), "the message has 0"},
		"no Finish":      {checkOrder, changed(func(d lathe.Delta) lathe.Delta { d.Finish = nil; return d }), "has no Finish"},
		"two ends": {checkOrder, func(ctx context.Context, next lathe.Model, req *lathe.Request, yield func(lathe.Delta, error) bool) {
			changed(func(d lathe.Delta) lathe.Delta { return d })(ctx, next, req, yield)
			yield(lathe.Delta{Kind: lathe.DeltaFinish}, nil)
		}, "yielded again"},
		"no usage":       {checkUsage, finishing(func(f *lathe.Finish) { f.Usage = lathe.Usage{} }), "zero"},
		"negative usage": {checkUsage, finishing(func(f *lathe.Finish) { f.Usage.CachedTokens = -1 }), "negative"},
		"odd usage":      {checkUsage, finishing(func(f *lathe.Finish) { f.Usage.CachedTokens = 1e6 }), "larger than the whole"},
		"changed request": {checkRequest, func(ctx context.Context, next lathe.Model, req *lathe.Request, yield func(lathe.Delta, error) bool) {
			req.Messages = append(req.Messages, lathe.User("Hurry."))
			changed(func(d lathe.Delta) lathe.Delta { return d })(ctx, next, req, yield)
		}, "changed its request"},
		"plain error": {checkOrder, func(_ context.Context, _ lathe.Model, _ *lathe.Request, yield func(lathe.Delta, error) bool) {
			yield(lathe.Delta{}, errors.New("no connection"))
		}, "not a *lathe.Error"},
		"deaf to its consumer": {checkEarlyStop, func(ctx context.Context, next lathe.Model, req *lathe.Request, yield func(lathe.Delta, error) bool) {
			for d, err := range next.Generate(ctx, req) {
				yield(d, err)
			}
		}, "yielded again"},
		"leaks": {checkEarlyStop, func(ctx context.Context, next lathe.Model, req *lathe.Request, yield func(lathe.Delta, error) bool) {
			go func() { <-stop }()
			changed(func(d lathe.Delta) lathe.Delta { return d })(ctx, next, req, yield)
		}, "a goroutine still runs"},
		"deaf to its context": {checkCancel, func(_ context.Context, next lathe.Model, req *lathe.Request, yield func(lathe.Delta, error) bool) {
			changed(func(d lathe.Delta) lathe.Delta { return d })(context.Background(), next, req, yield)
		}, "cancelled before it began succeeded"},
		"blocked": {checkCancel, func(context.Context, lathe.Model, *lathe.Request, func(lathe.Delta, error) bool) { <-stop }, "goes on"},
		"other code": {checkCancel, func(_ context.Context, _ lathe.Model, _ *lathe.Request, yield func(lathe.Delta, error) bool) {
			yield(lathe.Delta{}, &lathe.Error{Code: lathe.CodeInternal})
		}, "the code of a cancelled turn"},
		"fails beside others": {checkConcurrent, func(_ context.Context, _ lathe.Model, _ *lathe.Request, yield func(lathe.Delta, error) bool) {
			yield(lathe.Delta{}, &lathe.Error{Code: lathe.CodeConflict})
		}, "conflict"},
		"no error": {checkError, changed(func(d lathe.Delta) lathe.Delta { return d }), "succeeded"},
		"upstream error without its cause": {checkError, func(_ context.Context, _ lathe.Model, _ *lathe.Request, yield func(lathe.Delta, error) bool) {
			yield(lathe.Delta{}, &lathe.Error{Code: lathe.CodeUpstream})
		}, "does not wrap"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.check(func() lathe.Model { return broken{scripted(), c.gen} })
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the check says %v, want %q", err, c.want)
			}
		})
	}
}

func only(d lathe.Delta, k lathe.DeltaKind) lathe.Delta {
	if d.Kind != k {
		d.Kind = 0
	}
	return d
}

func except(d lathe.Delta, k lathe.DeltaKind) lathe.Delta {
	if d.Kind == k {
		d.Kind = 0
	}
	return d
}

// A shifty model has another description at each call.
type shifty struct {
	lathe.Model
	names []string
}

func (s *shifty) Describe() lathe.ModelInfo {
	name := s.names[0]
	s.names = s.names[1:]
	return lathe.ModelInfo{Provider: name, Model: name}
}

func TestDescriptionCheckCatchesBrokenModels(t *testing.T) {
	for want, names := range map[string][]string{"lacks the name": {""}, "and then as": {"a", "b"}} {
		err := checkDescription(func() lathe.Model { return &shifty{names: names} })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the check says %v, want %q", err, want)
		}
	}
}

type question struct {
	Q string `json:"q" jsonschema:"what to look up"`
}

func lookup(f func(context.Context, question) (string, error), o tool.FuncOptions) func() lathe.Tool {
	if f == nil {
		f = func(_ context.Context, q question) (string, error) { return "Facts about " + q.Q, nil }
	}
	o.Show = []string{"*"}
	return func() lathe.Tool { return tool.Func("lookup", "Looks a fact up.", f, &o) }
}

var questions = &Arguments{Good: []string{`{"q":"Oslo"}`}, Bad: []string{`{}`, `{"q":7}`, `{"q":"Oslo","x":1}`, `{"q`}}

func TestToolThatKeepsTheContract(t *testing.T) {
	TestTool(t, lookup(nil, tool.FuncOptions{Effect: lathe.ReadOnly}), questions)
}

type unstable struct{ lathe.Tool }

func (u unstable) Spec() *lathe.ToolSpec { return new(*u.Tool.Spec()) }

func TestToolChecksCatchBrokenTools(t *testing.T) {
	defer func(d time.Duration) { patience = d }(patience)
	patience = 50 * time.Millisecond
	stop := make(chan struct{})
	defer close(stop)
	ok := tool.FuncOptions{Effect: lathe.ReadOnly}
	for name, c := range map[string]struct {
		check func(func() lathe.Tool, *Arguments) error
		open  func() lathe.Tool
		args  *Arguments
		want  string
	}{
		"no effect":      {checkDefinition, lookup(nil, tool.FuncOptions{}), questions, "effect is not declared"},
		"invalid schema": {checkDefinition, lookup(nil, tool.FuncOptions{Effect: lathe.ReadOnly, Schema: json.RawMessage(`{"type":7}`)}), questions, "schema"},
		"no description": {checkDefinition, func() lathe.Tool {
			return tool.Func("lookup", "", func(context.Context, question) (string, error) { return "", nil }, &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}})
		}, questions, "description is empty"},
		"other definition at each call": {checkDefinition, func() lathe.Tool { return unstable{lookup(nil, ok)()} }, questions, "the same value"},
		"nothing to call":               {checkGood, lookup(nil, ok), &Arguments{}, "Good is empty"},
		"fails": {checkGood, lookup(func(context.Context, question) (string, error) { return "", errors.New("no connection") }, ok),
			questions, "execution_failed"},
		"takes everything": {checkBad, lookup(nil, tool.FuncOptions{Effect: lathe.ReadOnly, Schema: json.RawMessage(`{"type":"object"}`)}), &Arguments{Bad: []string{`{"q":"x"}`}}, "accepted"},
		"no bad arguments": {checkBad, lookup(nil, ok), &Arguments{Good: questions.Good}, "Bad is empty"},
		"panics":           {checkBad, lookup(func(context.Context, question) (string, error) { panic("index out of range") }, ok), &Arguments{Bad: []string{`{"q":"x"}`}}, "panic"},
		"unclear refusal": {checkBad, lookup(func(context.Context, question) (string, error) {
			return "", tool.Fail(lathe.CodeUnavailable, "no connection")
		}, ok), &Arguments{Bad: []string{`{"q":"x"}`}}, "does not say"},
		"deaf to its context": {checkContext, lookup(func(context.Context, question) (string, error) { <-stop; return "", nil }, ok), questions, "a goroutine still runs"},
		"fails beside others": {checkParallel, lookup(func(context.Context, question) (string, error) { return "", errors.New("busy") }, ok), questions, "beside others"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.check(c.open, c.args); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the check says %v, want %q", err, c.want)
			}
		})
	}
}

package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/tool"
)

// A turn is what a scripted model says: its deltas, then a finish or an error.
type turn struct {
	before []lathe.Delta
	finish lathe.Finish
	err    error
	block  bool // wait for the context before the end
	silent bool // neither finish nor error
}

// A script is a model that says its turns in order, and the last one again for ever.
type script struct {
	turns []turn
	info  lathe.ModelInfo

	mu    sync.Mutex
	asked []request
}

// A request is what a script was asked.
type request struct {
	messages []lathe.Message
	tools    []string
	choice   lathe.ToolChoice
	parallel *bool
}

func (s *script) Describe() lathe.ModelInfo { return s.info }

func (s *script) requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func (s *script) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	s.mu.Lock()
	t := s.turns[min(len(s.asked), len(s.turns)-1)]
	q := request{messages: slices.Clone(req.Messages), choice: req.ToolChoice, parallel: req.ParallelToolCalls}
	for _, spec := range req.Tools {
		q.tools = append(q.tools, spec.Name)
	}
	s.asked = append(s.asked, q)
	s.mu.Unlock()
	return func(yield func(lathe.Delta, error) bool) {
		for _, d := range t.before {
			if err := ctx.Err(); err != nil {
				yield(lathe.Delta{}, err)
				return
			}
			if !yield(d, nil) {
				return
			}
		}
		if t.block {
			<-ctx.Done()
			yield(lathe.Delta{}, ctx.Err())
			return
		}
		switch {
		case t.err != nil:
			yield(lathe.Delta{}, t.err)
		case !t.silent:
			f := t.finish
			f.Message.Parts = slices.Clone(f.Message.Parts)
			yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &f}, nil)
		}
	}
}

// textTurn is a turn of text.
func textTurn(text string) turn {
	t := turn{finish: lathe.Finish{Message: lathe.Assistant(text), Reason: lathe.FinishStop}}
	if text != "" {
		t.before = []lathe.Delta{{Kind: lathe.DeltaText, Text: text}}
	}
	t.finish.Usage = lathe.Usage{InputTokens: 10, OutputTokens: 5, TotalTokens: 15}
	return t
}

// ask is a turn of calls.
func ask(calls ...lathe.ToolCall) turn {
	t := turn{finish: lathe.Finish{Reason: lathe.FinishToolCalls, Message: lathe.Message{Role: lathe.RoleAssistant}}}
	for i, c := range calls {
		t.finish.Message.Parts = append(t.finish.Message.Parts, c)
		t.before = append(t.before,
			lathe.Delta{Kind: lathe.DeltaCallStart, Index: i, ID: c.ID, Name: c.Name},
			lathe.Delta{Kind: lathe.DeltaCallArgs, Index: i, Text: c.Arguments},
			lathe.Delta{Kind: lathe.DeltaCallEnd, Index: i})
	}
	t.finish.Usage = lathe.Usage{InputTokens: 10, OutputTokens: 5, TotalTokens: 15}
	return t
}

func (t turn) reason(r lathe.FinishReason) turn { t.finish.Reason = r; return t }
func (t turn) tokens(n int64) turn {
	t.finish.Usage = lathe.Usage{InputTokens: n, TotalTokens: n}
	return t
}
func (t turn) cost(c float64) turn { t.finish.ProviderCost = &c; return t }

func call(id, name, args string) lathe.ToolCall {
	return lathe.ToolCall{ID: id, Name: name, Arguments: args}
}

func fails(err error) turn { return turn{err: err} }

func upstream(status int, message string) error {
	kind := lathe.Upstream4xx
	if status >= 500 {
		kind = lathe.Upstream5xx
	}
	return &lathe.Error{Code: lathe.CodeUpstream, Op: "test", Err: &lathe.UpstreamError{Kind: kind, Status: status, Message: message}}
}

// A gadget is a tool made of a function.
type gadget struct {
	spec lathe.ToolSpec
	do   func(context.Context, json.RawMessage) (*lathe.Output, error)
}

func (g *gadget) Spec() *lathe.ToolSpec { return &g.spec }
func (g *gadget) Call(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	return g.do(ctx, args)
}

func newGadget(name string, do func(context.Context, json.RawMessage) (*lathe.Output, error)) *gadget {
	return &gadget{do: do, spec: lathe.ToolSpec{
		Name: name, Description: "does " + name, Effect: lathe.ReadOnly, Allowlist: []string{"*"},
		Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
	}}
}

// echo answers its arguments, each time with another number so that no answer repeats.
func echo(name string) *gadget {
	var mu sync.Mutex
	n := 0
	return newGadget(name, func(_ context.Context, args json.RawMessage) (*lathe.Output, error) {
		mu.Lock()
		defer mu.Unlock()
		n++
		return &lathe.Output{Data: json.RawMessage(fmt.Sprintf(`{"n":%d,"got":%s}`, n, args))}, nil
	})
}

func broken(name string) *gadget {
	return newGadget(name, func(context.Context, json.RawMessage) (*lathe.Output, error) {
		return nil, fmt.Errorf("out of order")
	})
}

// faulty breaks the rules of its memory.
func faulty(name string) *gadget {
	return newGadget(name, func(context.Context, json.RawMessage) (*lathe.Output, error) {
		return nil, tool.ErrGuestFault
	})
}

// anything allows everything.
type anything struct{}

func (anything) Tool(*lathe.RunInfo, *lathe.ToolSpec) lathe.Verdict {
	return lathe.Verdict{Decision: lathe.Allow}
}
func (anything) Step(*lathe.StepInfo) lathe.Verdict { return lathe.Verdict{Decision: lathe.Allow} }
func (anything) Call(*lathe.CallInfo) lathe.Verdict { return lathe.Verdict{Decision: lathe.Allow} }

func newRunner(t testing.TB, opts *tool.Options, tools ...lathe.Tool) *tool.Runner {
	t.Helper()
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	if opts == nil {
		opts = &tool.Options{Policy: anything{}}
	}
	runner, err := tool.NewRunner(set, opts)
	if err != nil {
		t.Fatal(err)
	}
	return runner
}

func newLoop(t testing.TB, m lathe.Model, opts *loop.Options, tools ...lathe.Tool) *loop.Loop {
	t.Helper()
	l, err := loop.New(m, newRunner(t, nil, tools...), opts)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func user(text string) *loop.Input {
	return &loop.Input{Run: lathe.RunInfo{RunID: "run_1"}, Messages: []lathe.Message{lathe.User(text)}}
}

// collect runs in and returns its result and its events, deltas copied.
func collect(t testing.TB, ctx context.Context, l *loop.Loop, in *loop.Input) (*event.Result, []event.Event) {
	t.Helper()
	var events []event.Event
	for e := range l.Run(ctx, in) {
		events = append(events, e)
	}
	if len(events) == 0 {
		t.Fatal("no event")
	}
	res := loop.Ended(events[len(events)-1].Data)
	if res == nil {
		t.Fatalf("the last event is %s", events[len(events)-1].Data.EventType())
	}
	return res, events
}

// types writes the event types in order.
func types(events []event.Event) string {
	var names []string
	for _, e := range events {
		names = append(names, e.Data.EventType())
	}
	return strings.Join(names, " ")
}

// all returns the events of one type.
func all[T event.Data](events []event.Event) []T {
	var out []T
	for _, e := range events {
		if d, ok := e.Data.(T); ok {
			out = append(out, d)
		}
	}
	return out
}

// shape writes a history in short: roles, calls and what answers them.
func shape(history []lathe.Message) string {
	var b strings.Builder
	for i := range history {
		m := &history[i]
		if i > 0 {
			b.WriteString(" | ")
		}
		b.WriteString(string(m.Role))
		if m.Synthetic {
			b.WriteString("*")
		}
		for _, p := range m.Parts {
			switch p := p.(type) {
			case lathe.Text:
				b.WriteString(" " + p.Text)
			case lathe.ToolCall:
				b.WriteString(" call:" + p.ID)
			case lathe.ToolResult:
				b.WriteString(" " + p.CallID + "=" + cmpOr(string(p.Code), "ok"))
			case lathe.Reasoning, lathe.Refusal, lathe.Blob:
				fmt.Fprintf(&b, " %T", p)
			}
		}
	}
	return b.String()
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// ticking is a clock that moves by a millisecond at each look.
func ticking() func() time.Time {
	var mu sync.Mutex
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		at = at.Add(time.Millisecond)
		return at
	}
}

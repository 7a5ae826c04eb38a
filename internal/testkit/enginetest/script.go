package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
)

// A Script lists the model's messages in one run, turn by turn. The last turn repeats.
type Script struct {
	Name     string
	Turns    []Turn
	Parallel int          // of the settings of its run: max_parallel_tool_calls
	Limits   lathe.Limits // of its run
}

// A Turn is one message of a model: text, calls, a message cut off by the output limit, or an error.
type Turn struct {
	Text  string
	Calls []lathe.ToolCall
	Cut   bool  // by the limit on the length of the output
	Err   error // instead of a message
	Retry error // of an attempt before, which the model repeats by itself
}

// The tools of the simulated world.
const (
	Look   = "look"    // only reads
	Put    = "put"     // is idempotent
	Pay    = "pay"     // writes, and is allowed
	AskPay = "ask_pay" // writes, and needs an approval
	AskPut = "ask_put" // is idempotent, and needs an approval
	Mine   = "mine"    // is the client's
	// Those below are only in [Conform].
	Book  = "book"  // writes, and its outcome can be checked
	Tell  = "tell"  // only reads, and returns a secret and what the model may not see
	Never = "never" // writes, and is denied
)

// effects of the tools that the server executes.
var effects = map[string]lathe.Effect{Look: lathe.ReadOnly, Put: lathe.Idempotent, Pay: lathe.Writes, AskPay: lathe.Writes, AskPut: lathe.Idempotent}

// asks reports whether calls of a tool need an approval.
func asks(tool string) bool { return tool == AskPay || tool == AskPut }

// Reply returns a turn of text.
func Reply(text string) Turn { return Turn{Text: text} }

// Ask returns a turn that calls the tools, each with arguments of its own.
func Ask(turn int, tools ...string) Turn {
	t := Turn{}
	for i, name := range tools {
		t.Calls = append(t.Calls, lathe.ToolCall{ID: fmt.Sprintf("c%d_%d", turn, i), Name: name, Arguments: fmt.Sprintf(`{"n":%d}`, turn*10+i)})
	}
	return t
}

// Scripts returns the scripts on which tests try each fault, at each point.
func Scripts() []Script {
	cut := Ask(1, Pay)
	cut.Cut = true
	return []Script{
		{Name: "text", Turns: []Turn{Reply("done")}},
		{Name: "one write", Turns: []Turn{Ask(1, Pay), Reply("done")}},
		{Name: "each effect", Turns: []Turn{Ask(1, Look, Put, Pay), Ask(2, Pay), Reply("done")}},
		{Name: "side by side", Parallel: 3, Turns: []Turn{Ask(1, Look, Look, Look, Pay), Reply("done")}},
		{Name: "asks", Turns: []Turn{Ask(1, AskPay), Reply("done")}},
		{Name: "asks in the middle", Turns: []Turn{Ask(1, Pay, AskPay, Look, AskPut, Pay), Reply("done")}},
		{Name: "the client's", Turns: []Turn{Ask(1, Mine, Pay), Reply("done")}},
		{Name: "cut", Turns: []Turn{cut}},
		{Name: "blank", Turns: []Turn{Ask(1, Pay), Reply(""), Reply("done")}},
		{Name: "unknown", Turns: []Turn{Ask(1, "nothing", Pay), Reply("done")}},
		{Name: "a limit", Turns: []Turn{Ask(1, Pay), Ask(2, Pay), Ask(3, Pay)}, Limits: lathe.Limits{MaxIterations: 2}},
	}
}

// randomScript returns a script that rng chooses: one of Scripts, or a new one.
func randomScript(rng *rand.Rand, name string) Script {
	if rng.IntN(3) == 0 {
		all := Scripts()
		s := all[rng.IntN(len(all))]
		s.Name = name
		return s
	}
	tools := []string{Look, Look, Put, Pay, Pay, AskPay, AskPut, Mine, "nothing"}
	s := Script{Name: name, Parallel: rng.IntN(4)}
	for n := 1 + rng.IntN(3); len(s.Turns) < n; {
		var names []string
		for range 1 + rng.IntN(4) {
			names = append(names, tools[rng.IntN(len(tools))])
		}
		s.Turns = append(s.Turns, Ask(len(s.Turns)+1, names...))
	}
	switch rng.IntN(8) {
	case 0:
		s.Turns[len(s.Turns)-1].Cut = true
	case 1:
		s.Turns = append(s.Turns, Turn{Err: &lathe.Error{Code: lathe.CodeUpstream, Op: "enginetest"}})
	case 2:
		s.Limits = lathe.Limits{MaxIterations: 1 + rng.IntN(2), MaxToolCalls: 2 + rng.IntN(3)}
	}
	s.Turns = append(s.Turns, Reply("done"))
	return s
}

// next returns the turn after the model's messages in the request.
func (s *Script) next(req *lathe.Request) Turn {
	done := 0
	for i := range req.Messages {
		if req.Messages[i].Role == lathe.RoleAssistant {
			done++
		}
	}
	return s.Turns[min(done, len(s.Turns)-1)]
}

// tokens is what each model call costs.
const tokens = 15

// A scriptModel is the model of a process. Its answer depends on the request alone, so that any process can resume any run.
type scriptModel struct {
	simulated
	p *Process
}

// Generate implements [lathe.Model].
func (m *scriptModel) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		id := req.Messages[0].Text() // the first message is the id of the run: see [Process.begin]
		w := m.p.sim.world
		script := w.script(id)
		t := script.next(req)
		if err := m.p.sim.act(ctx, m.p, PointModel, id, "model is asked", func() { w.countModelCall(id) }); err != nil {
			yield(lathe.Delta{}, err)
			return
		}
		t.deliver(req, yield)
	}
}

// deliver yields the message, or its error.
func (t *Turn) deliver(req *lathe.Request, yield func(lathe.Delta, error) bool) {
	var failed *lathe.Error
	if errors.As(t.Retry, &failed) && !yield(lathe.Delta{Kind: lathe.DeltaRetry, Retry: &lathe.Retry{Attempt: 1, Err: failed}}, nil) {
		return
	}
	if t.Err != nil {
		yield(lathe.Delta{}, t.Err)
		return
	}
	if t.Text != "" && !yield(lathe.Delta{Kind: lathe.DeltaText, Text: t.Text}, nil) {
		return
	}
	yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: t.finish(req)}, nil)
}

// finish returns the end of the turn. A request without tools gets no calls.
func (t *Turn) finish(req *lathe.Request) *lathe.Finish {
	f := &lathe.Finish{Reason: lathe.FinishStop, Message: lathe.Message{Role: lathe.RoleAssistant},
		Usage: lathe.Usage{InputTokens: tokens - 5, OutputTokens: 5, TotalTokens: tokens}}
	if t.Text != "" {
		f.Message.Parts = append(f.Message.Parts, lathe.Text{Text: t.Text})
	}
	if len(t.Calls) > 0 && len(req.Tools) > 0 {
		f.Reason = lathe.FinishToolCalls
		for _, c := range t.Calls {
			f.Message.Parts = append(f.Message.Parts, c)
		}
	} else if t.Text == "" && len(t.Calls) > 0 {
		f.Message.Parts = append(f.Message.Parts, lathe.Text{Text: "without tools"})
	}
	if t.Cut {
		f.Reason = lathe.FinishLength
	}
	return f
}

// simulated describes the models of this package.
type simulated struct{}

// Describe implements [lathe.Model].
func (simulated) Describe() lathe.ModelInfo {
	return lathe.ModelInfo{Provider: "sim", Model: "script"}
}

// A gadget is a tool that all processes share. The context of a call contains the process.
type gadget struct{ spec lathe.ToolSpec }

// gadgets are the tools of every process. They are made only once, since that takes longer than most simulations.
var gadgets = sync.OnceValue(func() *tool.Set {
	var tools []lathe.Tool
	for name, effect := range effects {
		tools = append(tools, &gadget{spec: lathe.ToolSpec{Name: name, Description: "does " + name, Effect: effect, Allowlist: []string{"*"},
			Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`)}})
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		panic(err)
	}
	return set
})

type processKey struct{}

// Spec implements [lathe.Tool].
func (g *gadget) Spec() *lathe.ToolSpec { return &g.spec }

// Call implements [lathe.Tool]. The world changes between two points at which the process may end.
func (g *gadget) Call(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	meta, p := lathe.CallMetaFrom(ctx), ctx.Value(processKey{}).(*Process)
	sim := p.sim
	what := g.spec.Name + " " + meta.CallID
	d := Deed{RunID: meta.RunID, CallID: meta.CallID, Tool: g.spec.Name, Key: meta.IdempotencyKey, Args: slices.Clone(args), Process: p.name}
	if err := sim.act(ctx, p, PointEffect, meta.RunID, what, func() { sim.world.addDeed(&d) }); err != nil {
		return nil, err
	}
	if err := sim.halt(ctx, p, PointReturn, meta.RunID, what+" returns"); err != nil {
		return nil, err
	}
	return &lathe.Output{Data: json.RawMessage(fmt.Sprintf(`{"did":%q}`, meta.CallID))}, nil
}

// clientTools are what each run's client declares.
func clientTools() []*lathe.ToolSpec {
	return []*lathe.ToolSpec{{Name: Mine, Description: "the client's", Owner: lathe.OwnerClient, Schema: json.RawMessage(`{"type":"object"}`)}}
}

// judge is the policy of every process.
type judge struct{}

func verdict(d lathe.Decision) lathe.Verdict { return lathe.Verdict{Decision: d, Rule: "sim"} }

func (judge) Tool(*lathe.RunInfo, *lathe.ToolSpec) lathe.Verdict { return verdict(lathe.Allow) }
func (judge) Step(*lathe.StepInfo) lathe.Verdict                 { return verdict(lathe.Allow) }
func (judge) Call(c *lathe.CallInfo) lathe.Verdict {
	if asks(c.Tool.Name) {
		return verdict(lathe.Ask)
	}
	return verdict(lathe.Allow)
}

package enginetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/tool"
)

// The tools, the policy and the model of the processes of a scenario of [Conform].

// environmentSecret is what [Tell] returns, and the model must not see.
const environmentSecret = "correct-horse-battery"

// environmentEffects are the tools of the environment.
var environmentEffects = func() map[string]lathe.Effect {
	m := maps.Clone(effects)
	m[Book], m[Tell], m[Never] = lathe.Writes, lathe.ReadOnly, lathe.Writes
	return m
}()

// environmentPolicy is the policy of every process.
type environmentPolicy struct{ judge }

// Call implements [lathe.Policy].
func (j environmentPolicy) Call(c *lathe.CallInfo) lathe.Verdict {
	if c.Tool.Name == Never {
		return verdict(lathe.Deny)
	}
	return j.judge.Call(c)
}

// hostTools returns the tools of a process.
func hostTools(h *Host) []lathe.Tool {
	var tools []lathe.Tool
	for _, name := range slices.Sorted(maps.Keys(environmentEffects)) {
		t := &hostTool{host: h, spec: lathe.ToolSpec{Name: name, Description: "does " + name, Effect: environmentEffects[name], Allowlist: []string{"did"},
			Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`)}}
		if name == Book {
			tools = append(tools, &checkedTool{t})
		} else {
			tools = append(tools, t)
		}
	}
	return tools
}

// A hostTool is a tool of one process. Its executions are in the world, which outlives the process.
type hostTool struct {
	host *Host
	spec lathe.ToolSpec
}

// Spec implements [lathe.Tool].
func (t *hostTool) Spec() *lathe.ToolSpec { return &t.spec }

// Call implements [lathe.Tool]. The effect comes before the point at which the call is held.
func (t *hostTool) Call(ctx context.Context, args json.RawMessage) (*lathe.Output, error) {
	if t.host.Killed() {
		return nil, errDead
	}
	meta := lathe.CallMetaFrom(ctx)
	t.host.environment.world.addDeed(&Deed{RunID: meta.RunID, CallID: meta.CallID, Tool: t.spec.Name, Key: meta.IdempotencyKey, Args: bytes.Clone(args), Process: t.host.Name})
	if err := t.host.environment.block(ctx, t.host, t.spec.Name); err != nil {
		return nil, err
	}
	return t.output(meta), nil
}

func (t *hostTool) output(meta *lathe.CallMeta) *lathe.Output {
	did := meta.CallID
	if t.spec.Name == Tell {
		did = "the key is " + environmentSecret
	}
	return &lathe.Output{Data: json.RawMessage(fmt.Sprintf(`{"did":%q,"hidden":"not for the model"}`, did))}
}

// A checkedTool is a hostTool that knows which of its calls were executed.
type checkedTool struct{ *hostTool }

var _ tool.OutcomeChecker = (*checkedTool)(nil)

// CheckOutcome implements [tool.OutcomeChecker].
func (t *checkedTool) CheckOutcome(_ context.Context, call *lathe.CallMeta) (tool.Recovery, error) {
	for _, d := range t.host.environment.world.deedsOf(call.RunID) {
		if d.Key == call.IdempotencyKey {
			return tool.Recovery{Outcome: tool.RecoveryDone, Output: t.output(call)}, nil
		}
	}
	return tool.Recovery{Outcome: tool.RecoveryNotRun}, nil
}

// An environmentModel is the model of one process. The script of the scenario says what it answers.
type environmentModel struct {
	simulated
	host *Host
}

// Generate implements [lathe.Model].
func (m *environmentModel) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		s := m.host.environment
		if err := s.block(ctx, m.host, "model"); err != nil {
			yield(lathe.Delta{}, err)
			return
		}
		turn := s.scenario.script.next(req)
		turn.deliver(req, yield)
	}
}

package agent

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/tool"
)

// A Handoff is another agent to which the conversation can be handed over: see Options.Handoffs.
type Handoff struct {
	Model lathe.Model // required
	// Options configure the other agent. Name is required. If Policy is nil, it is [policy.Default]; if Approver, Loop.Now or Log is nil,
	// it is that of the agent with the Handoffs. Handoffs, MaxTransfers, Store, Sinks and MaxRuns must not be set.
	Options Options
}

const (
	// transferPrefix begins the names of the tools that hand a conversation over.
	transferPrefix = "transfer_to_"
	// defaultTransfers is the default of Options.MaxTransfers.
	defaultTransfers = 8
)

// A member is one of the agents that a conversation can be with.
type member struct {
	name  string
	tools *tool.Set
	loop  *loop.Loop
}

// active returns the member that answers next: that of the last successful transfer in the messages, or the first one. A transfer is a call
// of the model with a result of role tool; the name in the result does not count. A transfer to a member that the program does not have any
// more does not count.
func (a *parts) active(messages []lathe.Message) *member {
	if len(a.members) == 1 {
		return &a.members[0]
	}
	succeeded := map[string]bool{} // the calls of the next message of the model, by id
	for _, m := range slices.Backward(messages) {
		for _, p := range slices.Backward(m.Parts) {
			switch p := p.(type) {
			case lathe.ToolResult:
				succeeded[p.CallID] = m.Role == lathe.RoleTool && !p.IsError
			case lathe.ToolCall:
				if to := a.transferred(p.Name); to != nil && m.Role == lathe.RoleAssistant && succeeded[p.ID] {
					return to
				}
			default: // neither a call nor a result
			}
		}
		if m.Role == lathe.RoleAssistant {
			clear(succeeded)
		}
	}
	return &a.members[0]
}

// transferred returns the member to which a call with this name hands the conversation over, as package tool finds the tool of a name:
// without surrounding white space, and with underscores in place of dots if no tool has the name with dots. nil: the call is no transfer.
func (a *parts) transferred(call string) *member {
	call = strings.TrimSpace(call)
	for _, spelling := range []string{call, strings.ReplaceAll(call, ".", "_")} {
		name, ok := strings.CutPrefix(spelling, transferPrefix)
		if !ok || name == "" {
			continue
		}
		for i := range a.members {
			if a.members[i].name == name {
				return &a.members[i]
			}
		}
	}
	return nil
}

// asking returns the member whose calls wait in a run.
func (a *parts) asking(ctx context.Context, runID string) *member {
	if len(a.members) == 1 {
		return &a.members[0]
	}
	s, err := a.engine.State(ctx, runID)
	if err != nil {
		return &a.members[0]
	}
	for i, m := range slices.Backward(s.Messages) {
		if len(s.Open) > 0 && m.Role == lathe.RoleAssistant { // the message with the calls
			return a.active(s.Messages[:i])
		}
	}
	return a.active(s.Messages)
}

// checkHandoffs returns an error for the first handoff that is not valid.
func checkHandoffs(o *Options) error {
	fail := func(format string, args ...any) error {
		return lathe.CodeInvalidConfig.Errorf("agent: new", format, args...)
	}
	if o.MaxTransfers < 0 {
		return fail("MaxTransfers is %d, want more than 0", o.MaxTransfers)
	}
	seen := map[string]bool{o.Name: true}
	for i := range o.Handoffs {
		switch p := &o.Handoffs[i]; {
		case p.Options.Name == "":
			return fail("handoff %d has no name: set Options.Name, which the name of its transfer tool has", i)
		case seen[p.Options.Name]:
			return fail("two agents have the name %q", p.Options.Name)
		case isNil(p.Model):
			return fail("the handoff %s has no model", p.Options.Name)
		case p.Options.Store != nil, p.Options.Sinks != nil, p.Options.MaxRuns != 0, p.Options.Handoffs != nil, p.Options.MaxTransfers != 0:
			return fail("the handoff %s has a store, sinks, handoffs, MaxRuns or MaxTransfers: those of the first agent apply", p.Options.Name)
		default:
			seen[p.Options.Name] = true
		}
	}
	return nil
}

// transfers returns the tools with which the agent of this name hands the conversation over to the others: o and its handoffs.
func transfers(name string, o *Options) (tools []lathe.Tool) {
	if len(o.Handoffs) == 0 {
		return nil
	}
	others := []*Options{o}
	for i := range o.Handoffs {
		others = append(others, &o.Handoffs[i].Options)
	}
	for _, other := range others {
		if other.Name == name || other.Name == "" {
			continue
		}
		done := "The conversation is handed over to " + other.Name + "."
		tools = append(tools, tool.Func(transferPrefix+other.Name, strings.TrimSpace("Hands the conversation over to "+other.Name+", which answers from then on. "+other.Description),
			func(context.Context, struct {
				Reason string `json:"reason,omitempty" jsonschema:"what the other agent needs to know"`
			}) (string, error) {
				return done, nil
			}, &tool.FuncOptions{Effect: lathe.ReadOnly}))
	}
	return tools
}

// A transferLimit is a policy that denies transfers beyond a number per run.
type transferLimit struct {
	lathe.Policy
	agents *parts // whose members are the targets of transfers
	max    int
}

// Call implements [lathe.Policy].
func (p transferLimit) Call(c *lathe.CallInfo) lathe.Verdict {
	made := 0
	for _, u := range c.Used {
		if p.agents.transferred(u.Name) != nil {
			made += u.Calls
		}
	}
	if p.agents.transferred(c.Tool.Name) != nil && made >= p.max {
		return lathe.Verdict{Rule: "max_transfers", Reason: fmt.Sprintf("the run has made %d transfers: answer the user", made)}
	}
	return p.Policy.Call(c)
}

// addHandoffs adds the members that a conversation can be handed over to.
func (a *parts) addHandoffs(o *Options) error {
	for i := range o.Handoffs {
		p := o.Handoffs[i].Options
		p.Approver, p.Log = cmp.Or(p.Approver, o.Approver, o.Runner.Approver), cmp.Or(p.Log, o.Log)
		if p.Loop.Now == nil {
			p.Loop.Now = o.Loop.Now
		}
		if err := a.add(o.Handoffs[i].Model, &p, o); err != nil {
			return fmt.Errorf("agent: handoff %s: %w", p.Name, err)
		}
	}
	return nil
}

// isNil reports whether a model is nil, or a pointer that is nil.
func isNil(model lathe.Model) bool {
	v := reflect.ValueOf(model)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

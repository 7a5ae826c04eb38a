package outside

import (
	"context"
	"slices"

	"github.com/lathe-run/lathe"
)

// A Gate is a policy: tools in Closed are denied, other tools that only read are allowed, and the rest requires an approval.
type Gate struct{ Closed []string }

// Tool implements lathe.Policy.
func (g Gate) Tool(_ *lathe.RunInfo, spec *lathe.ToolSpec) lathe.Verdict {
	switch {
	case slices.Contains(g.Closed, spec.Name):
		return lathe.Verdict{Decision: lathe.Deny, Rule: "gate.closed", Reason: "the tool is closed"}
	case spec.Effect == lathe.ReadOnly:
		return lathe.Verdict{Decision: lathe.Allow, Rule: "gate.read_only"}
	default:
		return lathe.Verdict{Decision: lathe.Ask, Rule: "gate.writes", Reason: "the tool changes something"}
	}
}

// Step implements lathe.Policy.
func (Gate) Step(*lathe.StepInfo) lathe.Verdict {
	return lathe.Verdict{Decision: lathe.Allow, Rule: "gate.step"}
}

// Call implements lathe.Policy.
func (g Gate) Call(c *lathe.CallInfo) lathe.Verdict { return g.Tool(c.Run, c.Tool) }

// A Reviewer is an approver that approves the calls of the listed tools and refuses all others.
type Reviewer []string

// Approve implements lathe.Approver.
func (r Reviewer) Approve(_ context.Context, req *lathe.ApprovalRequest) (lathe.Approval, error) {
	if slices.Contains(r, req.Tool.Name) {
		return lathe.Approval{Approved: true, By: "reviewer"}, nil
	}
	return lathe.Approval{By: "reviewer", ReasonCode: "not_listed"}, nil
}

package tool

import (
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
)

// The rules of verdicts that the runner gives in place of a policy.
const (
	ruleNoPolicy    = "no_policy"
	rulePolicyPanic = "policy_panic"
)

// authorize is stage 6: the grants of secrets, then the policy. A call that needs an approval is denied if no approver
// is configured.
func authorize(c *call) ending {
	if end := checkTokens(c); end != proceed {
		return end
	}
	opts, d, used := &c.w.r.opts, &c.kept.description, c.used
	if c.judged { // with other arguments, and the policy may have kept it
		d = new(description)
	}
	if c.planned == nil {
		used = slices.Clone([]lathe.ToolUse(c.w.used))
	}
	c.info = c.describe(d)
	c.info.Used = used
	c.verdict, c.judged = judgeCall(opts.Policy, c.info), true
	switch c.verdict.Decision {
	case lathe.Allow:
		return proceed
	case lathe.Ask:
		if opts.Approver != nil {
			return proceed
		}
	default:
		c.verdict.Decision = lathe.Deny
	}
	if c.verdict.Reason != "" {
		c.detailString("reason", text.Cut(c.verdict.Reason, maxDetailBytes))
	}
	return fail(lathe.CodePolicyDenied)
}

// A description is what policies, journals, approvers and error handlers get of a call. They may keep it: it does not
// change after it was passed to them.
type description struct {
	info  lathe.CallInfo
	asked lathe.ToolCall // of info
}

// describe fills d, which must be new. Its arguments are empty until they have been parsed.
func (c *call) describe(d *description) *lathe.CallInfo {
	d.asked = c.ToolCall
	d.info = lathe.CallInfo{Run: c.w.info, Turn: c.turn, Seq: c.seq, Call: &d.asked, Tool: c.spec()}
	if c.parsed {
		d.info.Args = c.args
	}
	return &d.info
}

// spec returns the definition of the called tool, also of one that the client executes. It is never nil.
func (c *call) spec() *lathe.ToolSpec {
	if c.entry != nil {
		return c.entry.spec
	}
	if _, spec := c.w.tools.known(c.Name); spec != nil {
		return spec
	}
	return &lathe.ToolSpec{Name: c.tool}
}

// judgeCall asks the policy about a call. No policy and one that panics deny it.
func judgeCall(p lathe.Policy, info *lathe.CallInfo) (v lathe.Verdict) {
	if p == nil {
		return lathe.Verdict{Rule: ruleNoPolicy}
	}
	defer func() {
		if recover() != nil {
			v = lathe.Verdict{Rule: rulePolicyPanic}
		}
	}()
	return p.Call(info)
}

// judgeTool asks the policy about offering a tool. No policy and one that panics deny it.
func judgeTool(p lathe.Policy, run *lathe.RunInfo, spec *lathe.ToolSpec) (v lathe.Verdict) {
	if p == nil {
		return lathe.Verdict{Rule: ruleNoPolicy}
	}
	defer func() {
		if recover() != nil {
			v = lathe.Verdict{Rule: rulePolicyPanic}
		}
	}()
	return p.Tool(run, spec)
}

package tool

import (
	"slices"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
)

// The rules of verdicts that the runner itself returns.
const (
	ruleNoPolicy    = "no_policy"
	rulePolicyPanic = "policy_panic"
)

// authorize is stage 6: it checks the grants of secrets, and then calls the policy. A call that requires an approval is denied if no
// approver is configured.
func authorize(c *call) ending {
	if end := checkTokens(c); end != proceed {
		return end
	}
	opts, used := &c.w.r.opts, c.used
	if c.planned == nil {
		used = slices.Clone(c.w.used)
	}
	c.info = c.describe()
	c.info.Used = used
	c.verdict, c.judged = judge(opts.Policy, func() lathe.Verdict { return opts.Policy.Call(c.info) }), true
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

// describe returns a description of the call for policies, journals, approvers and error handlers, which may retain it. Args is nil until
// the arguments have been parsed.
func (c *call) describe() *lathe.CallInfo {
	asked := c.ToolCall
	info := &lathe.CallInfo{Run: c.w.info, Turn: c.turn, Seq: c.seq, Call: &asked, Tool: c.spec()}
	if c.parsed {
		info.Args = c.args
	}
	return info
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

// judge returns the verdict that ask obtains from the policy. If there is no policy or it panics, the verdict is Deny.
func judge(p lathe.Policy, ask func() lathe.Verdict) (v lathe.Verdict) {
	if p == nil {
		return lathe.Verdict{Rule: ruleNoPolicy}
	}
	defer func() {
		if recover() != nil {
			v = lathe.Verdict{Rule: rulePolicyPanic}
		}
	}()
	return ask()
}

// judgeTool returns the verdict of the policy on offering a tool.
func judgeTool(p lathe.Policy, run *lathe.RunInfo, spec *lathe.ToolSpec) lathe.Verdict {
	return judge(p, func() lathe.Verdict { return p.Tool(run, spec) })
}

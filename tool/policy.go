package tool

import "github.com/lathe-run/lathe"

// The rules of verdicts that no policy gave.
const (
	ruleNoPolicy    = "no_policy"
	rulePolicyPanic = "policy_panic"
)

// denied is stage 6: what the policy says of this call. An Ask that nobody can answer is a no.
func (w *Work) denied(c *call) (ended bool) {
	info := w.describe(c)
	if info.Used = c.used; c.planned == nil {
		info.Used = w.used
	}
	c.verdict, c.judged = w.judge(info), true
	info.Used = nil // for policies only
	switch c.verdict.Decision {
	case lathe.Allow:
		return false
	case lathe.Ask:
		if w.r.opts.Approver != nil {
			return false
		}
	default:
		c.verdict.Decision = lathe.Deny
	}
	if c.verdict.Reason != "" {
		c.detailString("reason", clip(c.verdict.Reason, maxDetailBytes))
	}
	return c.end(lathe.CodePolicyDenied)
}

// describe says what policies and journals are told of the call. It is good until the next call of the lane is described.
func (w *Work) describe(c *call) *lathe.CallInfo {
	l := c.lane
	l.asked = c.ToolCall
	l.info = lathe.CallInfo{Run: w.info, Turn: c.turn, Seq: c.seq, Call: &l.asked, Tool: c.entry.spec, Args: c.args}
	return &l.info
}

// info is what describe has said of the call, for those who may keep it.
func (c *call) info() *lathe.CallInfo {
	info, asked := c.lane.info, c.ToolCall
	info.Call = &asked
	return &info
}

func (w *Work) judge(info *lathe.CallInfo) (v lathe.Verdict) {
	if w.r.opts.Policy == nil {
		return lathe.Verdict{Rule: ruleNoPolicy}
	}
	defer func() {
		if recover() != nil {
			v = lathe.Verdict{Rule: rulePolicyPanic}
		}
	}()
	return w.r.opts.Policy.Call(info)
}

func (w *Work) judgeTool(spec *lathe.ToolSpec) (v lathe.Verdict) {
	if w.r.opts.Policy == nil {
		return lathe.Verdict{Rule: ruleNoPolicy}
	}
	defer func() {
		if recover() != nil {
			v = lathe.Verdict{Rule: rulePolicyPanic}
		}
	}()
	return w.r.opts.Policy.Tool(w.info, spec)
}

package tool

import "github.com/lathe-run/lathe"

// The rules of verdicts that no policy gave.
const (
	ruleNoPolicy    = "no_policy"
	rulePolicyPanic = "policy_panic"
)

// denied is stage 6: what the policy says of this call. An Ask that nobody can answer is a no.
func (w *Work) denied(c *call) (ended bool) {
	f := c.facts
	f.call = c.ToolCall
	f.info = lathe.CallInfo{Run: w.info, Turn: c.turn, Seq: c.seq, Call: &f.call, Tool: c.entry.spec, Args: c.args, Used: c.used}
	if c.planned == nil {
		f.info.Used = w.used
	}
	c.verdict, c.judged = w.judge(&f.info), true
	f.info.Used = nil // others may keep what they are told
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

package policy

import (
	"slices"

	"github.com/lathe-run/lathe"
)

// All combines policies: Deny takes precedence over Ask, and Ask over Allow; a call is allowed only if all
// policies allow it. The order of the policies does not matter. Among equal decisions the verdict of a guard
// is returned first, because it describes what the run has done, then the one whose rule and reason sort
// first. Without policies All denies, and so does a nil policy.
func All(policies ...lathe.Policy) lathe.Policy { return all(slices.Clone(policies)) }

type all []lathe.Policy

func (a all) Tool(run *lathe.RunInfo, spec *lathe.ToolSpec) lathe.Verdict {
	out := noVerdict
	for i, p := range a {
		v := missing
		if p != nil {
			v = p.Tool(run, spec)
		}
		out = strictest(i, out, v)
	}
	return out
}

func (a all) Step(s *lathe.StepInfo) lathe.Verdict {
	out := noVerdict
	for i, p := range a {
		v := missing
		if p != nil {
			v = p.Step(s)
		}
		out = strictest(i, out, v)
	}
	return out
}

func (a all) Call(c *lathe.CallInfo) lathe.Verdict {
	out := noVerdict
	for i, p := range a {
		v := missing
		if p != nil {
			v = p.Call(c)
		}
		out = strictest(i, out, v)
	}
	return out
}

// The verdicts of no policy, and of one that is nil.
var (
	noVerdict = lathe.Verdict{Rule: ruleEmpty, Reason: "no policy decides"}
	missing   = lathe.Verdict{Rule: ruleMissing, Reason: "a policy is missing"}
)

// strictest returns v, the verdict of policy i, or out, that of the policies before it. It is no method that is given a function: each
// request asks about each tool, and such a function would be allocated each time.
func strictest(i int, out, v lathe.Verdict) lathe.Verdict {
	if i == 0 || stricter(v, out) {
		return v
	}
	return out
}

// stricter is a total order of verdicts, so that the result of All does not depend on the order of the policies.
func stricter(a, b lathe.Verdict) bool {
	if ra, rb := rank(a.Decision), rank(b.Decision); ra != rb {
		return ra < rb
	}
	if a.Rule != b.Rule {
		if ta, tb := relevance(a.Rule), relevance(b.Rule); ta != tb {
			return ta < tb
		}
		return a.Rule < b.Rule
	}
	return a.Reason < b.Reason
}

// relevance returns the rank of a rule among those of a verdict: the reason that an approver needs most has the lowest number, a guard
// that let the call pass the highest.
func relevance(rule string) int {
	switch rule {
	case RuleTrifecta:
		return 0
	case RuleTaint:
		return 1
	case ruleGuardPassed:
		return 3
	default:
		return 2
	}
}

func rank(d lathe.Decision) int {
	switch d {
	case lathe.Allow:
		return 2
	case lathe.Ask:
		return 1
	default:
		return 0
	}
}

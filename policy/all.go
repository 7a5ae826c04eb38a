package policy

import (
	"slices"

	"github.com/lathe-run/lathe"
)

// All returns a policy that combines several policies, whatever their order. Its verdict is the strictest one: Deny before Ask before
// Allow. If several policies have that decision, it is the verdict of a [Trifecta], else that of a [Taint], else the one whose rule and
// reason sort first. The policy denies if policies is empty or contains nil.
func All(policies ...lathe.Policy) lathe.Policy { return all(slices.Clone(policies)) }

type all []lathe.Policy

func (a all) Tool(run *lathe.RunInfo, spec *lathe.ToolSpec) lathe.Verdict {
	return a.strictest(func(p lathe.Policy) lathe.Verdict { return p.Tool(run, spec) })
}

func (a all) Step(s *lathe.StepInfo) lathe.Verdict {
	return a.strictest(func(p lathe.Policy) lathe.Verdict { return p.Step(s) })
}

func (a all) Call(c *lathe.CallInfo) lathe.Verdict {
	return a.strictest(func(p lathe.Policy) lathe.Verdict { return p.Call(c) })
}

// noVerdict is the verdict of All without policies, missing that of a nil policy.
var (
	noVerdict = lathe.Verdict{Rule: ruleEmpty, Reason: "no policy decides"}
	missing   = lathe.Verdict{Rule: ruleMissing, Reason: "a policy is missing"}
)

// strictest calls ask with each policy and returns the strictest verdict.
func (a all) strictest(ask func(lathe.Policy) lathe.Verdict) lathe.Verdict {
	out := noVerdict
	for i, p := range a {
		v := missing
		if p != nil {
			v = ask(p)
		}
		if i == 0 || stricter(v, out) {
			out = v
		}
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

// relevance returns the sort rank of a rule: lowest for the guards, whose reasons an approver needs most, and highest for a guard that let
// the call pass.
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

// rank returns d, or Deny for an unknown decision.
func rank(d lathe.Decision) lathe.Decision {
	if d > lathe.Allow {
		return lathe.Deny
	}
	return d
}

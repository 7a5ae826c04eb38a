package policy

import (
	"slices"

	"github.com/lathe-run/lathe"
)

// All combines policies: one that denies wins over all others, then one that asks; only what all
// of them allow is allowed. The order of the policies does not matter: among equal decisions the
// guards are told first, for they know what the run has done, then the rule and reason that sort
// first. No policy at all, and a nil one, deny.
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

func (a all) strictest(ask func(lathe.Policy) lathe.Verdict) lathe.Verdict {
	out := lathe.Verdict{Rule: RuleEmpty, Reason: "no policy decides"}
	for i, p := range a {
		v := lathe.Verdict{Rule: RuleMissing, Reason: "a policy is missing"}
		if p != nil {
			v = ask(p)
		}
		if i == 0 || stricter(v, out) {
			out = v
		}
	}
	return out
}

// stricter orders verdicts totally, so that the least of them does not depend on where one starts.
func stricter(a, b lathe.Verdict) bool {
	if ra, rb := rank(a.Decision), rank(b.Decision); ra != rb {
		return ra < rb
	}
	if a.Rule != b.Rule {
		if ta, tb := telling(a.Rule), telling(b.Rule); ta != tb {
			return ta < tb
		}
		return a.Rule < b.Rule
	}
	return a.Reason < b.Reason
}

// telling orders rules by what a person has to know first. A guard that lets pass is not what allows.
func telling(rule string) int {
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

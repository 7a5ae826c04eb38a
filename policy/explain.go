package policy

import "github.com/lathe-run/lathe"

// A Finding is the result of one rule for a call.
type Finding struct {
	Rule     string
	Decision lathe.Decision // of the rule for calls that it matches
	Matched  bool           // the rule matches the call
	Decides  bool           // the verdict is that of this rule; set by [Explain] only
	// Source is the place where the rule is configured, such as "policy.rules.NAME"; "": not known.
	Source string
	// Why says why the rule matches or does not. It may quote arguments: show it only to the author of the arguments.
	Why string
}

// An Explainer is a policy that reports the result of each of its rules.
type Explainer interface {
	// Explain returns the findings for a call, in the order in which the policy tries its rules. It must not set Decides.
	Explain(*lathe.CallInfo) []Finding
}

// Explain returns the verdict of p on a call, and the findings of p. For a policy of [All], these are the findings of the combined
// policies, in their order. A policy that is not an [Explainer] has one finding, its verdict. A nil p denies.
func Explain(p lathe.Policy, c *lathe.CallInfo) (lathe.Verdict, []Finding) {
	v := lathe.Verdict{Rule: ruleMissing}
	if p != nil {
		v = p.Call(c)
	}
	findings := explain(p, c)
	for i := range findings {
		findings[i].Decides = findings[i].Matched && findings[i].Rule == v.Rule && findings[i].Decision == v.Decision
	}
	return v, findings
}

func explain(p lathe.Policy, c *lathe.CallInfo) []Finding {
	if e, ok := p.(Explainer); ok {
		return e.Explain(c)
	}
	v := missing
	if p != nil {
		v = p.Call(c)
	}
	if v.Rule == ruleGuardPassed {
		return []Finding{guardFinding(p)}
	}
	return []Finding{{Rule: v.Rule, Decision: v.Decision, Matched: true, Why: v.Reason}}
}

// guardFinding returns the finding of a guard that let the call pass.
func guardFinding(p lathe.Policy) Finding {
	f := Finding{Rule: ruleGuardPassed, Why: "it does not hold the call back"}
	switch g := p.(type) {
	case Trifecta:
		f.Rule, f.Decision = RuleTrifecta, g.Decision
	case Taint:
		f.Rule, f.Decision = RuleTaint, g.Decision
	case Budget:
		f.Rule = "budget"
	case Disabled:
		f.Rule, f.Decision, f.Why = ruleDisabled, lathe.Deny, "the tool is enabled"
	}
	return f
}

// Explain returns the findings of all policies, in their order.
func (a all) Explain(c *lathe.CallInfo) []Finding {
	var out []Finding
	for _, p := range a {
		out = append(out, explain(p, c)...)
	}
	return out
}

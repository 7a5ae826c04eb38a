package policy

import "github.com/lathe-run/lathe"

// A Finding says what one rule makes of a call.
type Finding struct {
	Rule     string
	Decision lathe.Decision // what the rule says where it matches
	Matched  bool
	Decides  bool // it is the rule of the verdict
	// Why says why the rule matches or does not. It may tell of the arguments and is for whoever wrote them.
	Why string
}

// An Explainer is a policy that can tell of each of its rules.
type Explainer interface {
	Explain(*lathe.CallInfo) []Finding
}

// Explain returns the policy's verdict on a call and what each rule makes of it, as far as the
// policies can tell.
func Explain(p lathe.Policy, c *lathe.CallInfo) (lathe.Verdict, []Finding) {
	v := lathe.Verdict{Rule: RuleMissing}
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
	v := lathe.Verdict{Rule: RuleMissing, Reason: "a policy is missing"}
	if p != nil {
		v = p.Call(c)
	}
	if v.Rule == ruleGuardPassed {
		return []Finding{guardFinding(p)}
	}
	return []Finding{{Rule: v.Rule, Decision: v.Decision, Matched: true, Why: v.Reason}}
}

// guardFinding says of a guard that it let the call pass.
func guardFinding(p lathe.Policy) Finding {
	f := Finding{Rule: ruleGuardPassed, Why: "it does not hold the call back"}
	switch g := p.(type) {
	case Trifecta:
		f.Rule, f.Decision = RuleTrifecta, g.Decision
	case Taint:
		f.Rule, f.Decision = RuleTaint, g.Decision
	case Budget:
		f.Rule = "budget"
	}
	return f
}

// Explain tells what each of the policies makes of the call.
func (a all) Explain(c *lathe.CallInfo) []Finding {
	var out []Finding
	for _, p := range a {
		out = append(out, explain(p, c)...)
	}
	return out
}

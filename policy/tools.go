package policy

import (
	"slices"

	"github.com/lathe-run/lathe"
)

// Tools is a policy that decides by the exact name of a tool. If a name is in several lists, Deny takes precedence over Ask, and Ask over
// Allow. The lists must not change while the policy is in use.
type Tools struct {
	Allow []string
	Ask   []string
	Deny  []string
	Else  lathe.Policy // decides about names in no list, and about model calls; nil denies such names and allows model calls
}

var _ lathe.Policy = Tools{}

// Tool returns the verdict for the name of the tool, or that of Else if no list contains the name.
func (t Tools) Tool(run *lathe.RunInfo, spec *lathe.ToolSpec) lathe.Verdict {
	if v, ok := t.byName(spec.Name); ok || t.Else == nil {
		return v
	}
	return t.Else.Tool(run, spec)
}

// Step returns the verdict of Else, or Allow if Else is nil.
func (t Tools) Step(s *lathe.StepInfo) lathe.Verdict {
	if t.Else == nil {
		return stepAllowed()
	}
	return t.Else.Step(s)
}

// Call returns the verdict for the name of the tool, or that of Else if no list contains the name.
func (t Tools) Call(c *lathe.CallInfo) lathe.Verdict {
	if v, ok := t.byName(c.Tool.Name); ok || t.Else == nil {
		return v
	}
	return t.Else.Call(c)
}

func (t Tools) byName(name string) (v lathe.Verdict, listed bool) {
	switch {
	case slices.Contains(t.Deny, name):
		return lathe.Verdict{Decision: lathe.Deny, Rule: RuleDenied, Reason: "this tool is not allowed"}, true
	case slices.Contains(t.Ask, name):
		return lathe.Verdict{Decision: lathe.Ask, Rule: RuleAsked}, true
	case slices.Contains(t.Allow, name):
		return allow(RuleAllowed), true
	}
	return lathe.Verdict{Decision: lathe.Deny, Rule: ruleUnlisted, Reason: "this tool is not on the list of allowed tools"}, false
}

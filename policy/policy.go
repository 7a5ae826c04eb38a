// Package policy holds ready-made policies: by the effect of a tool, by its name, guards over the tools that
// a run has used, budgets, and combinations.
//
// Policies have no state and no side effects: the same input gives the same verdict, on any goroutine. A
// call is denied unless a policy allows it explicitly. Rule names and reasons are fixed text, so that they
// may appear in events, in metrics and in what a model reads.
package policy

import "github.com/lathe-run/lathe"

// The rules of the policies of this package.
const (
	RuleAllowAll = "allow_all"
	ruleEmpty    = "all.empty"   // an All of nothing
	ruleMissing  = "all.missing" // a nil policy among those of an All
	ruleUnlisted = "tools.unlisted"
	RuleAllowed  = "tools.allow"
	RuleAsked    = "tools.ask"
	RuleDenied   = "tools.deny"

	ruleEffect = "effect."
	ruleStep   = "step" // policies that decide calls only do not restrict model calls
)

// AllowAll allows every tool, call and step. It is for programs that trust both the model and the
// tools, and for tests.
func AllowAll() lathe.Policy { return allowAll{} }

type allowAll struct{}

func (allowAll) Tool(*lathe.RunInfo, *lathe.ToolSpec) lathe.Verdict {
	return lathe.Verdict{Decision: lathe.Allow, Rule: RuleAllowAll}
}

func (allowAll) Step(*lathe.StepInfo) lathe.Verdict {
	return lathe.Verdict{Decision: lathe.Allow, Rule: RuleAllowAll}
}

func (allowAll) Call(*lathe.CallInfo) lathe.Verdict {
	return lathe.Verdict{Decision: lathe.Allow, Rule: RuleAllowAll}
}

// stepAllowed is the verdict on a step of policies that decide calls only.
func stepAllowed() lathe.Verdict { return lathe.Verdict{Decision: lathe.Allow, Rule: ruleStep} }

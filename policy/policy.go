// Package policy contains ready-made policies: by the effect of a tool, by its name, guards that depend on the tools that a run has used,
// budgets, and combinations.
//
// Policies have no state and no side effects: for the same input they return the same verdict, on any goroutine. A call is denied unless a
// policy allows it explicitly. Rule names and reasons are fixed texts, so that they may appear in events, in metrics and in results for the
// model.
package policy

import "github.com/lathe-run/lathe"

// Values of [lathe.Verdict].Rule in verdicts of the policies of this package.
const (
	RuleAllowAll = "allow_all"   // the policy is [AllowAll]
	ruleEmpty    = "all.empty"   // an All without policies
	ruleMissing  = "all.missing" // a nil policy in an All
	ruleUnlisted = "tools.unlisted"
	RuleAllowed  = "tools.allow" // the list Allow of [Tools] contains the name
	RuleAsked    = "tools.ask"   // the list Ask of [Tools] contains the name
	RuleDenied   = "tools.deny"  // the list Deny of [Tools] contains the name

	ruleEffect = "effect."
	ruleStep   = "step" // a step, by a policy that decides only calls
)

// AllowAll returns a policy that allows everything. It is for tests, and for programs that trust both the model and the tools.
func AllowAll() lathe.Policy { return allowAll{} }

type allowAll struct{}

func (allowAll) Tool(*lathe.RunInfo, *lathe.ToolSpec) lathe.Verdict { return allow(RuleAllowAll) }
func (allowAll) Step(*lathe.StepInfo) lathe.Verdict                 { return allow(RuleAllowAll) }
func (allowAll) Call(*lathe.CallInfo) lathe.Verdict                 { return allow(RuleAllowAll) }

func allow(rule string) lathe.Verdict { return lathe.Verdict{Decision: lathe.Allow, Rule: rule} }

// stepAllowed is the verdict on a model call of policies that decide only calls.
func stepAllowed() lathe.Verdict { return allow(ruleStep) }

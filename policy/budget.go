package policy

import (
	"github.com/lathe-run/lathe"
)

// The rules of the verdicts of a Budget.
const (
	ruleBudgetCalls  = "budget.calls"
	ruleBudgetTools  = "budget.tools"
	ruleBudgetTokens = "budget.tokens"
	ruleBudgetCost   = "budget.cost"
)

// Budget is a policy that limits what one run uses. A zero field sets no limit. Budget allows everything else: combine it with other
// policies by [All].
//
// Tokens and Cost limit model calls; they have an effect only if the policy is set in [loop.Options]. Since the tokens and the cost of a
// model call are known only after it, a run may exceed them by one model call. Calls and Tools limit tool calls; they have an effect only
// if the policy is set in [tool.Options].
//
// [loop.Options]: https://pkg.go.dev/github.com/lathe-run/lathe/loop#Options
// [tool.Options]: https://pkg.go.dev/github.com/lathe-run/lathe/tool#Options
type Budget struct {
	Calls  int            // the maximum number of calls in which a tool ran; those before the run do not count
	Tools  map[string]int // the maximum number of calls of all tools whose name matches the pattern (see [Match]); 0 or less allows none
	Tokens int64          // the maximum number of tokens, as [lathe.Usage.Total] counts them
	Cost   float64        // the maximum cost of model calls, in US dollars
}

var _ lathe.Policy = Budget{}

// Tool denies a tool if a pattern in Tools with a maximum of 0 or less matches its name, and allows all others.
func (b Budget) Tool(_ *lathe.RunInfo, spec *lathe.ToolSpec) lathe.Verdict {
	for pattern, bound := range b.Tools {
		if bound <= 0 && Match(pattern, spec.Name) {
			return spent(ruleBudgetTools)
		}
	}
	return guardPassed()
}

// Step denies a model call if the run has reached Tokens or Cost, and allows it otherwise.
func (b Budget) Step(s *lathe.StepInfo) lathe.Verdict {
	switch {
	case b.Tokens > 0 && s.Usage.Total() >= b.Tokens:
		return spent(ruleBudgetTokens)
	case b.Cost > 0 && s.Cost >= b.Cost:
		return spent(ruleBudgetCost)
	}
	return stepAllowed()
}

// Call denies a call if the run has reached Calls, or the maximum of a pattern in Tools that matches the name of the tool. It allows all
// others.
func (b Budget) Call(c *lathe.CallInfo) lathe.Verdict {
	if b.Calls > 0 && uses(c, "") >= b.Calls {
		return spent(ruleBudgetCalls)
	}
	for pattern, bound := range b.Tools {
		if Match(pattern, c.Tool.Name) && uses(c, pattern) >= bound {
			return spent(ruleBudgetTools)
		}
	}
	return guardPassed()
}

// uses returns the number of calls of the run to tools that match a pattern.
func uses(c *lathe.CallInfo, pattern string) int {
	n := 0
	for _, u := range c.Used {
		if Match(pattern, u.Name) {
			n += u.Calls
		}
	}
	return n
}

func spent(rule string) lathe.Verdict {
	return lathe.Verdict{Decision: lathe.Deny, Rule: rule, Reason: "the budget of this run is used up"}
}

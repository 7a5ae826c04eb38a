package policy

import "github.com/lathe-run/lathe"

// ruleDisabled is the rule of the verdicts by which [Disabled] denies.
const ruleDisabled = "disabled"

// Disabled is a policy that denies the tools for which Is returns true, such as those that an operator disables while runs use them. It
// allows all others: combine it with other policies by [All].
type Disabled struct {
	// Is is called for each decision with the name of the tool, from several goroutines at once. nil denies every tool.
	Is func(tool string) bool
}

// Tool denies a disabled tool, so that models are not offered it.
func (d Disabled) Tool(_ *lathe.RunInfo, spec *lathe.ToolSpec) lathe.Verdict {
	return d.verdict(spec.Name)
}

// Step allows every model call.
func (Disabled) Step(*lathe.StepInfo) lathe.Verdict { return stepAllowed() }

// Call denies the calls of a disabled tool, also in runs that began before it was disabled.
func (d Disabled) Call(c *lathe.CallInfo) lathe.Verdict { return d.verdict(c.Tool.Name) }

func (d Disabled) verdict(name string) lathe.Verdict {
	if d.Is == nil || d.Is(name) {
		return lathe.Verdict{Decision: lathe.Deny, Rule: ruleDisabled, Reason: "an operator has disabled this tool"}
	}
	return guardPassed()
}

package policy

import "github.com/lathe-run/lathe"

// Values of [lathe.Verdict].Rule in verdicts of the guards, which depend on the tools that the run has used.
const (
	RuleTrifecta = "trifecta" // a [Trifecta] has decided
	RuleTaint    = "taint"    // a [Taint] has decided

	ruleGuardPassed = "guard.passed"
)

// Trifecta is a policy that protects against prompt injection. It returns Decision for the call with which a run would have used tools with
// all of the labels [lathe.LabelReadsPrivate], [lathe.LabelReadsUntrusted] and [lathe.LabelCanExfiltrate], in any order, and for later
// calls of tools with one of these labels. A tool also counts as used if the messages with which the run started contain a result of it.
// Trifecta allows everything else: combine it with other policies by [All].
type Trifecta struct {
	Decision lathe.Decision // zero: Deny; Allow has no effect
	Labels   Labels         // in addition to those of [lathe.ToolSpec]
}

var _ lathe.Policy = Trifecta{}

var legs = [...]string{lathe.LabelReadsPrivate, lathe.LabelReadsUntrusted, lathe.LabelCanExfiltrate}

// Tool allows every tool, because Decision depends on the tools that the run has used.
func (Trifecta) Tool(*lathe.RunInfo, *lathe.ToolSpec) lathe.Verdict { return guardPassed() }

// Step allows every model call.
func (Trifecta) Step(*lathe.StepInfo) lathe.Verdict { return stepAllowed() }

// Call returns Decision if the tool has one of the three labels and the run, after this call, would have used tools with all three.
func (t Trifecta) Call(c *lathe.CallInfo) lathe.Verdict {
	own := false
	for _, leg := range legs {
		has := t.Labels.Has(c.Tool.Name, c.Tool, leg)
		own = own || has
		if !has && !t.Labels.used(c, leg) {
			return guardPassed()
		}
	}
	if !own || t.Decision == lathe.Allow {
		return guardPassed()
	}
	return lathe.Verdict{Decision: t.Decision, Rule: RuleTrifecta,
		Reason: "this run would have read private data and untrusted content, and could send data out"}
}

// Taint is a policy that protects against prompt injection. After a run has used a tool with the label [lathe.LabelReadsUntrusted], it
// returns Decision for calls of tools whose effect is not read-only, because the untrusted text may have caused them. A tool also counts as
// used if the messages with which the run started contain a result of it. Taint allows everything else: combine it with other policies by
// [All].
type Taint struct {
	Decision lathe.Decision // zero: Deny; Allow has no effect
	Labels   Labels         // in addition to those of [lathe.ToolSpec]
}

var _ lathe.Policy = Taint{}

// Tool allows every tool, because Decision depends on the tools that the run has used.
func (Taint) Tool(*lathe.RunInfo, *lathe.ToolSpec) lathe.Verdict { return guardPassed() }

// Step allows every model call.
func (Taint) Step(*lathe.StepInfo) lathe.Verdict { return stepAllowed() }

// Call returns Decision if the effect of the tool is not read-only and the run has used a tool with the label [lathe.LabelReadsUntrusted].
func (t Taint) Call(c *lathe.CallInfo) lathe.Verdict {
	if c.Tool.Effect == lathe.ReadOnly || t.Decision == lathe.Allow || !t.Labels.used(c, lathe.LabelReadsUntrusted) {
		return guardPassed()
	}
	return lathe.Verdict{Decision: t.Decision, Rule: RuleTaint, Reason: "this run has read untrusted content"}
}

func guardPassed() lathe.Verdict { return allow(ruleGuardPassed) }

package policy

import "github.com/lathe-run/lathe"

// The rules of the verdicts of guards.
const (
	RuleTrifecta = "trifecta"
	RuleTaint    = "taint"

	ruleGuardPassed = "guard.passed"
)

// Trifecta applies Decision to the call by which a run would have used tools of three kinds: one that reads private data, one that reads
// untrusted text, and one that can send data out. The order of the kinds does not matter. Later calls of tools of these kinds get Decision,
// too. The zero value denies. Combine it with other policies by [All].
type Trifecta struct {
	Decision lathe.Decision
	Labels   Labels
}

var _ lathe.Policy = Trifecta{}

var legs = [...]string{lathe.LabelReadsPrivate, lathe.LabelReadsUntrusted, lathe.LabelCanExfiltrate}

// Tool allows every tool, because the result depends on the run.
func (Trifecta) Tool(*lathe.RunInfo, *lathe.ToolSpec) lathe.Verdict { return guardPassed() }

// Step allows every model call.
func (Trifecta) Step(*lathe.StepInfo) lathe.Verdict { return stepAllowed() }

// Call returns Decision if the call is of a tool of one of the three kinds, and with it the run would have used all three.
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

// Taint applies Decision to calls that change something after the run has used a tool that reads untrusted text, because this text may have
// caused the call. The zero value denies. Combine it with other policies by [All].
type Taint struct {
	Decision lathe.Decision
	Labels   Labels
}

var _ lathe.Policy = Taint{}

// Tool allows every tool, because the result depends on the run.
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

func guardPassed() lathe.Verdict { return lathe.Verdict{Decision: lathe.Allow, Rule: ruleGuardPassed} }

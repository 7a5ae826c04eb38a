package policy

import "github.com/lathe-run/lathe"

// The rules of the guards.
const (
	RuleTrifecta = "trifecta"
	RuleTaint    = "taint"

	ruleGuardPassed = "guard.passed"
)

// Trifecta applies Decision to the call with which a run would have used tools of all three kinds: one that
// reads private data, one that reads untrusted text, and one that can send data
// out. The order of the kinds does not matter; further calls of labelled tools get Decision, too.
// The zero value denies. Combine it with other policies by [All].
type Trifecta struct {
	Decision lathe.Decision
	Labels   Labels
}

var _ lathe.Policy = Trifecta{}

var legs = [...]string{lathe.LabelReadsPrivate, lathe.LabelReadsUntrusted, lathe.LabelCanExfiltrate}

// Tool allows, because the result depends on the run.
func (Trifecta) Tool(*lathe.RunInfo, *lathe.ToolSpec) lathe.Verdict { return guardPassed() }

// Step allows.
func (Trifecta) Step(*lathe.StepInfo) lathe.Verdict { return stepAllowed() }

// Call returns Decision for a call of a labelled tool with which all three kinds would be in use.
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

// Taint applies Decision to calls that change something, after the run has used a tool that reads untrusted
// text, because that text may have caused the call. The zero value denies. Combine it with other policies by [All].
type Taint struct {
	Decision lathe.Decision
	Labels   Labels
}

var _ lathe.Policy = Taint{}

// Tool allows, because the result depends on the run.
func (Taint) Tool(*lathe.RunInfo, *lathe.ToolSpec) lathe.Verdict { return guardPassed() }

// Step allows.
func (Taint) Step(*lathe.StepInfo) lathe.Verdict { return stepAllowed() }

// Call returns Decision for a call that does more than read, if the run has used a tool
// with the label [lathe.LabelReadsUntrusted].
func (t Taint) Call(c *lathe.CallInfo) lathe.Verdict {
	if c.Tool.Effect == lathe.ReadOnly || t.Decision == lathe.Allow || !t.Labels.used(c, lathe.LabelReadsUntrusted) {
		return guardPassed()
	}
	return lathe.Verdict{Decision: t.Decision, Rule: RuleTaint, Reason: "this run has read untrusted content"}
}

func guardPassed() lathe.Verdict { return lathe.Verdict{Decision: lathe.Allow, Rule: ruleGuardPassed} }

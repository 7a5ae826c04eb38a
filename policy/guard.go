package policy

import "github.com/lathe-run/lathe"

// The rules of the guards.
const (
	RuleTrifecta = "trifecta"
	RuleTaint    = "taint"

	ruleGuardPassed = "guard.passed"
)

// Trifecta holds back the call with which a run would have used tools of all three kinds: one that
// reads private data, one that reads what strangers may have written, and one that can carry data
// out. Whatever their order, the third kind gets Decision, and so does each further call of such a
// tool. The zero value denies it. It is combined with other policies by [All].
type Trifecta struct {
	Decision lathe.Decision
	Labels   Labels
}

var _ lathe.Policy = Trifecta{}

var legs = [...]string{lathe.LabelReadsPrivate, lathe.LabelReadsUntrusted, lathe.LabelCanExfiltrate}

// Tool allows: whether a call is the third depends on the run.
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

// Taint holds back tools that change something once the run has used a tool that reads what
// strangers may have written: their words may be behind the call. The zero value denies. It is
// combined with other policies by [All].
type Taint struct {
	Decision lathe.Decision
	Labels   Labels
}

var _ lathe.Policy = Taint{}

// Tool allows: whether the run has read such content is not known yet.
func (Taint) Tool(*lathe.RunInfo, *lathe.ToolSpec) lathe.Verdict { return guardPassed() }

// Step allows.
func (Taint) Step(*lathe.StepInfo) lathe.Verdict { return stepAllowed() }

// Call returns Decision for a call of a tool that does not only read, in a run that has used one
// with the label [lathe.LabelReadsUntrusted].
func (t Taint) Call(c *lathe.CallInfo) lathe.Verdict {
	if c.Tool.Effect == lathe.ReadOnly || t.Decision == lathe.Allow || !t.Labels.used(c, lathe.LabelReadsUntrusted) {
		return guardPassed()
	}
	return lathe.Verdict{Decision: t.Decision, Rule: RuleTaint, Reason: "this run has read untrusted content"}
}

func guardPassed() lathe.Verdict { return lathe.Verdict{Decision: lathe.Allow, Rule: ruleGuardPassed} }

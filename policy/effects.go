package policy

import "github.com/lathe-run/lathe"

// Effects decides by the declared effect of a tool. The zero value denies every call.
// A tool without a declared effect counts as one that writes. The rule is "effect." and the
// effect's name.
type Effects struct {
	ReadOnly   lathe.Decision
	Idempotent lathe.Decision
	Writes     lathe.Decision
}

var _ lathe.Policy = Effects{}

// Default allows tools that only read, and asks about all others.
func Default() Effects {
	return Effects{ReadOnly: lathe.Allow, Idempotent: lathe.Ask, Writes: lathe.Ask}
}

// Tool returns the verdict on the tool's effect.
func (e Effects) Tool(_ *lathe.RunInfo, spec *lathe.ToolSpec) lathe.Verdict { return e.verdict(spec) }

// Step allows.
func (Effects) Step(*lathe.StepInfo) lathe.Verdict { return stepAllowed() }

// Call returns the verdict on the tool's effect.
func (e Effects) Call(c *lathe.CallInfo) lathe.Verdict { return e.verdict(c.Tool) }

func (e Effects) verdict(spec *lathe.ToolSpec) lathe.Verdict {
	switch spec.Effect {
	case lathe.ReadOnly:
		return effectVerdict(e.ReadOnly, ruleEffect+"read_only")
	case lathe.Idempotent:
		return effectVerdict(e.Idempotent, ruleEffect+"idempotent")
	default:
		return effectVerdict(e.Writes, ruleEffect+"writes")
	}
}

func effectVerdict(d lathe.Decision, rule string) lathe.Verdict {
	v := lathe.Verdict{Decision: d, Rule: rule}
	if d == lathe.Deny {
		v.Reason = "tools with this effect are not allowed"
	}
	return v
}

package policy

import "github.com/lathe-run/lathe"

// Effects is a policy that decides by the declared effect of a tool. The zero value denies every call. The rule of its verdict is "effect."
// and the name of the effect, such as "effect.read_only".
type Effects struct {
	ReadOnly   lathe.Decision // for tools of effect [lathe.ReadOnly]
	Idempotent lathe.Decision // for tools of effect [lathe.Idempotent]
	Writes     lathe.Decision // for all other tools
}

var _ lathe.Policy = Effects{}

// Default returns the policy that allows tools that only read, and requires an approval for all other tools, including those that declare
// no effect.
func Default() Effects {
	return Effects{ReadOnly: lathe.Allow, Idempotent: lathe.Ask, Writes: lathe.Ask}
}

// Tool returns the verdict for the effect of the tool.
func (e Effects) Tool(_ *lathe.RunInfo, spec *lathe.ToolSpec) lathe.Verdict { return e.verdict(spec) }

// Step allows every model call.
func (Effects) Step(*lathe.StepInfo) lathe.Verdict { return stepAllowed() }

// Call returns the verdict for the effect of the tool.
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

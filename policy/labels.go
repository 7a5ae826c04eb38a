package policy

import (
	"slices"

	"github.com/lathe-run/lathe"
)

// Labels are additional labels of tools, by a pattern of [Match] for the tool's name. The map must not change while a policy uses it.
type Labels map[string][]string

// Has reports whether the tool has the label. spec may be nil.
func (l Labels) Has(name string, spec *lathe.ToolSpec, label string) bool {
	if spec != nil && slices.Contains(spec.Labels, label) {
		return true
	}
	for pattern, labels := range l {
		if slices.Contains(labels, label) && Match(pattern, name) {
			return true
		}
	}
	return false
}

// Of returns the labels of the tool, sorted, each once. spec may be nil.
func (l Labels) Of(name string, spec *lathe.ToolSpec) []string {
	var out []string
	if spec != nil {
		out = append(out, spec.Labels...)
	}
	for pattern, labels := range l {
		if Match(pattern, name) {
			out = append(out, labels...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// used reports whether the run has used a tool with the label.
func (l Labels) used(c *lathe.CallInfo, label string) bool {
	return slices.ContainsFunc(c.Used, func(u lathe.ToolUse) bool { return l.Has(u.Name, u.Spec, label) })
}

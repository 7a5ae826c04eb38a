package policy

import (
	"slices"

	"github.com/lathe-run/lathe"
)

// Labels maps patterns of tool names (see [Match]) to labels that these tools have besides those of their [lathe.ToolSpec]. nil: none. The map
// must not change while a policy uses it.
type Labels map[string][]string

// Has reports whether spec or an entry of l gives the tool the label. spec may be nil.
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

// Of returns the labels that spec and the entries of l give the tool, sorted, each once. spec may be nil.
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

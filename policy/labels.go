package policy

import (
	"slices"

	"github.com/lathe-run/lathe"
)

// Labels maps patterns of tool names (see [Match]) to labels that the matching tools have in addition to those of their [lathe.ToolSpec].
// nil: none. The map must not change while a policy uses it.
type Labels map[string][]string

// Has reports whether a tool has the label, from spec or from an entry of l that matches its name. spec may be nil.
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

// Of returns the labels of a tool, from spec and from the entries of l that match its name: sorted, each once. spec may be nil.
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

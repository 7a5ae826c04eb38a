package config

import "strings"

// A Setting describes one key of the section tool_calling, for programs that offer it as a flag.
type Setting struct {
	Key     string // from the top: "tool_calling.max_iterations"
	Flag    string // "max-iterations"
	Default string // as one would write it
	Doc     string
}

// RunSettings returns the settings and limits of runs, in the order of the reference.
func RunSettings() []Setting {
	c := &Config{}
	var out []Setting
	for _, k := range append(c.ToolCalling.keys(), c.ToolCalling.limitKeys()...) {
		if strings.Contains(k.path, ".retention.") || k.last() == "enabled" {
			continue // of sessions and of the house, not of one run
		}
		out = append(out, Setting{Key: k.path, Flag: strings.ReplaceAll(k.last(), "_", "-"), Default: k.def, Doc: k.doc})
	}
	return out
}

package config

import (
	"maps"
	"slices"

	"github.com/lathe-run/lathe"
)

// Transforms are the names of the transforms of a model, by kind.
type Transforms struct {
	Message, Tool, Response, ToolCall, ToolResult []string
}

// An Expansion is what the profile and the presets of a model come to.
type Expansion struct {
	Set []Expanded
	// Problems are names and values that are not good; Key is the model's key.
	Problems []Problem
}

// An Expanded is one key that a profile or preset sets, or adds to.
type Expanded struct {
	Key   string // a key of the model, or of tool_calling
	Value string // as one would write it
	From  string // such as "profile openrouter"
	Run   bool   // a key of tool_calling
	// Whole says that Value holds what the file says, too: it takes its place.
	Whole bool
}

// wantsExpansion reports whether the entry says anything that only Expand can tell.
func (m *Model) wantsExpansion() bool {
	t := &m.Transforms
	return m.Profile != "" || len(m.Presets)+len(t.Message)+len(t.Tool)+len(t.Response)+len(t.ToolCall)+len(t.ToolResult)+len(m.RequestOverrides) > 0
}

// expand sets what profiles and presets say, where nobody has said otherwise.
func (l *loader) expand() {
	if l.opts.Expand == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(l.cfg.Models)) {
		m := l.cfg.Models[name]
		if !m.wantsExpansion() {
			continue
		}
		base := "models." + name + "."
		isSet := func(key string) bool { _, ok := l.cfg.origin[base+key]; return ok }
		out := l.opts.Expand(m, isSet)
		for _, p := range out.Problems {
			l.at(base+p.Key, p.Message)
		}
		runs := l.cfg.ToolCalling // a copy: its keys are set only to see whether they can be
		rows := append(m.keys(), runs.keys()...)
		for _, e := range out.Set {
			if e.Run {
				m.run = append(m.run, e)
				e.Key = "tool_calling." + e.Key
			}
			l.setExpanded(base, isSet, e, rows)
		}
	}
}

func (l *loader) setExpanded(base string, isSet func(string) bool, e Expanded, rows []key) {
	if isSet(e.Key) && !e.Whole {
		return
	}
	for i := range rows {
		if rows[i].path != e.Key {
			continue
		}
		err := rows[i].v.set(e.Value)
		if ref, ok := rows[i].v.(referrer); ok && err == nil {
			err = ref.resolve(&l.resolver)
		}
		if err != nil {
			l.problem(0, base+e.Key, "%s: %s", e.From, err)
		}
		if !e.Run && !isSet(e.Key) {
			l.cfg.origin[base+e.Key] = e.From
		}
		return
	}
	l.problem(0, base+e.Key, "%s sets a key that is not there", e.From)
}

// SettingsFor returns the settings of runs with a model: those of [Config.Settings], and what the
// model's profile and presets say where nobody else does.
func (c *Config) SettingsFor(m *Model) lathe.Settings {
	of := *c
	rows := of.ToolCalling.keys()
	for _, e := range m.run {
		path := "tool_calling." + e.Key
		if _, said := c.origin[path]; said {
			continue
		}
		for i := range rows {
			if rows[i].path == path {
				if err := rows[i].v.set(e.Value); err != nil {
					panic("config: " + path + " was good when it was read: " + err.Error())
				}
			}
		}
	}
	return of.Settings()
}

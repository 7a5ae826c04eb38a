package config

import (
	"reflect"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/text"
)

// How the profile and the presets of a model set keys that the configuration does not set.

// Transforms are the names of the transforms of a model, by kind, in the order in which they apply.
type Transforms struct {
	// Transforms of docs/presets.md that change messages on their way out; added to those of presets. An empty list
	// clears.
	Message []string `key:"message" also:"message_transforms"`
	// The same for tool definitions.
	Tool []string `key:"tool" also:"tool_transforms"`
	// The same for answers.
	Response []string `key:"response" also:"response_transforms"`
	// The same for calls, in answers and in the history.
	ToolCall []string `key:"tool_call" also:"tool_call_transforms"`
	// The same for results as they enter the request.
	ToolResult []string `key:"tool_result" also:"tool_result_transforms"`
}

// An Expansion is the keys that the profile and the presets of a model set.
type Expansion struct {
	Set []Expanded
	// Problems are invalid names and values. Their Key is that of the model.
	Problems []Problem
}

// An Expanded is one key that a profile or preset sets, or to whose list it adds.
type Expanded struct {
	Key   string // a key of the model, or of tool_calling
	Value string // as it is written in a configuration
	From  string // such as "profile openrouter"
	Run   bool   // a key of tool_calling
	// Whole says that Value holds what the file says, too: it takes its place.
	Whole bool
}

// expand applies the settings of profiles and presets to keys that the file, the environment and flags do not set.
func (l *loader) expand() {
	if l.opts.Expand == nil {
		return
	}
	for name, m := range text.ByName(l.cfg.Models) {
		base := "models." + name + "."
		isSet := func(key string) bool { _, ok := l.cfg.origin[base+key]; return ok }
		out := l.opts.Expand(m, isSet)
		for _, p := range out.Problems {
			l.at(base+p.Key, p.Message)
		}
		runs := l.cfg.ToolCalling // a copy: its keys are set only to check them
		rows, runRows := rowsOf(reflect.ValueOf(m)), rowsOf(reflect.ValueOf(&runs))
		for _, e := range out.Set {
			given := isSet(e.Key)
			switch {
			case e.Run: // SettingsFor decides whether the key counts
				m.run = append(m.run, e)
				l.setExpanded(base+"tool_calling."+e.Key, runRows, e)
				continue
			case given && !e.Whole:
				continue
			}
			l.setExpanded(base+e.Key, rows, e)
			if !given {
				l.cfg.origin[base+e.Key] = e.From
			}
		}
	}
}

// setExpanded sets the row of a key to the value of a profile or preset. It reports a key that no row has, or an invalid value.
func (l *loader) setExpanded(key string, rows []row, e Expanded) {
	r := find(rows, e.Key)
	if r == nil {
		l.problem(0, key, "%s sets a key that is not there", e.From)
		return
	}
	if err := l.set(r.kind, r.v, e.Value); err != nil {
		l.problem(0, key, "%s: %s", e.From, err)
	}
}

// SettingsFor returns [Config.Settings] for runs with the model m: each key that the configuration does not set is that of the model's
// profile and presets.
func (c *Config) SettingsFor(m *Model) lathe.Settings {
	of := *c
	rows := rowsOf(reflect.ValueOf(&of.ToolCalling))
	for _, e := range m.run {
		if _, set := c.origin["tool_calling."+e.Key]; set {
			continue
		}
		r := find(rows, e.Key)
		if err := r.kind.set(r.v, e.Value); err != nil {
			panic("config: tool_calling." + e.Key + " was good when it was read: " + err.Error())
		}
	}
	return of.Settings()
}

package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// A Starter is what the first configuration of a user is generated from.
type Starter struct {
	Name  string // of the model's entry
	Model []StarterSetting
	// Head is the comment at the top, without its marks.
	Head string
}

// A StarterSetting is one setting of the model's entry in a [Starter].
type StarterSetting struct {
	Key, Value string // Key is below the entry, such as transforms.tool_call; Value is YAML
	Why        string // a comment; "": the documentation of the setting
}

// starterWidth is the width in bytes at which comments are wrapped.
const starterWidth = 100

// starterModel are the settings of a model that are written if [Starter].Model is empty.
var starterModel = []starterLine{{"key", "${OPENAI_API_KEY}"}, {"dialect", ""}, {"client_timeout", ""}}

// starterRest are the settings after the model entry. All except the first are written as comments.
var starterRest = []starterLine{
	{"tools.builtin", "[calculator, get_current_time]"},
	{"tools.mcp.files.command", "npx"},
	{"tools.mcp.files.args", "[-y, '@modelcontextprotocol/server-filesystem', .]"},
	{"tools.mcp.files.allowlist", "['*']"},
	{"policy.effects.read_only", ""},
	{"policy.effects.writes", ""},
	{"policy.tools", "{calculator: ask}"},
	{"tool_calling.max_iterations", ""},
	{"tool_calling.max_total_tool_calls", ""},
	{"tool_calling.run_timeout", ""},
	{"serve.addr", ""},
	{"serve.store", "sqlite:runs.db"},
	{"keys.team.key", "${LATHE_TEAM_KEY}"},
}

// exampleEntries replaces the names of entries in starterRest by NAME, under which their settings are documented.
var exampleEntries = strings.NewReplacer(".files.", ".NAME.", ".team.", ".NAME.")

// A starterLine is a setting with an example value; "": its default.
type starterLine struct{ path, value string }

// YAML returns a configuration file in which each setting has its documentation as a comment. A line that begins with # directly before the
// key is not in force; without the #, it is in force with the value shown.
func (s *Starter) YAML() []byte {
	w := starterWriter{docs: map[string]*setting{}}
	for _, known := range flat(settingsOf(reflect.TypeFor[Config]())) {
		w.docs[known.path] = known
	}
	w.comment(0, s.Head)
	name := quoteName(s.Name)
	w.line("\n")
	w.comment(0, w.doc("default_model"))
	w.line("default_model: " + name + "\n\nmodels:\n  " + name + ":\n")
	w.model(s.Model)
	w.rest()
	return []byte(w.b.String())
}

// A starterWriter writes the file of a [Starter]. Depths are numbers of sections above a line.
type starterWriter struct {
	b    strings.Builder
	docs map[string]*setting
}

func (w *starterWriter) line(s string) { w.b.WriteString(s) }

// model writes settings of the model's entry, and as comments those of starterModel that are not among them.
func (w *starterWriter) model(settings []StarterSetting) {
	former := "" // section of the setting before
	for _, m := range settings {
		depth, section, key := 2, "", m.Key
		if above, last, ok := strings.Cut(m.Key, "."); ok {
			depth, section, key = 3, above, last
		}
		if section != "" && section != former {
			w.key(2, "", section, "")
		}
		former = section
		why := m.Why
		if why == "" {
			why = w.doc("models.NAME." + m.Key)
		}
		w.comment(depth, why)
		w.key(depth, "", key, " "+m.Value)
	}
	for _, l := range starterModel {
		if !slices.ContainsFunc(settings, func(m StarterSetting) bool { return m.Key == l.path }) {
			path := "models.NAME." + l.path
			w.comment(2, w.doc(path))
			w.key(2, "#", l.path, " "+w.value(path, l.value))
		}
	}
}

// rest writes the settings of starterRest. A section is a comment if all of its settings are comments.
func (w *starterWriter) rest() {
	var former []string // sections of the setting before
	for i, l := range starterRest {
		parts := strings.Split(l.path, ".")
		last := len(parts) - 1
		mark := "#"
		if i == 0 {
			mark = ""
		}
		for depth, section := range parts[:last] {
			if depth < len(former) && slices.Equal(former[:depth+1], parts[:depth+1]) {
				continue // it is written already
			}
			if depth == 0 {
				w.line("\n")
			}
			w.key(depth, mark, section, "")
		}
		former = parts[:last]
		documented := exampleEntries.Replace(l.path)
		w.comment(last, w.doc(documented))
		w.key(last, mark, parts[last], " "+w.value(documented, l.value))
	}
}

// key writes a key at a depth; the mark # makes it a comment.
func (w *starterWriter) key(depth int, mark, key, value string) {
	w.line(strings.Repeat("  ", depth) + mark + key + ":" + value + "\n")
}

// comment writes text as lines of a comment of at most starterWidth bytes.
func (w *starterWriter) comment(depth int, text string) {
	indent, line := strings.Repeat("  ", depth), ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(indent)+len(line)+len(word) > starterWidth {
			w.line(indent + "# " + line + "\n")
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	if line != "" {
		w.line(indent + "# " + line + "\n")
	}
}

func (w *starterWriter) setting(path string) *setting {
	s := w.docs[path]
	if s == nil {
		panic(fmt.Sprintf("config: no setting %s", path))
	}
	return s
}

func (w *starterWriter) doc(path string) string { return w.setting(path).doc() }

func (w *starterWriter) value(path, value string) string {
	return cmp.Or(value, w.setting(path).def)
}

// quoteName returns a name as a quoted YAML string.
func quoteName(name string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
}

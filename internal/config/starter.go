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

// A starterLine is a setting with an example value; "": its default.
type starterLine struct{ path, value string }

// YAML returns a configuration file in which each setting has its documentation as a comment. A line that begins with # directly before the
// key is not in force; without the #, it is in force with the value shown.
func (s *Starter) YAML() []byte {
	w := starterWriter{docs: map[string]*setting{}}
	for _, known := range flat(settingsOf(reflect.TypeFor[Config]())) {
		w.docs[known.path] = known
	}
	w.comment("", s.Head)
	name := quoteName(s.Name)
	w.line("\n")
	w.comment("", w.doc("default_model"))
	w.line("default_model: " + name + "\n\nmodels:\n  " + name + ":\n")
	w.model(s.Model)
	w.rest()
	return []byte(w.b.String())
}

// model writes settings of the model's entry, and as comments those of starterModel that are not among them.
func (w *starterWriter) model(settings []StarterSetting) {
	former := "" // section of the setting before
	for _, m := range settings {
		section, key, indent := "", m.Key, "    "
		if above, last, ok := strings.Cut(m.Key, "."); ok {
			section, key, indent = above, last, "      "
		}
		if section != "" && section != former {
			w.line("    " + section + ":\n")
		}
		former = section
		why := m.Why
		if why == "" {
			why = w.doc("models.NAME." + m.Key)
		}
		w.comment(indent, why)
		w.line(indent + key + ": " + m.Value + "\n")
	}
	for _, l := range starterModel {
		if !slices.ContainsFunc(settings, func(m StarterSetting) bool { return m.Key == l.path }) {
			w.comment("    ", w.doc("models.NAME."+l.path))
			w.line("    #" + l.path + ": " + w.value("models.NAME."+l.path, l.value) + "\n")
		}
	}
}

type starterWriter struct {
	b    strings.Builder
	docs map[string]*setting
}

func (w *starterWriter) line(s string) { w.b.WriteString(s) }

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
		// The documentation of an entry is that of its table.
		doc := strings.Replace(strings.Replace(l.path, ".files.", ".NAME.", 1), ".team.", ".NAME.", 1)
		w.comment(strings.Repeat("  ", last), w.doc(doc))
		w.key(last, mark, parts[last], " "+w.value(doc, l.value))
	}
}

// key writes a key at a depth; the mark # makes it a comment.
func (w *starterWriter) key(depth int, mark, key, value string) {
	w.line(strings.Repeat("  ", depth) + mark + key + ":" + value + "\n")
}

func (w *starterWriter) comment(indent, text string) {
	line := ""
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

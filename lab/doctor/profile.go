package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A Setting is one key of a model's configuration.
type Setting struct {
	Key   string `json:"key"`           // below models.NAME, such as transforms.tool_call
	Value string `json:"value"`         // a word, or a list of words separated by commas
	For   string `json:"for,omitempty"` // id of the finding that requires the setting
	// Raw says that Value is YAML and must not be quoted.
	Raw bool `json:"-"`
}

// A Profile is the configuration of one model: the keys that are needed to reach it, and the keys that findings require.
type Profile struct {
	Name     string    `json:"name"`     // of the entry in the configuration, made of [Target].Name
	Settings []Setting `json:"settings"` // first those that are needed to reach the model
}

// NewProfile returns the profile of a model that was not examined. It contains only the keys that are needed to reach the model.
func NewProfile(t Target) *Profile {
	return new((&findings{target: t}).profile())
}

// Mends returns the settings of the profile that findings require.
func (p *Profile) Mends() []Setting {
	var out []Setting
	for _, s := range p.Settings {
		if s.For != "" {
			out = append(out, s)
		}
	}
	return out
}

// mend records a setting that a finding requires. profile joins the values of a list.
func (x *findings) mend(finding, key, value string) {
	s := Setting{Key: key, Value: value, For: finding}
	if !slices.Contains(x.mends, s) {
		x.mends = append(x.mends, s)
	}
}

// findAndMend records a finding, and a setting that it requires.
func (x *findings) findAndMend(finding, key, value string, details ...string) {
	x.find(finding, details...)
	x.mend(finding, key, value)
}

// profile combines the keys for reaching the model and the settings that findings require, which have precedence.
func (x *findings) profile() Profile {
	p := Profile{Name: entryName(cmp.Or(x.target.Name, x.target.Model)), Settings: slices.Clone(x.target.Entry)}
	if len(p.Settings) == 0 {
		p.Settings = []Setting{{Key: "base_url", Value: x.target.BaseURL}, {Key: "model", Value: x.target.Model}}
	}
	if _, ok := x.found["calls-in-text"]; ok { // only native calls are refused, not calls in the text
		x.mends = slices.DeleteFunc(x.mends, func(s Setting) bool { return s.Key == "supports_tools" })
	}
	for _, m := range x.mends {
		i := slices.IndexFunc(p.Settings, func(s Setting) bool { return s.Key == m.Key })
		switch list := strings.HasPrefix(m.Key, "transforms."); {
		case i < 0:
			p.Settings = append(p.Settings, m)
		case list && !slices.Contains(items(p.Settings[i]), m.Value):
			p.Settings[i].Value = strings.Join(append(items(p.Settings[i]), m.Value), ",")
			p.Settings[i].For, p.Settings[i].Raw = m.For, false
		case !list:
			p.Settings[i] = m
		}
	}
	return p
}

// maxEntryName is the longest name of a model entry in bytes.
const maxEntryName = 64

var notInEntries = lazy.Regexp(`[^\w.:/-]`)

// entryName converts a name into one that the configuration allows for an entry.
func entryName(name string) string {
	name = notInEntries().ReplaceAllString(name, "-")
	if rest, ok := strings.CutPrefix(name, "sim/"); ok {
		name = "sim-" + rest // sim/ is reserved for models without an entry
	}
	return name[:min(len(name), maxEntryName)]
}

// items returns the items of a list.
func items(s Setting) []string {
	return strings.FieldsFunc(s.Value, func(r rune) bool { return strings.ContainsRune("[], \"", r) })
}

// YAML returns a configuration file with this model. Comments name the findings that require settings.
func (p *Profile) YAML() []byte {
	var b strings.Builder
	quoted := string(rawjson.AppendQuote(nil, p.Name))
	fmt.Fprintf(&b, "# Written by lathe doctor.\ndefault_model: %s\nmodels:\n  %s:\n", quoted, quoted)
	section := ""
	for _, s := range p.sorted() {
		key, indent := s.Key, "    "
		if above, last, ok := strings.Cut(s.Key, "."); ok {
			if above != section {
				fmt.Fprintf(&b, "    %s:\n", above)
			}
			section, key, indent = above, last, "      "
		}
		fmt.Fprintf(&b, "%s%s: %s", indent, key, s.YAML())
		if s.For != "" {
			fmt.Fprintf(&b, " # %s", s.For)
		}
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

// sorted returns the settings with those of each section together, at the end.
func (p *Profile) sorted() []Setting {
	section := func(s Setting) string {
		above, _, ok := strings.Cut(s.Key, ".")
		if !ok {
			return ""
		}
		return above
	}
	out := slices.Clone(p.Settings)
	slices.SortStableFunc(out, func(a, b Setting) int { return strings.Compare(section(a), section(b)) })
	return out
}

// YAML returns Value as it is written in a configuration file.
func (s *Setting) YAML() string {
	switch {
	case s.Raw:
		return s.Value
	case strings.HasPrefix(s.Key, "transforms."):
		return "[" + strings.Join(items(*s), ", ") + "]"
	case s.Value == "true" || s.Value == "false":
		return s.Value
	}
	if _, err := strconv.Atoi(s.Value); err == nil {
		return s.Value
	}
	return string(rawjson.AppendQuote(nil, s.Value))
}

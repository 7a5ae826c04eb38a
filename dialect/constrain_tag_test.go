package dialect_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/dialect"
	"github.com/lathe-run/lathe/internal/schema"
)

// A tagFormat is a format of xgrammar's structural tags.
type tagFormat struct {
	Type       string
	Value      string
	Pattern    string
	Grammar    string
	JSONSchema json.RawMessage `json:"json_schema"`
	Elements   []*tagFormat
	Begin, End string
	Content    *tagFormat
	Triggers   []string
	Tags       []*tagFormat
	Separator  string
	AtLeastOne bool `json:"at_least_one"`
	StopFirst  bool `json:"stop_after_first"`
}

// A tagMatcher says which texts a structural tag allows, by the documentation of xgrammar.
type tagMatcher struct {
	t        testing.TB
	grammars map[string]*gbnfGrammar
}

func newTagMatcher(t testing.TB) *tagMatcher {
	return &tagMatcher{t: t, grammars: map[string]*gbnfGrammar{}}
}

// ends returns where a text of the format that begins text may end.
func (m *tagMatcher) ends(f *tagFormat, text string) []int {
	switch f.Type {
	case "const_string":
		if strings.HasPrefix(text, f.Value) {
			return []int{len(f.Value)}
		}
		return nil
	case "regex":
		if at := regexp.MustCompile("^(?:" + f.Pattern + ")").FindStringIndex(text); at != nil {
			return at[1:]
		}
		return nil
	case "grammar":
		g := m.grammars[f.Grammar]
		if g == nil {
			g = readGBNF(m.t, f.Grammar)
			m.grammars[f.Grammar] = g
		}
		runes := []rune(text)
		var out []int
		for _, end := range (&matcher{g: g, text: runes, ends: map[[2]int][]int{}}).match(g.rules["root"], 0) {
			out = append(out, len(string(runes[:end])))
		}
		return out
	case "json_schema":
		d := json.NewDecoder(strings.NewReader(text))
		var v json.RawMessage
		if d.Decode(&v) != nil {
			return nil
		}
		s, err := schema.Compile(f.JSONSchema)
		if err != nil {
			m.t.Fatal(err)
		}
		if len(s.ValidateArguments(v)) > 0 || bytes.TrimSpace(v)[0] != '{' {
			return nil
		}
		return []int{int(d.InputOffset())}
	case "sequence":
		at := []int{0}
		for _, e := range f.Elements {
			at = m.after(at, e, text)
		}
		return at
	case "or":
		var out []int
		for _, e := range f.Elements {
			out = append(out, m.ends(e, text)...)
		}
		return out
	case "tag":
		return m.after(m.after(m.after([]int{0}, &tagFormat{Type: "const_string", Value: f.Begin}, text), f.Content, text), &tagFormat{Type: "const_string", Value: f.End}, text)
	case "tags_with_separator":
		at := m.after([]int{0}, &tagFormat{Type: "or", Elements: f.Tags}, text)
		out := slices.Clone(at)
		for len(at) > 0 && !f.StopFirst {
			at = m.after(m.after(at, &tagFormat{Type: "const_string", Value: f.Separator}, text), &tagFormat{Type: "or", Elements: f.Tags}, text)
			out = append(out, at...)
		}
		return out
	case "triggered_tags": // free text up to a trigger, which must begin a tag
		var out []int
		at, tags := 0, 0
		for {
			next := -1
			for _, trigger := range f.Triggers {
				if i := strings.Index(text[at:], trigger); i >= 0 && (next < 0 || at+i < next) {
					next = at + i
				}
			}
			if tags > 0 || !f.AtLeastOne {
				for end := at; end <= len(text) && (next < 0 || end <= next); end++ {
					out = append(out, end)
				}
			}
			if next < 0 || f.AtLeastOne && tags == 0 && next > 0 || f.StopFirst && tags > 0 {
				return out
			}
			ends := m.after([]int{next}, &tagFormat{Type: "or", Elements: f.Tags}, text)
			if len(ends) == 0 {
				return out
			}
			at = slices.Max(ends)
			tags++
		}
	}
	m.t.Fatalf("a format that is not known: %q", f.Type)
	return nil
}

// after returns the ends of a format that begins at one of the places.
func (m *tagMatcher) after(at []int, f *tagFormat, text string) []int {
	var out []int
	for _, i := range at {
		for _, end := range m.ends(f, text[i:]) {
			out = append(out, i+end)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (m *tagMatcher) accepts(f *tagFormat, text string) bool {
	return slices.Contains(m.ends(f, text), len(text))
}

// The structural tag of a dialect allows what its writer writes, two calls as well as one, and no call that a tool would refuse; text is
// free as long as no call begins.
func TestStructuralTags(t *testing.T) {
	t.Parallel()
	for _, name := range constrained() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := constrain(t, name, &dialect.ConstraintOptions{Tools: constrainedTools})
			if c.Tag == nil {
				if !slices.Contains([]string{"harmony", "glimmer", "functionary-v3.2"}, name) {
					t.Fatal("there is no tag")
				}
				return
			}
			read := func(c *dialect.Constraint) *tagFormat {
				var tag struct {
					Type   string
					Format *tagFormat
				}
				if err := json.Unmarshal(c.Tag, &tag); err != nil || tag.Type != "structural_tag" {
					t.Fatalf("%v: %s", err, c.Tag)
				}
				for _, one := range tag.Format.Tags {
					n := 0
					for _, trigger := range tag.Format.Triggers {
						if strings.HasPrefix(one.Begin, trigger) {
							n++
						}
					}
					if n != 1 {
						t.Errorf("the tag %q has %d triggers in %q", one.Begin, n, tag.Format.Triggers)
					}
				}
				return tag.Format
			}
			must := read(constrain(t, name, &dialect.ConstraintOptions{Tools: constrainedTools, Choice: lathe.ToolChoice{Mode: lathe.ChoiceRequired}}))
			single := read(constrain(t, name, &dialect.ConstraintOptions{Tools: constrainedTools, Choice: lathe.ToolChoice{Mode: lathe.ChoiceRequired}, SingleCall: true}))
			may := read(c)
			m := newTagMatcher(t)
			call := func(tool, args string) string {
				return writtenCalls(t, name, lathe.ToolCall{ID: "call00001", Name: tool, Arguments: args})
			}
			good := []string{call("add", `{"a":7}`), call("save_note", `{"title":"abc","text":"x\ny","kind":"done","tags":["a","b"],"due":null}`), call("ping", `{}`), call("tree", `{"node":{"v":"a","next":{"v":"b"}},"at":{"x":1,"y":2}}`)}
			for _, text := range good {
				if !m.accepts(may, text) || !m.accepts(must, text) || !m.accepts(single, text) {
					t.Errorf("%q is refused", text)
				}
				if text := "Let me see.\n" + text; !m.accepts(may, text) {
					t.Errorf("%q is refused", text)
				}
			}
			if text := good[0] + good[1]; !strings.HasPrefix(good[0], "[") && !strings.HasPrefix(good[0], "{") && !slices.Contains([]string{"pythonic", "lfm2", "olmo3"}, name) && !m.accepts(may, text) || m.accepts(single, text) {
				t.Errorf("two calls, %q: accepted %v, and %v where one is allowed", text, m.accepts(may, text), m.accepts(single, text))
			}
			if !m.accepts(may, "Hello.") || m.accepts(must, "Hello.") {
				t.Error("text alone is a matter of the choice")
			}
			for _, text := range []string{call("add", `{"a":"x"}`), call("add", `{"b":1}`), call("add", `{"a":7,"c":1}`), call("tree", `{"node":{"v":"a"},"at":{"x":1}}`), call("sub", `{"a":7}`)} {
				if m.accepts(must, text) || m.accepts(may, text) && !(name == "pythonic" && strings.Contains(text, "sub")) { // where no mark says that it is a call
					t.Errorf("%q is accepted", text)
				}
			}
		})
	}
}

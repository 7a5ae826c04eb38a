package gbnf

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// No rule can begin with itself, which servers refuse. A recursion within an object or a list stays.
func TestReferencesDoNotRecurseLeft(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		schema string
		loose  bool
	}{
		{`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`, true},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"string"}]}}}`, true},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/a"}]}}}`, true},
		// b is written within a list of a, where it may begin with a, and then stands at the beginning of a.
		{`{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/b"}},{"$ref":"#/$defs/b"}]},"b":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/a"}]}}}`, true},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"next":{"$ref":"#/$defs/a"}}}}}`, false},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/a"}},{"type":"string"}]}}}`, false},
		{`{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}],"$defs":{"a":{"type":"string"},"b":{"$ref":"#/$defs/a"}}}`, false},
	} {
		var b Builder
		value := b.Value([]byte(c.schema), []byte(c.schema), JSON, "f")
		text, err := b.Grammar(value)
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		if loose := slices.ContainsFunc(b.Loosened(), func(p string) bool { return strings.HasSuffix(p, ".$ref") }); loose != c.loose {
			t.Errorf("%s: loosened %q, want a reference among them: %v", c.schema, b.Loosened(), c.loose)
		}
		if rule := leftRecursive(text); rule != "" {
			t.Errorf("%s: the rule %s begins with itself:\n%s", c.schema, rule, text)
		}
	}
}

var ruleName = regexp.MustCompile(`^\(*([A-Za-z][A-Za-z0-9-]*)`)

// leftRecursive returns the name of a rule that can begin with itself, for grammars in which no rule begins with a part that may be
// empty. It looks at the first name of each alternative, brackets left aside.
func leftRecursive(text string) string {
	first := map[string][]string{}
	for line := range strings.Lines(text) {
		name, body, ok := strings.Cut(strings.TrimSpace(line), " ::= ")
		if !ok {
			continue
		}
		for part := range strings.SplitSeq(body, " | ") {
			if m := ruleName.FindStringSubmatch(part); m != nil {
				first[name] = append(first[name], m[1])
			}
		}
	}
	for name := range first {
		seen, next := map[string]bool{}, slices.Clone(first[name])
		for len(next) > 0 {
			at := next[len(next)-1]
			next = next[:len(next)-1]
			if at == name {
				return name
			}
			if !seen[at] {
				seen[at] = true
				next = append(next, first[at]...)
			}
		}
	}
	return ""
}

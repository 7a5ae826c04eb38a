package schema

import (
	"strings"
	"testing"
)

func TestPatternsAreThoseOfECMA262(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		expr, text string
		want       bool
	}{
		{`^a+b?$`, "aab", true}, {`^a$`, "a\n", false}, {`a`, "bab", true}, {`^$`, "", true},
		{`^(?!admin).+$`, "admin", false}, {`^(?!admin).+$`, "root", true}, {`(?<=\$)\d+`, "$42", true}, {`^(a)\1$`, "aa", true},
		{`^\d$`, "٣", false}, {`^\w$`, "é", false}, {`^\s$`, "\u00a0", true}, {`^\s$`, "\ufeff", true}, {`^\S$`, "\u2003", false},
		{`^.$`, "😀", true}, {`^.$`, "\r", false}, {`^.$`, "\u2028", false}, {`^[^a]$`, "\n", true}, {`^[\s\S]{2}$`, "é\n", true},
		{`^\p{L}+$`, "né", true}, {`^\p{Letter}$`, "1", false}, {`^\P{Lu}$`, "A", false}, {`^[\p{L}\p{N}_-]+$`, "ñ-1", true}, {`^\p{Script=Greek}$`, "λ", true},
		{`^\u{1F600}$`, "😀", true}, {`^\u00e9\xe9$`, "éé", true}, {`^\cA$`, "\x01", true}, {`^[😀-😎]$`, "😁", true},
		{`^[\w-.]+@[\w-]+\.[a-z]{2,}$`, "a.b-c@d-e.org", true}, {`^[\w-.]+$`, "a b", false}, {`^[\d-x]$`, "-", true}, {`^[\w-]$`, "-", true},
		{`^a\-b\_\@\/c$`, "a-b_@/c", true}, {`^[]$`, "]", false}, {`^[^]$`, "]", true}, {`^(?i)ab$`, "AB", true}, {`^[[:]$`, "[", true},
	} {
		p, err := newPattern(tc.expr)
		if err != nil {
			t.Errorf("%s: %v", tc.expr, err)
			continue
		}
		if got := p.MatchString(tc.text); got != tc.want {
			t.Errorf("%s of %q: got %v, want %v", tc.expr, tc.text, got, tc.want)
		}
		if p.String() != tc.expr {
			t.Errorf("%s is written as %s", tc.expr, p)
		}
	}
}

// What the engine would read as something else, and what it cannot read, is refused with the place in the schema and the reason.
func TestPatternsOfOtherLanguagesAreRefused(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]string{
		`\\A`: `the escape \A`, `\\z`: `the escape \z`, `\\Z`: `the escape \Z`, `\\a`: `the escape \a`, `\\Qa.b\\E`: `the escape \Q`, `[\\h]`: `the escape \h`,
		`\\x{e9}`: `the escape \x`, `\\xe`: `the escape \x`, `\\u12`: `the escape \u`, `\\u{}`: `the escape \u`, `\\u{12`: `the escape \u`,
		`[[:alpha:]]`: `the class [:name:]`, `\\pL`: `\p{X}`, `\\p{Greek}`: "unknown unicode category", `(?P<n>a)`: "grouping", `(`: "missing closing )", `[b-a]`: "reverse order", `a++`: "nested repetition",
		`\\1`: "escape", `a{2,1}`: "",
	} {
		for at, raw := range map[string]string{
			`at "/properties/p/pattern": `:         `{"properties":{"p":{"pattern":"` + expr + `"}}}`,
			`at "/items/patternProperties": `:      `{"items":{"patternProperties":{"` + expr + `":true}},"default":{"pattern":"("}}`,
			`at "/definitions/a~1b/not/pattern": `: `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a/b":{"not":{"pattern":"` + expr + `"}}}}`,
		} {
			_, err := Compile([]byte(raw))
			if err == nil || !strings.Contains(err.Error(), at) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q and %q", raw, err, at, want)
			}
		}
	}
}

// A match that takes too long or too much memory is a violation by name, also where a pattern that does not match would make the value
// valid, and never holds the text of the value.
func TestSlowPatternsAreViolations(t *testing.T) {
	t.Parallel()
	slow, deep := `^(a+)+$`, `^(ab?)+$`
	for _, tc := range []struct{ name, schema, text, want string }{
		{"pattern", `{"pattern":"` + slow + `"}`, strings.Repeat("a", 60) + "!", "takes longer than 1s"},
		{"not", `{"not":{"pattern":"` + slow + `"}}`, strings.Repeat("a", 60) + "!", "takes longer than 1s"},
		{"memory", `{"not":{"pattern":"` + deep + `"}}`, strings.Repeat("ab", 400_000), "matching with the pattern"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			vs := mustCompile(t, tc.schema).Validate([]byte(`"` + tc.text + `"`))
			if len(vs) != 1 || vs[0].Keyword != "limit" || !strings.Contains(vs[0].Message, tc.want) || strings.Contains(vs[0].Message, "aaaa") {
				t.Errorf("got %v, want one violation of limit with %q", vs, tc.want)
			}
		})
	}
	for _, raw := range []string{`{"patternProperties":{"^(a+)+$":false}}`, `{"propertyNames":{"not":{"pattern":"^(a+)+$"}}}`} {
		t.Run(raw, func(t *testing.T) {
			t.Parallel()
			name := strings.Repeat("a", 60)
			vs := mustCompile(t, raw).ValidateArguments([]byte(`{"` + name + `!":1,"` + strings.ToUpper(name) + `!":2}`))
			if len(vs) == 0 || vs[0].Keyword != "limit" {
				t.Errorf("got %v, want a violation of limit", vs)
			}
		})
	}
}

// Many matches, none of which takes too long, take too long together.
func TestPatternTimeIsOfAllMatches(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a", 24) + "!" // some 2^24 steps
	items := strings.Repeat(`,"`+text+`"`, 2_000)
	vs := mustCompile(t, `{"items":{"not":{"pattern":"^(a+)+$"}}}`).Validate([]byte("[1" + items + "]"))
	if len(vs) != 1 || vs[0].Keyword != "limit" {
		t.Errorf("got %v, want one violation of limit", vs)
	}
}

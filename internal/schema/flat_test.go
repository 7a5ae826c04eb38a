package schema

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// checkFlat fails if a flat admits what the library does not, and reports whether it admits the value.
func checkFlat(t *testing.T, rawSchema, value string) bool {
	t.Helper()
	s, err := Compile([]byte(rawSchema))
	if err != nil || s.flat == nil || !s.flat.admits([]byte(value)) {
		return false
	}
	if rawjson.Check([]byte(value), rawjson.Limits{}) != nil {
		return true // a repeated name or bytes that are not UTF-8: not for Validate
	}
	fast := s.ValidateArguments([]byte(value))
	s.flat = nil
	if vs := s.Validate([]byte(value)); vs != nil {
		t.Errorf("%s: %s: the flat admits it, the whole check says %v", rawSchema, value, vs)
	}
	if vs := s.ValidateArguments([]byte(value)); !slices.Equal(vs, fast) {
		t.Errorf("%s: %s: with the flat %v, the whole check says %v", rawSchema, value, fast, vs)
	}
	return true
}

func TestFlatAdmitsWhatTheLibraryAdmits(t *testing.T) {
	t.Parallel()
	g := randomSchemas{rand.New(rand.NewPCG(1, 2))}
	names := []string{`"a"`, `"A"`, `"é"`, `"a\\b"`, `"a\u0062"`, `"ab"`}
	admitted := 0
	for range 200 {
		var members, required []string
		for _, name := range names[:1+g.IntN(3)] {
			members = append(members, name+`:{"type":`+g.pick(`"string"`, `"string"`, `"integer"`, `"number"`, `["boolean","null"]`, `["string","integer"]`, `"array"`)+
				g.pick("", "", `,"enum":["a","é","",1]`, `,"minLength":1`, `,"maxLength":2`, `,"minimum":-1`, `,"maximum":10`, `,"minimum":0.5`, `,"format":"date"`, `,"maxLength":1e30`)+`}`)
			if g.IntN(2) == 0 {
				required = append(required, name)
			}
		}
		raw := fmt.Sprintf(`{"$schema":%q,"type":"object","properties":{%s},"required":[%s]%s}`, g.pick("https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"),
			strings.Join(members, ","), strings.Join(required, ","), g.pick("", `,"additionalProperties":false`, `,"minProperties":1`))
		for range 20 {
			var parts []string
			for _, name := range names {
				if likely := slices.ContainsFunc(members, func(m string) bool { return strings.HasPrefix(m, name) }); g.IntN(8) < map[bool]int{true: 6, false: 1}[likely] && (name != `"ab"` || len(parts) == 0 || !strings.Contains(strings.Join(parts, ""), "u0062")) {
					parts = append(parts, name+g.pick(":", " : ")+g.pick("null", "true", "1", "-1", "10", "11", "1.0", "1e0", "0.5", "9223372036854775808", "123456789012345678901", `"a"`, `"\u0061"`, `"é"`, `"abc"`, `""`, `"\n"`, "[]", "{}"))
				}
			}
			value := g.pick("", " ") + "{" + strings.Join(parts, ",") + "}" + g.pick("", "\n", "]")
			if checkFlat(t, raw, value) {
				admitted++
			}
		}
	}
	if admitted < 150 {
		t.Errorf("%d values admitted: the test shows nothing", admitted)
	}
}

// A flat is made only of keywords that it checks itself.
func TestFlatIsMadeOfKnownKeywords(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		`{"type":"object","properties":{"q":{"type":"string","description":"d"},"n":{"type":"integer","minimum":1,"maximum":10}},"required":["q"],"additionalProperties":false}`: true,
		`{"type":"object"}`: true,
		`{"type":"object","properties":{"a":{"enum":["a"]}}}`:                            true,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["b"]}`:        false,
		`{"type":"object","properties":{"a":{"type":"string","pattern":"a"}}}`:           false,
		`{"type":"object","properties":{"a":{"type":"array"}}}`:                          false,
		`{"type":"object","properties":{"a":{"type":"string"}},"minProperties":1}`:       false,
		`{"type":"object","properties":{"a":{"type":"string","not":{"const":"a"}}}}`:     false,
		`{"type":["object","null"]}`:                                                     false,
		`{"type":"object","allOf":[{"required":["a"]}]}`:                                 false,
		`{"$ref":"#/$defs/a","type":"object","$defs":{"a":{"type":"object"}}}`:           false,
		`{"type":"object","properties":{"a":{"type":"number","exclusiveMinimum":1}}}`:    false,
		`{"type":"object","properties":{"a":{"type":"integer","multipleOf":2}}}`:         false,
		`{"type":"object","propertyNames":{"maxLength":1}}`:                              false,
		`{"type":"object","patternProperties":{"^a":{"type":"string"}}}`:                 false,
		`{"type":"object","properties":{"a":{"type":"string"}},"dependencies":{"a":[]}}`: false,
	} {
		if got := mustCompile(t, raw).flat != nil; got != want {
			t.Errorf("%s: a flat is %v, want %v", raw, got, want)
		}
	}
}

func FuzzFlat(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":["string","null"],"maxLength":3},"n":{"type":"integer","minimum":1}},"required":["a"]}`, `{"a":"é","n":2}`)
	f.Add(`{"type":"object","properties":{"a":{"type":"number","enum":["a",1]},"b":{"enum":["a"]}}}`, `{"b":"a","c":[[1e9]],"C":1}`)
	f.Fuzz(func(t *testing.T, rawSchema, value string) {
		if len(rawSchema) <= 2000 && len(value) <= 2000 {
			checkFlat(t, rawSchema, value)
		}
	})
}

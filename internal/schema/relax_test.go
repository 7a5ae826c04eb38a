package schema

import (
	"fmt"
	"strings"
	"testing"
)

// Patterns that cannot be matched, and keywords that are null, are left out with their places, so that the schema compiles; nothing else
// of it changes.
func TestRelaxLeavesOutWhatCannotBeChecked(t *testing.T) {
	t.Parallel()
	const bad = `(?P<id>[a-z]+)`
	for name, tt := range map[string]struct{ raw, want, left string }{
		"nothing":               {`{"type":"object", "properties":{"p":{"type":"string","pattern":"^(?!-)[a-z-]+$"}}}`, "", ""},
		"a pattern":             {`{"type":"object","properties":{"b":{"pattern":"BAD","type":"string"},"a":{"pattern":"^a$"}}}`, `{"type":"object","properties":{"b":{"type":"string"},"a":{"pattern":"^a$"}}}`, "properties.b.pattern: "},
		"alone":                 {`{"pattern":"BAD"}`, `{}`, "pattern: "},
		"in lists":              {`{"allOf":[{"minLength":1},{"pattern":"BAD"}],"anyOf":[{"pattern":"BAD"},{"type":"null"}]}`, `{"allOf":[{"minLength":1},{}],"anyOf":[{},{"type":"null"}]}`, "allOf.1.pattern: anyOf.0.pattern: "},
		"of names":              {`{"patternProperties":{"^a":{"type":"string"},"BAD":{"type":"null"}},"additionalProperties":false}`, `{"patternProperties":{"^a":{"type":"string"}}}`, "patternProperties.BAD: additionalProperties: "},
		"not":                   {`{"not":{"pattern":"BAD"},"type":"string"}`, `{"type":"string"}`, "not: "},
		"contains":              {`{"contains":{"properties":{"x":{"pattern":"BAD"}}},"type":"array"}`, `{"type":"array"}`, "contains: "},
		"oneOf":                 {`{"oneOf":[{"pattern":"BAD"},{"type":"null"}]}`, `{"anyOf":[{},{"type":"null"}]}`, "oneOf.0.pattern: "},
		"oneOf beside anyOf":    {`{"oneOf":[{"pattern":"BAD"}],"anyOf":[true]}`, `{"anyOf":[true]}`, "oneOf: "},
		"a condition":           {`{"if":{"pattern":"BAD"},"then":{"minLength":3},"else":false,"type":"string"}`, `{"type":"string"}`, "if: then: else: "},
		"a branch":              {`{"if":{"minLength":3},"then":{"pattern":"BAD"}}`, `{"if":{"minLength":3},"then":{}}`, "then.pattern: "},
		"behind a reference":    {`{"not":{"$ref":"#/$defs/x"},"$defs":{"x":{"pattern":"BAD"}}}`, `{"$defs":{"x":{}}}`, "not: $defs.x.pattern: "},
		"a property of a name":  {`{"properties":{"pattern":{"type":"string"},"not":{"pattern":"BAD"}}}`, `{"properties":{"pattern":{"type":"string"},"not":{}}}`, "properties.not.pattern: "},
		"values":                {`{"default":{"pattern":"BAD"},"const":{"not":{"pattern":"BAD"}},"pattern":"BAD"}`, `{"default":{"pattern":"BAD"},"const":{"not":{"pattern":"BAD"}}}`, "pattern: "},
		"items of draft 7":      {`{"items":[{"pattern":"BAD"},true],"additionalItems":{"pattern":"BAD"}}`, `{"items":[{},true],"additionalItems":{}}`, "items.0.pattern: additionalItems.pattern: "},
		"null":                  {`{"type":"object","required":null,"properties":null,"additionalProperties":null}`, `{"type":"object"}`, "required: properties: additionalProperties: "},
		"null as a value":       {`{"default":null,"const":null,"enum":[null],"x-more":null}`, "", ""},
		"no pattern of a value": {`{"properties":{"a":{"enum":["pattern",null]}}}`, "", ""},
	} {
		raw := strings.ReplaceAll(tt.raw, "BAD", bad)
		want := strings.ReplaceAll(tt.want, "BAD", bad)
		if want == "" {
			want = raw
		}
		out, left := Relax([]byte(raw))
		if string(out) != want {
			t.Errorf("%s: got %s, want %s", name, out, want)
		}
		places := ""
		for _, l := range left {
			place, reason, _ := strings.Cut(l, ": ")
			if places += place + ": "; reason == "" {
				t.Errorf("%s: %s has no reason", name, l)
			}
		}
		if got := strings.ReplaceAll(places, bad, "BAD"); got != tt.left {
			t.Errorf("%s: left %q, want %q", name, got, tt.left)
		}
		if _, err := Compile(out); err != nil && !strings.Contains(tt.raw, "draft") && !strings.Contains(tt.raw, `"items":[`) {
			t.Errorf("%s: %s does not compile: %v", name, out, err)
		}
	}
}

// A schema with more patterns than may be compiled keeps those that fit.
func TestRelaxBoundsThePatterns(t *testing.T) {
	t.Parallel()
	var members []string
	for i := range 40 {
		members = append(members, fmt.Sprintf(`"p%d":{"pattern":"^%d%s$"}`, i, i, strings.Repeat("a", 500)))
	}
	out, left := Relax([]byte(`{"properties":{` + strings.Join(members, ",") + `}}`))
	if _, err := Compile(out); err != nil || len(left) == 0 || len(left) == 40 {
		t.Errorf("%d patterns are left out, then: %v", len(left), err)
	}
}

// Each schema is looked at once, however deep it is: the work grows as its text does.
func TestRelaxLooksAtEachSchemaOnce(t *testing.T) {
	t.Parallel()
	looked := func(depth int) int {
		raw := strings.Repeat(`{"oneOf":[{"not":{"contains":`, depth) + `{"pattern":"(?P<id>x)"}` + strings.Repeat(`}}]}`, depth)
		of := newRelaxation([]byte(raw))
		of.schema(nil, []byte(raw), "")
		return of.scanned
	}
	if once, twice := looked(30), looked(60); twice > 2*once {
		t.Errorf("looked at %d schemas for a depth of 30, %d for 60", once, twice)
	}
}

// Whatever holds a pattern that cannot be matched, at whatever depth, a value that the schema allows is allowed afterwards, although
// unevaluated members and items are refused around it.
func TestRelaxIsNoNarrowerAroundUnevaluated(t *testing.T) {
	t.Parallel()
	bases := []string{`{"pattern":"BAD"}`, `{"patternProperties":{"BAD":true}}`, `{"properties":{"a":{"pattern":"BAD"}}}`, `{"contains":{"pattern":"BAD"}}`, `{"not":{"not":{"patternProperties":{"BAD":true}}}}`,
		`{"additionalProperties":true,"patternProperties":{"BAD":true}}`, `{"if":{"properties":{"a":{"pattern":"BAD"}}},"then":{"properties":{"b":true}},"else":{"properties":{"a":true}}}`,
		`{"oneOf":[{"properties":{"a":{"pattern":"BAD"}}},{"properties":{"b":{"type":"null"}},"required":["b"]}],"anyOf":[true]}`, `{"prefixItems":[true],"contains":{"pattern":"BAD"}}`}
	around := []string{`IN`, `{"allOf":[IN]}`, `{"anyOf":[IN,false]}`, `{"oneOf":[IN,false]}`, `{"if":IN}`, `{"if":true,"then":IN}`, `{"if":false,"else":IN}`, `{"dependentSchemas":{"a":IN}}`,
		`{"unevaluatedProperties":false,"unevaluatedItems":false,"allOf":[IN]}`}
	const whole = `{"allOf":[IN],"unevaluatedProperties":false,"unevaluatedItems":false`
	values := []string{`{}`, `{"a":"x"}`, `{"a":"q"}`, `{"x":1}`, `{"xa":1,"a":"x"}`, `{"a":"x","b":1}`, `{"a":"q","b":null}`, `[]`, `["x"]`, `["q"]`, `["x","x"]`, `["q","x"]`, `"x"`}
	allowed := 0
	for _, base := range bases {
		for _, in := range around {
			for _, out := range around {
				parts := strings.Replace(whole, "IN", strings.Replace(out, "IN", in, 1), 1)
				allowed += checkNoNarrower(t, strings.Replace(parts, "IN", base, 1)+`}`, values...)
				allowed += checkNoNarrower(t, strings.Replace(parts, "IN", `{"$ref":"#/$defs/in"}`, 1)+`,"$defs":{"in":`+base+`}}`, values...)
			}
		}
	}
	if allowed < 500 {
		t.Errorf("only %d values are allowed: that proves little", allowed)
	}
}

// checkNoNarrower reports values that a schema with patterns that cannot be matched allows, and what Relax makes of it does not. In
// place of each pattern stands one that can be matched, which gives the truth. It returns the number of values that are allowed.
func checkNoNarrower(t *testing.T, raw string, values ...string) (allowed int) {
	t.Helper()
	whole, err := Compile([]byte(strings.ReplaceAll(raw, "BAD", "^x")))
	if err != nil {
		return 0
	}
	out, _ := Relax([]byte(strings.ReplaceAll(raw, "BAD", "(?P<x>x)")))
	loose, err := Compile(out)
	if err != nil {
		return 0
	}
	for _, value := range values {
		if whole.Validate([]byte(value)) != nil {
			continue
		}
		allowed++
		if vs := loose.Validate([]byte(value)); vs != nil {
			t.Errorf("%s allows %s, and %s does not: %v", raw, value, out, vs)
		}
	}
	return allowed
}

// Every value that a schema allows is allowed by what Relax makes of it, here of random schemas.
func FuzzTolerateIsNoNarrower(f *testing.F) {
	f.Add(`{"not":{"pattern":"BAD"},"oneOf":[{"pattern":"BAD"},{"minLength":2}]}`, `"ab"`)
	f.Add(`{"patternProperties":{"BAD":{"type":"null"}},"additionalProperties":false}`, `{"x":null}`)
	f.Add(`{"if":{"$ref":"#/$defs/a"},"then":false,"$defs":{"a":{"pattern":"BAD"}}}`, `"y"`)
	f.Add(`{"allOf":[{"patternProperties":{"BAD":true}}],"unevaluatedProperties":false}`, `{"xa":"s"}`)
	f.Add(`{"contains":{"pattern":"BAD"},"unevaluatedItems":false}`, `["x"]`)
	f.Fuzz(func(t *testing.T, raw, value string) {
		if len(raw) <= 2000 && len(value) <= 2000 {
			checkNoNarrower(t, raw, value)
		}
	})
}

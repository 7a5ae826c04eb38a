package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/schema"
)

func TestArgumentsWithNamesThatDifferOnlyInCase(t *testing.T) {
	t.Parallel()
	const both = `{"properties":{"a":{},"A":{}}}`
	for _, tt := range []struct{ schema, value, at string }{ // at: the pointers that are refused
		{`{}`, `{"a":1,"A":2}`, "/A /a"},
		{`true`, `{"a":1,"A":2}`, "/A /a"},
		{`{"properties":{"a":{}}}`, `{"a":1,"A":2}`, "/A"},
		{both, `{"a":1,"A":2}`, ""},
		{both, `{"a":1,"A":2,"b":{"a":1,"A":2}}`, "/b/A /b/a"},
		{`{"properties":{"b":` + both + `}}`, `{"b":{"a":1,"A":2}}`, ""},
		{`{"properties":{"b":` + both + `}}`, `{"c":{"a":1,"A":2}}`, "/c/A /c/a"},
		{`{"additionalProperties":` + both + `}`, `{"c":{"a":1,"A":2}}`, ""},
		{`{"patternProperties":{"^c":` + both + `}}`, `{"c":{"a":1,"A":2}}`, ""},
		{`{"items":` + both + `}`, `[{"a":1},{"a":1,"A":2}]`, ""},
		{`{"prefixItems":[` + both + `]}`, `[{"a":1,"A":2},{"a":1,"A":2}]`, "/1/A /1/a"},
		{`{"items":{"items":` + both + `}}`, `[[{"a":1,"A":2}],{"a":1,"A":2}]`, "/1/A /1/a"},
		{`{"allOf":[{"properties":{"a":{}}},{"properties":{"A":{}}}]}`, `{"a":1,"A":2}`, ""},
		{`{"$ref":"#/$defs/x","$defs":{"x":` + both + `}}`, `{"a":1,"A":2}`, ""},
		{`{"properties":{"path":{},"n":{}}}`, `{"path":1,"ſ":1,"n":{"S":1,"ſ":2}}`, "/n/S /n/ſ"},
		{`{"properties":{"key":{}}}`, `{"key":1,"\u212aey":2}`, "/\u212aey"},
		{`{"properties":{"key":{}}}`, `{"key":1,"KEY":2,"\u004bey":3}`, "/KEY /Key"},
		{`{"properties":{"a":{"type":"string"}}}`, `{"a":1,"A":2}`, "/A /a"}, // beside other violations
	} {
		s, err := schema.Compile([]byte(tt.schema))
		if err != nil {
			t.Fatal(err)
		}
		var at []string
		for _, v := range s.ValidateArguments([]byte(tt.value)) {
			at = append(at, v.Pointer)
			if strings.Contains(v.Message, "path") || v.Keyword == "" || v.Message == "" {
				t.Errorf("%s against %s: violation %+v", tt.value, tt.schema, v)
			}
		}
		if got := strings.Join(at, " "); got != tt.at {
			t.Errorf("%s against %s is refused at %q, want %q", tt.value, tt.schema, got, tt.at)
		}
	}
}

// A schema can apply many schemas to one value: the search ends within the limit on work and refuses.
func TestArgumentsWithNamesThatDifferOnlyInCaseAreBounded(t *testing.T) {
	t.Parallel()
	var forms strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&forms, `{"properties":{"m%d":{}},"items":{"$ref":"#"}},`, i)
	}
	s, err := schema.Compile([]byte(`{"anyOf":[` + forms.String() + `{"items":{"$ref":"#"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	vs := s.ValidateArguments([]byte("[" + strings.Repeat(`{"a":1,"A":2},`, 5000) + `{}]`))
	if len(vs) == 0 {
		t.Fatal("arguments with names that differ only in case are accepted")
	}
}

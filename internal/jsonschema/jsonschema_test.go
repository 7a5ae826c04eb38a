package jsonschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func decode(t *testing.T, raw string) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader([]byte(raw)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

// documents are those that schemas of a test may refer to.
type documents map[string]string

func compile(t *testing.T, raw string, others documents) (*Schema, error) {
	t.Helper()
	return Compile("schema:///main.json", decode(t, raw), &Options{
		Draft: Draft2020,
		Load: func(address string) (any, error) {
			if text, ok := others[address]; ok {
				return decode(t, text), nil
			}
			return nil, errors.New("no such document")
		},
		Compile: func(expr string) (Regexp, error) { return regexp.Compile(expr) },
	})
}

// keywordsOf returns the keywords and paths of errors, sorted.
func keywordsOf(errs []*Error) []string {
	var out []string
	for _, e := range errs {
		out = append(out, e.Keyword+" /"+strings.Join(e.Path, "/"))
	}
	slices.Sort(out)
	return out
}

func TestValidateReportsEachKeyword(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		schema, value string
		want          []string
	}{
		{`{"minLength":3,"pattern":"^a"}`, `"b"`, []string{"minLength /", "pattern /"}},
		{`{"properties":{"a":{"items":{"type":"null"}}},"required":["b"]}`, `{"a":[1,null,"x"]}`, []string{"required /", "type /a/0", "type /a/2"}},
		{`{"allOf":[{"minimum":2},{"$ref":"#/$defs/d"}],"$defs":{"d":{"multipleOf":2}}}`, `1`, []string{"minimum /", "multipleOf /"}},
		{`{"uniqueItems":true}`, `[{"a":1,"b":[1.0]},2,{"b":[1],"a":1e0}]`, []string{"uniqueItems /"}},
		{`{"uniqueItems":true}`, `["1",1,true,"true",null,"n",[],{},["1","2"],["12"],{"a":"b"},{"ab":""}]`, nil},
		{`{"contains":{"type":"string"},"unevaluatedItems":false}`, `["a",1,"b",2]`, []string{"false /1", "false /3"}},
		{`{"prefixItems":[true],"anyOf":[{"prefixItems":[true,true]},{"prefixItems":[true,true,{"type":"null"}]}],"unevaluatedItems":false}`, `[1,2,3]`, []string{"false /2"}},
		{`{"if":{"properties":{"a":{"const":1}}},"then":{"properties":{"b":true}},"else":{"properties":{"c":true}},"unevaluatedProperties":false}`,
			`{"a":1,"b":1,"c":1}`, []string{"false /c"}},
		{`{"not":{"not":{"type":"string"}}}`, `1`, []string{"not /"}},
		{`{"propertyNames":{"maxLength":1}}`, `{"aa":1,"bb":2,"c":3}`, []string{"propertyNames /"}},
		{`{"$defs":{"list":{"$id":"list","type":"array","items":{"$dynamicRef":"#item"},"$defs":{"item":{"$dynamicAnchor":"item"}}}},
			"$ref":"list","$dynamicAnchor":"outer","properties":{}}`, `[1]`, nil},
		{`{"$id":"https://example.org/strict","$defs":{"item":{"$dynamicAnchor":"item","type":"string"},
			"list":{"$id":"list","items":{"$dynamicRef":"#item"},"$defs":{"item":{"$dynamicAnchor":"item"}}}},"$ref":"list"}`, `[1,"a"]`, []string{"type /0"}},
		{`{"$recursiveRef":"#/$defs/d","$defs":{"d":{"type":"string"}}}`, `1`, []string{"type /"}},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/d","minimum":5,"definitions":{"d":{"type":"integer"}}}`, `1`, nil},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[true],"additionalItems":{"type":"null"}}`, `[1,2]`, []string{"type /1"}},
		{`{"format":"uri","const":1.50}`, `15e-1`, nil},
		{`{"maxLength":18446744073709551617,"maxItems":1e100}`, `"abc"`, nil},
		{`{"minLength":18446744073709551617}`, `"abc"`, []string{"minLength /"}},
		{`{"dependentSchemas":{"a":{"minProperties":2}},"dependencies":{"a":{"required":["c"]},"b":["a"]}}`, `{"a":1}`, []string{"minProperties /", "required /"}},
	} {
		s, err := compile(t, c.schema, nil)
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		if got := keywordsOf(s.Validate(decode(t, c.value))); !slices.Equal(got, c.want) {
			t.Errorf("%s of %s: got %q, want %q", c.schema, c.value, got, c.want)
		}
	}
}

// A resource that names its own draft is checked against the schema of that draft, and a document against that which it names.
func TestCompileChecksEachResourceAgainstItsDialect(t *testing.T) {
	t.Parallel()
	others := documents{
		"https://example.org/no-validation": `{"$id":"https://example.org/no-validation","$schema":"https://json-schema.org/draft/2020-12/schema",
			"$vocabulary":{"https://json-schema.org/draft/2020-12/vocab/core":true,"https://json-schema.org/draft/2020-12/vocab/applicator":true}}`,
		"https://example.org/unknown": `{"$schema":"https://json-schema.org/draft/2020-12/schema","$vocabulary":{"https://example.org/vocabulary":true}}`,
		"https://example.org/loop":    `{"$schema":"https://example.org/loop"}`,
	}
	for _, c := range []struct {
		schema string
		want   string // of the error; empty: none
	}{
		{`{"$defs":{"x":{"$id":"x","$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}]}}}`, ""},
		{`{"items":[{"type":"string"}]}`, "items"},
		{`{"$defs":{"x":{"$id":"x","$schema":"http://json-schema.org/draft-07/schema#","items":{"$id":"y","$schema":"https://json-schema.org/draft/2020-12/schema","items":[]}}}}`, "items"},
		{`{"$defs":{"x":{"$schema":"http://json-schema.org/draft-07/schema#","items":[]}}}`, "items"},
		{`{"$schema":"https://example.org/no-validation","minLength":-1}`, ""},
		{`{"$schema":"https://example.org/no-validation","properties":1}`, "properties"},
		{`{"$schema":"https://example.org/unknown"}`, "unsupported vocabulary"},
		{`{"$schema":"https://example.org/loop"}`, "not supported"},
		{`{"$schema":"https://example.org/missing"}`, "no such document"},
		{`{"$defs":{"x":{"$id":"x","$schema":"http://json-schema.org/draft-04/schema#"}}}`, "another draft"},
		{`{"$id":"https://example.org/%zz"}`, "parsing id"},
		{`{"$ref":"http://[1::2/"}`, "$ref"},
		{`{"$defs":{"a":{"$id":"x"},"b":{"$id":"x"}}}`, "duplicate id"},
		{`{"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}}`, "duplicate anchor"},
		{`{"$ref":"#missing"}`, "anchor in"},
		{`{"$ref":"#/~2"}`, "invalid json-pointer"},
		{`{"x":{"y":{"type":"nothing"}},"$ref":"#/x/y"}`, "type"},
		{`{"patternProperties":{"(":true}}`, "propertyNames"},
	} {
		_, err := compile(t, c.schema, others)
		text := ""
		var invalid *InvalidError
		switch {
		case errors.As(err, &invalid):
			text = err.Error() + strings.Join(keywordsOf(invalid.Errors), " ")
		case err != nil:
			text = err.Error()
		}
		if (err == nil) != (c.want == "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: got %q, want %q", c.schema, text, c.want)
		}
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ base, ref, address, fragment string }{
		{"https://example.org/a/b", "c#/d~1e", "https://example.org/a/c", "/d~1e"},
		{"https://example.org/a", "#x%20y", "https://example.org/a", "x y"},
		{"urn:example:root", "#/a", "urn:example:root", "/a"},
		{"schema:///schema.json", "other.json", "schema:///other.json", ""},
	} {
		if address, fragment, err := resolve(c.base, c.ref); err != nil || address != c.address || fragment != c.fragment {
			t.Errorf("%s in %s: got %q, %q, %v", c.ref, c.base, address, fragment, err)
		}
	}
	for _, token := range []string{"", "a", "~", "/", "~1", "a~b/c"} {
		if got, ok := unescapeToken(escapeToken(token)); !ok || got != token {
			t.Errorf("%q becomes %q", token, got)
		}
	}
	for text, want := range map[string]bool{"https://example.org/": true, "urn:a:b": true, "a/b": false, "://": false, "http://[::1]/": true, "http://[::x]/": false} {
		if isURI(text) != want {
			t.Errorf("%q is a URI: %t", text, !want)
		}
	}
	if isURIReference(`a\b`) || !isURIReference("../a#b") {
		t.Error("a reference is judged wrongly")
	}
}

// The schemas of the drafts are valid against themselves.
func TestMetaschemasAreValid(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"http://json-schema.org/draft-07/schema", "https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2020-12/meta/core"} {
		v := metaschemaOfAddress(address)
		if v == nil {
			t.Fatal(address)
		}
		draft := Draft2020
		if strings.Contains(address, "07") {
			draft = Draft7
		}
		r := run{compile: func(expr string) (Regexp, error) { return regexp.Compile(expr) }}
		if errs := r.apply(&frame{schema: metaschemaOf(draft)}, v, false, nil); errs != nil {
			t.Errorf("%s: %q", address, keywordsOf(errs))
		}
	}
	for _, address := range []string{"https://json-schema.org/draft", "https://json-schema.org/../x", "https://example.org/schema"} {
		if v := metaschemaOfAddress(address); v != nil {
			t.Errorf("%s: got %v", address, v)
		}
	}
}

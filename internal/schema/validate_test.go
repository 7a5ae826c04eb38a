package schema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// order is a schema of ten fields with most of what tools use; orderValid is a value for it.
const (
	order = `{"type":"object","additionalProperties":false,
		"required":["id","status","customer","items","total"],
		"properties":{
			"id":{"type":"string","pattern":"^ord_[a-z0-9]{8,16}$"},
			"status":{"type":"string","enum":["new","paid","shipped","cancelled"]},
			"priority":{"type":"integer","minimum":1,"maximum":5},
			"total":{"type":"number","exclusiveMinimum":0,"maximum":100000},
			"currency":{"type":"string","minLength":3,"maxLength":3},
			"note":{"type":["string","null"],"maxLength":500},
			"gift":{"type":"boolean"},
			"customer":{"type":"object","required":["name","email"],"additionalProperties":false,"properties":{
				"name":{"type":"string","minLength":1},
				"email":{"type":"string","pattern":"^[^@ ]+@[^@ ]+$"},
				"age":{"type":"integer","minimum":0,"maximum":150}}},
			"items":{"type":"array","minItems":1,"maxItems":50,"items":{"type":"string","minLength":2}},
			"coupon":{"anyOf":[{"type":"string","maxLength":20},{"type":"null"}]}}}`
	orderValid = `{"id": "ord_8f3k2m1q", "status": "paid", "priority": 3, "total": 149.95, "currency": "EUR", "note": null, "gift": false,` +
		` "customer": {"name": "Ada Lovelace", "email": "ada@example.org", "age": 36}, "items": ["sku-1001", "sku-2002", "sku-3003"], "coupon": null}`
	orderInvalid = `{"id": "ord_8f3k2m1q", "status": "lost", "priority": 9, "total": 149.95, "currency": "EUR", "note": null, "gift": false,` +
		` "customer": {"name": "Ada Lovelace", "email": "ada@example.org", "age": 36}, "items": ["sku-1001", "sku-2002", "sku-3003"], "coupon": null}`
)

func mustCompile(t testing.TB, raw string) *Schema {
	t.Helper()
	s, err := Compile([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The library alone, without what this package changes in the compiled schema.
func verdictOfLibrary(t *testing.T, raw, value []byte, from loader) bool {
	t.Helper()
	doc, draft, err := read(raw, from)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readParts(doc); err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(draft)
	c.UseLoader(from)
	engine := newPatterns()
	c.UseRegexpEngine(engine.compile)
	if err := c.AddResource(base, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(base)
	if err != nil {
		t.Fatal(err)
	}
	v, err := rawjson.Value(value)
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v) == nil
}

func FuzzValidate(f *testing.F) {
	f.Add(order, orderValid)
	f.Add(order, orderInvalid)
	f.Add(`{"oneOf":[{"type":"integer"},{"multipleOf":0.5}],"not":{"const":1e2}}`, `100.0`)
	f.Add(`{"items":{"$ref":"#"},"uniqueItems":true,"if":{"minItems":2},"then":{"maxItems":3}}`, `[[],[[]],[1]]`)
	f.Add(`{"uniqueItems":true}`, `["\u0061","a"]`)
	f.Add(`{"patternProperties":{"^x":{"type":["null","boolean"]}},"additionalProperties":{"pattern":"^a+b?$"}}`, `{"x":null,"y":"aab"}`)
	f.Add(`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"enum":["é",2.50]}],"additionalItems":false}`, `[2.5]`)
	f.Add(`{"$dynamicRef":"#a","$defs":{"x%y/z":{"$dynamicAnchor":"a","propertyNames":{"minLength":2}}},"unevaluatedProperties":{"type":"null"}}`, `{"a":1,"A":{}}`)
	f.Fuzz(func(t *testing.T, rawSchema, value string) {
		if len(rawSchema) > 2000 || len(value) > 2000 {
			return
		}
		s, err := Compile([]byte(rawSchema))
		if err != nil {
			return
		}
		s.ValidateArguments([]byte(value)) // never panics, whatever the text
		if strings.Contains(rawSchema, "format") || rawjson.Check([]byte(value), rawjson.Limits{}) != nil {
			return
		}
		vs := s.Validate([]byte(value))
		if len(vs) > 0 && vs[0].Keyword == "limit" {
			return
		}
		if want := verdictOfLibrary(t, []byte(rawSchema), []byte(value), nothing{}); (vs == nil) != want {
			t.Errorf("%s: %s: got %v, the library says valid %v", rawSchema, value, vs, want)
		}
	})
}

func BenchmarkValid(b *testing.B) {
	s, value := mustCompile(b, order), []byte(orderValid)
	b.ReportAllocs()
	for b.Loop() {
		if s.ValidateArguments(value) != nil {
			b.Fatal("not valid")
		}
	}
}

func BenchmarkInvalid(b *testing.B) {
	s, value := mustCompile(b, order), []byte(orderInvalid)
	b.ReportAllocs()
	for b.Loop() {
		if s.ValidateArguments(value) == nil {
			b.Fatal("valid")
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	raw := json.RawMessage(order)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile(raw); err != nil {
			b.Fatal(err)
		}
	}
}

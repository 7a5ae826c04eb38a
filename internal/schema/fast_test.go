package schema

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// tally counts what the fast path settles, and fails where it contradicts the whole check.
type tally struct{ valid, fast int }

func (c *tally) add(t *testing.T, name string, s *Schema, value []byte) {
	t.Helper()
	slow := s.check(value)
	fast, _ := s.fast.decide(value)
	switch {
	case fast == yes && slow != nil:
		t.Errorf("%s: %s: the fast path says valid, the whole check %v", name, value, slow)
	case fast == no && slow == nil:
		t.Errorf("%s: %s: the fast path says not valid, the whole check valid", name, value)
	}
	if got := s.Validate(value); !slices.Equal(got, slow) {
		t.Errorf("%s: %s: got %v, the whole check says %v", name, value, got, slow)
	}
	if got, want := s.ValidateArguments(value), s.addFolded(value, slices.Clone(slow)); !slices.Equal(got, want) {
		t.Errorf("%s: %s: as arguments %v, want %v", name, value, got, want)
	}
	if slow == nil {
		c.valid++
		if fast == yes {
			c.fast++
		}
	}
}

func (c *tally) wantShare(t *testing.T, percent int) {
	t.Helper()
	t.Logf("%d of %d valid values on the fast path", c.fast, c.valid)
	if c.valid == 0 || c.fast*100 < c.valid*percent {
		t.Errorf("%d of %d valid values on the fast path, want at least %d %%", c.fast, c.valid, percent)
	}
}

func TestFastPathAgreesOnSuite(t *testing.T) {
	t.Parallel()
	var c tally
	for draft, metaschema := range map[string]string{
		"draft2020-12": "https://json-schema.org/draft/2020-12/schema",
		"draft7":       "http://json-schema.org/draft-07/schema#",
	} {
		for _, folder := range []string{"", "optional"} {
			suiteGroups(t, draft, metaschema, folder, func(t *testing.T, name string, g *suiteGroup, s *Schema) {
				for _, test := range g.Tests {
					c.add(t, name+": "+test.Description, s, test.Data)
				}
			})
		}
	}
	c.wantShare(t, 75)
}

func TestFastPathAgreesOnBFCL(t *testing.T) {
	t.Parallel()
	calls, schemas := bfcl(t)
	var c tally
	for i := range calls {
		c.add(t, calls[i].Schema+" "+calls[i].Mutation, schemas[calls[i].Schema], calls[i].Arguments)
	}
	c.wantShare(t, 90)
}

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

func TestValidateAllocatesNothing(t *testing.T) {
	s, value := mustCompile(t, order), []byte(orderValid)
	if v, _ := s.fast.decide(value); v != yes {
		t.Fatal("not on the fast path")
	}
	if n := testing.AllocsPerRun(100, func() { s.Validate(value); s.ValidateArguments(value) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func FuzzFastPath(f *testing.F) {
	f.Add(order, orderValid)
	f.Add(order, orderInvalid)
	f.Add(`{"oneOf":[{"type":"integer"},{"multipleOf":0.5}],"not":{"const":1e2}}`, `100.0`)
	f.Add(`{"items":{"$ref":"#"},"uniqueItems":true,"if":{"minItems":2},"then":{"maxItems":3}}`, `[[],[[]],[1]]`)
	f.Add(`{"uniqueItems":true}`, `["\u0061","a"]`)
	f.Add(`{"patternProperties":{"^x":{"type":["null","boolean"]}},"additionalProperties":{"pattern":"^a+b?$"}}`, `{"x":null,"y":"aab"}`)
	f.Add(`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"enum":["é",2.50]}],"additionalItems":false}`, `[2.5]`)
	f.Fuzz(func(t *testing.T, rawSchema, value string) {
		if len(rawSchema) > 2000 || len(value) > 2000 {
			return
		}
		s, err := Compile([]byte(rawSchema))
		if err != nil {
			return
		}
		s.Validate([]byte(value)) // never panics, whatever the text
		if rawjson.Check([]byte(value), rawjson.Limits{}) == nil {
			new(tally).add(t, rawSchema, s, []byte(value))
		}
	})
}

func BenchmarkValid(b *testing.B) {
	s, value := mustCompile(b, order), []byte(orderValid)
	b.Run("Validate", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if s.Validate(value) != nil {
				b.Fatal("not valid")
			}
		}
	})
	b.Run("check", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if s.check(value) != nil {
				b.Fatal("not valid")
			}
		}
	})
}

func BenchmarkInvalid(b *testing.B) {
	s, value := mustCompile(b, order), []byte(orderInvalid)
	b.Run("Validate", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if s.Validate(value) == nil {
				b.Fatal("valid")
			}
		}
	})
	b.Run("check", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if s.check(value) == nil {
				b.Fatal("valid")
			}
		}
	})
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

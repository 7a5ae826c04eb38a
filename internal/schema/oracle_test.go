package schema

import (
	"fmt"
	"math/rand/v2"
	"testing"

	other "github.com/santhosh-tekuri/jsonschema/v6"
)

// Package jsonschema and the library of another author agree about random schemas and values.
func TestVerdictsAgreeWithAnotherLibrary(t *testing.T) {
	t.Parallel()
	g := gambler{rand.New(rand.NewPCG(5, 6))}
	compiled, valid, values := 0, 0, 0
	for range 150 {
		raw := fmt.Sprintf(`{"$schema":%q,"$defs":{"d":%s},"allOf":[%s],"unevaluatedProperties":%s}`,
			g.pick("https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"), g.schema(1), g.schema(3), g.schema(1))
		s, err := Compile([]byte(raw))
		if err != nil {
			continue
		}
		doc, err := unmarshal([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		c := other.NewCompiler()
		if err := c.AddResource(base, doc); err != nil {
			t.Fatal(err)
		}
		oracle, err := c.Compile(base)
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		compiled++
		for range 12 {
			text := g.value(3)
			v, err := unmarshal([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			want := oracle.Validate(v)
			got := s.check([]byte(text))
			if values++; want == nil {
				valid++
			}
			if (got == nil) != (want == nil) {
				t.Fatalf("%s: %s: got %v, the other library says %v", raw, text, got, want)
			}
		}
	}
	if compiled < 75 || valid < values/20 || valid > values-values/20 {
		t.Errorf("%d schemas compiled, %d of %d values are valid: want more of each", compiled, valid, values)
	}
}

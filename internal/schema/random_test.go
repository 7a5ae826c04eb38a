package schema

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// A gambler writes schemas and values from one small stock, so that they often meet.
type gambler struct{ *rand.Rand }

func (g gambler) pick(ss ...string) string { return ss[g.IntN(len(ss))] }

func (g gambler) name() string { return g.pick(`"a"`, `"b"`, `"ab"`, `"x1"`, `"é"`, `"a\u0062"`) }

func (g gambler) number() string {
	return g.pick("0", "-0", "1", "2", "-3", "1.0", "1.5", "0.25", "1e1", "10", "25e-2", "1e40", "100000000000000000000", "0.1", "3.0e0")
}

func (g gambler) text() string {
	return g.pick(`""`, `"a"`, `"ab"`, `"aab"`, `"é"`, `"éé"`, `"\u0061"`, `"\n"`, `"😀"`, `"\ud83d\ude00"`, `"1"`, `"a b"`)
}

func (g gambler) value(depth int) string {
	n := 6
	if depth <= 0 {
		n = 4
	}
	switch g.IntN(n) {
	case 0:
		return g.pick("null", "true", "false")
	case 1, 2:
		return g.number()
	case 3:
		return g.text()
	case 4:
		items := make([]string, g.IntN(4))
		for i := range items {
			items[i] = g.value(depth - 1)
		}
		return "[" + strings.Join(items, g.pick(",", " , ")) + "]"
	}
	var members []string
	used := map[string]bool{`"a\u0062"`: g.IntN(2) == 0}
	used[`"ab"`] = !used[`"a\u0062"`] // the same name twice is no value
	for range g.IntN(4) {
		if name := g.name(); !used[name] {
			used[name] = true
			members = append(members, name+g.pick(":", " : ")+g.value(depth-1))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (g gambler) schemas(depth int) string {
	subs := make([]string, 1+g.IntN(3))
	for i := range subs {
		subs[i] = g.schema(depth)
	}
	return "[" + strings.Join(subs, ",") + "]"
}

func (g gambler) schema(depth int) string {
	if depth <= 0 || g.IntN(12) == 0 {
		return g.pick("true", "false", "{}", `{"type":"string"}`, `{"type":"integer"}`, `{"$ref":"#/$defs/d"}`)
	}
	keywords := map[string]string{}
	for range 1 + g.IntN(4) {
		keyword, value := g.keyword(depth - 1)
		keywords[keyword] = value
	}
	var members []string
	for _, keyword := range slices.Sorted(maps.Keys(keywords)) {
		members = append(members, strconv.Quote(keyword)+":"+keywords[keyword])
	}
	return "{" + strings.Join(members, ",") + "}"
}

func (g gambler) keyword(depth int) (keyword, value string) {
	small := strconv.Itoa(g.IntN(4))
	switch g.IntN(20) {
	case 0, 1, 2:
		kind := []string{"null", "boolean", "integer", "number", "string", "array", "object"}
		if g.IntN(2) == 0 {
			return "type", strconv.Quote(g.pick(kind...))
		}
		i := g.IntN(len(kind) - 2)
		return "type", `["` + strings.Join(kind[i:i+2], `","`) + `"]`
	case 3:
		return "enum", "[" + g.value(1) + "," + g.value(1) + "," + g.value(0) + "]"
	case 4:
		return "const", g.value(1)
	case 5:
		return g.pick("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), g.number()
	case 6:
		return "multipleOf", g.pick("1", "2", "0.5", "0.1", "1e1", "0.01")
	case 7:
		return g.pick("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), small
	case 8:
		return "pattern", g.pick(`"^a+b?$"`, `"^[^b]{1,2}$"`, `"a"`, `"^$"`, `"^\\S*"`, `"^.{2}$"`, `"^(a|é)"`, `"(?i)^A"`, `"^a*ab$"`)
	case 9, 10, 11:
		return "properties", "{" + `"a":` + g.schema(depth) + `,` + g.pick(`"b"`, `"ab"`, `"é"`) + `:` + g.schema(depth) + "}"
	case 12:
		return "required", "[" + g.pick(`"a"`, `"b"`, `"ab"`, `"a","é"`, ``) + "]"
	case 13:
		return "additionalProperties", g.schema(depth)
	case 14:
		return "patternProperties", `{"` + g.pick("^a", "b$", "^x[0-9]$", "^[^a]") + `":` + g.schema(depth) + "}"
	case 15:
		return "items", g.schema(depth)
	case 16:
		return g.pick("prefixItems", "allOf", "anyOf", "oneOf", "items"), g.schemas(depth)
	case 17:
		return g.pick("not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties"), g.schema(depth)
	case 18:
		return g.pick("uniqueItems", "additionalItems"), g.pick("true", "false")
	}
	return g.pick("dependentRequired", "dependencies", "x"), `{"a":["b"]}`
}

func TestFastPathAgreesOnRandomSchemas(t *testing.T) {
	t.Parallel()
	g := gambler{rand.New(rand.NewPCG(1, 2))}
	var c tally
	compiled := 0
	for range 3000 {
		raw := fmt.Sprintf(`{"$schema":%q,"$defs":{"d":%s},"allOf":[%s]}`,
			g.pick("https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"), g.schema(1), g.schema(3))
		s, err := Compile([]byte(raw))
		if err != nil {
			continue // such as a schema that leads back to itself, or items of the other draft
		}
		compiled++
		for range 12 {
			c.add(t, raw, s, []byte(g.value(3)))
		}
		if t.Failed() {
			return
		}
	}
	if compiled < 2000 {
		t.Errorf("%d schemas compiled, want most", compiled)
	}
	c.wantShare(t, 75)
}

// Arguments whose names all are declared are not searched for names that differ only in letter case. The tally compares
// the result with that of the search.
func TestNamesOfLetterCaseAgreeOnRandomSchemas(t *testing.T) {
	t.Parallel()
	g := gambler{rand.New(rand.NewPCG(3, 4))}
	upper := strings.NewReplacer(`"b"`, `"A"`, `"é"`, `"AB"`)
	var c tally
	folded, skipped := 0, 0
	for range 250 {
		more := ""
		if g.IntN(2) == 0 {
			more = fmt.Sprintf(`,"%s":[%s]`, g.pick("allOf", "anyOf", "oneOf"), g.schema(2))
		}
		s, err := Compile([]byte(upper.Replace(fmt.Sprintf(`{"$defs":{"d":%s},"properties":{"a":%s,"b":%s}%s}`,
			g.schema(1), g.schema(1), g.schema(1), more))))
		if err != nil {
			continue
		}
		for range 12 {
			value := []byte(upper.Replace(g.pick(g.value(3), `{"a":`+g.value(1)+`,"b":`+g.value(1)+`}`)))
			c.add(t, "random", s, value)
			if rawjson.HasFoldedNames(value) {
				folded++
				if v, declared := s.fast.decide(value); v == yes && declared {
					skipped++
				}
			}
		}
		if t.Failed() {
			return
		}
	}
	if folded < 500 || skipped < 50 {
		t.Errorf("%d values have names that differ only in letter case, the search was left out for %d: want more of both", folded, skipped)
	}
}

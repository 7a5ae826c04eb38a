package schema

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

const commonSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","title":"t","properties":{"id":{"type":["string","null"],"description":"d","minLength":1,"maxLength":20,"format":"uuid"},` +
	`"n":{"type":"integer","minimum":-1,"maximum":1e3,"default":5},"kind":{"enum":["a",1,null]},"list":{"type":"array","items":{"$ref":"#/$defs/Item"},"minItems":0,"uniqueItems":true},` +
	`"any":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/Item"},true]},"fixed":{"const":{"a":1}}},"required":["id"],"additionalProperties":false,` +
	`"$defs":{"Item":{"type":"object","properties":{"self":{"$ref":"#/$defs/Item"}},"additionalProperties":{"type":"number"}}}}`

// Schemas of common keywords are not compiled before their first use; others are.
func TestCompileLazilyCompilesAtFirstUse(t *testing.T) {
	t.Parallel()
	for raw, lazy := range map[string]bool{
		commonSchema: true,
		`{}`:         true,
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"string"}}}`: true,
		`{"type":"string","pattern":"^a+$"}`: false,
		`{"type":"object","x-vendor":true}`:  false,
		`{"$ref":"#"}`:                       false,
		`true`:                               false,
	} {
		l, err := CompileLazily([]byte(raw))
		if raw == `{"$ref":"#"}` {
			if err == nil {
				t.Errorf("%s is accepted", raw)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if got := l.s == nil; got != lazy {
			t.Errorf("%s: not compiled yet is %t", raw, got)
		}
		if first := l.Schema(); first == nil || first != l.Schema() {
			t.Errorf("%s has no schema, or not one", raw)
		}
	}
}

// A schema that does not compile is refused at once, with the same error.
func TestCompileLazilyRefusesAtOnce(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		``, `nonsense`, `[]`, `{"type":"text"}`, `{"type":[]}`, `{"type":["string","string"]}`, `{"type":1}`, `{"properties":[]}`, `{"properties":{"a":1}}`,
		`{"required":"a"}`, `{"required":["a","a"]}`, `{"required":[1]}`, `{"enum":"a"}`, `{"minLength":-1}`, `{"minLength":"1"}`, `{"minimum":"1"}`, `{"maximum":1e5000}`,
		`{"items":[{"type":"string"}]}`, `{"anyOf":[]}`, `{"anyOf":{}}`, `{"title":1}`, `{"uniqueItems":1}`, `{"$ref":"#/$defs/none"}`, `{"$ref":1}`, `{"$defs":[]}`, `{"examples":1}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		`{"$defs":{"a":{"allOf":[{"anyOf":[{"$ref":"#/$defs/a"}]}]}}}`,
		`{"properties":{"a":{"$schema":"http://json-schema.org/draft-04/schema#"}}}`, `{"$schema":"http://json-schema.org/draft-04/schema#"}`,
		strings.Repeat(`{"items":`, 65) + `{}` + strings.Repeat(`}`, 65),
		`{"description":"` + strings.Repeat("a", MaxSchemaBytes) + `"}`,
		`{"enum":[` + strings.Repeat("{},", MaxSubschemas) + `{}]}`,
	} {
		_, want := Compile([]byte(raw))
		_, got := CompileLazily([]byte(raw))
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%.100s: %v, want %v", raw, got, want)
		}
	}
}

// checkPlain fails if a schema that counts as plain does not compile.
func checkPlain(t *testing.T, raw []byte) (plain bool) {
	t.Helper()
	doc, draft, err := read(raw, nothing{})
	if err != nil || !isPlain(doc, draft) {
		return false
	}
	if _, err := Compile(raw); err != nil {
		t.Errorf("%.1000s is plain, and does not compile: %v", raw, err)
	}
	return true
}

// What counts as plain compiles: random schemas, most keywords with fitting values and some without.
func TestPlainSchemasCompile(t *testing.T) {
	t.Parallel()
	g := randomSchemas{rand.New(rand.NewPCG(7, 7))}
	plain := 0
	for range 600 {
		if checkPlain(t, []byte(g.common(3, true))) {
			plain++
		}
	}
	if plain < 80 || plain > 550 {
		t.Errorf("%d of 600 schemas are plain: the test shows nothing", plain)
	}
}

// A randomSchemas writes schemas.
type randomSchemas struct{ *rand.Rand }

func (g randomSchemas) pick(ss ...string) string { return ss[g.IntN(len(ss))] }

func (g randomSchemas) value() string {
	return g.pick("null", "true", "-0", "1.5", "1e40", `"é"`, `"a\u0062"`, "[1, [], {}]", `{"a":1,"$ref":"#/none"}`)
}

// common writes a schema of common keywords.
func (g randomSchemas) common(depth int, root bool) string {
	if depth == 0 {
		return g.pick(`true`, `{}`, `{"type":"string"}`, `{"$ref":"#/$defs/a"}`, `{"$ref":"#/$defs/b.c"}`)
	}
	members := map[string]string{}
	for range 1 + g.IntN(4) {
		sub := func() string { return g.common(depth-1, false) }
		list := func() string { return "[" + sub() + "," + sub() + "]" }
		switch g.IntN(12) {
		case 0:
			members["type"] = g.pick(`"string"`, `"object"`, `["integer","null"]`, `"number"`, `["string","string"]`)
		case 1:
			members["properties"] = `{"a":` + sub() + `,"$ref":` + sub() + `,"~%/":` + sub() + `}`
		case 2:
			members[g.pick("anyOf", "oneOf", "allOf")] = list()
		case 3:
			members[g.pick("items", "additionalProperties")] = sub()
		case 4:
			members["$ref"] = g.pick(`"#/$defs/a"`, `"#/$defs/b.c"`, `"#/$defs/%61"`)
		case 5:
			members[g.pick("enum", "examples")] = `[` + g.value() + `,` + g.value() + `]`
		case 6:
			members[g.pick("const", "default")] = g.value()
		case 7:
			members[g.pick("minimum", "exclusiveMaximum")] = g.pick("0", "-3", "1.5", "1e40", "100000000000000000000")
		case 8:
			members[g.pick("minLength", "maxItems", "minProperties")] = g.pick("0", "12", "1.0", "999999999")
		case 9:
			members["required"] = g.pick(`[]`, `["a"]`, `["a","b"]`)
		case 10:
			members[g.pick("title", "format", "$comment")] = g.pick(`""`, `"é"`, `"\ud83d\ude00"`)
		case 11:
			members[g.pick("uniqueItems", "readOnly", "writeOnly")] = g.pick("true", "false")
		}
	}
	if root {
		members["$defs"] = `{"a":` + g.common(depth-1, false) + `,"b.c":` + g.common(depth-1, false) + `}`
		if g.IntN(4) == 0 {
			members["$schema"] = g.pick(`"https://json-schema.org/draft/2020-12/schema"`, `"http://json-schema.org/draft-07/schema#"`)
		}
	}
	var b strings.Builder
	for key, v := range members {
		fmt.Fprintf(&b, `,%q:%s`, key, v)
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

func FuzzPlainCompiles(f *testing.F) {
	for _, raw := range []string{commonSchema, `{"$defs":{"a":{"$ref":"#/$defs/a"}}}`, `{"type":["null"],"enum":[],"minimum":1e9,"maxLength":3,"items":{}}`} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) { checkPlain(t, raw) })
}

// The schemas of the test suite that count as plain compile.
func TestPlainSchemasOfSuiteCompile(t *testing.T) {
	t.Parallel()
	plain := 0
	for _, draft := range [][2]string{{"draft2020-12", "https://json-schema.org/draft/2020-12/schema"}, {"draft7", "http://json-schema.org/draft-07/schema#"}} {
		suiteGroups(t, draft[0], draft[1], "", func(t *testing.T, _ string, g *suiteGroup, _ *Schema) {
			if checkPlain(t, g.Schema) {
				plain++
			}
		})
	}
	if plain < 100 {
		t.Errorf("%d are plain: the test shows nothing", plain)
	}
}

// Several goroutines that use a schema first get the same one.
func TestLazySchemaIsCompiledOnce(t *testing.T) {
	t.Parallel()
	l, err := CompileLazily([]byte(commonSchema))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	got := make([]*Schema, 8)
	for i := range got {
		wg.Go(func() { got[i] = l.Schema() })
	}
	wg.Wait()
	for _, s := range got {
		if s != got[0] || s.Validate([]byte(`{"id":"x"}`)) != nil || s.Validate([]byte(`{"id":1}`)) == nil {
			t.Error("not the schema, or not one")
		}
	}
}

// A schema that was wrongly taken for one that compiles accepts nothing.
func TestLazySchemaThatDoesNotCompileRefuses(t *testing.T) {
	t.Parallel()
	l := &Lazy{raw: []byte(`{"type":"nonsense"}`)}
	if l.Schema().Validate([]byte(`{}`)) == nil {
		t.Error("a value is valid")
	}
}

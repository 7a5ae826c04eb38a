package httptool

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/rawjson"
)

// YAML becomes the values that JSON has: dates are texts, numbers keep their digits, merged members and aliases stand where they count.
func TestDocumentsInYAMLBecomePlainValues(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a: 2020-01-02\nb: yes\nc: true\nd: ~\ne: !!binary aGk=\nf: \"1\"":          `{"a":"2020-01-02","b":"yes","c":true,"d":null,"e":"aGk=","f":"1"}`,
		"a: 1.50\nb: 0x1F\nc: 1_000\nd: 12345678901234567890\ne: +5\nf: 1e3\ng: .5": `{"a":1.50,"b":31,"c":1000,"d":12345678901234567890,"e":5,"f":1e3,"g":0.5}`,
		"200: a\n1.5: b\ntrue: c": `{"1.5":"b","200":"a","true":"c"}`,
		"x: &x {a: 1, b: 2}\ny: &y {b: 3, c: 4}\nz: {<<: [*x, *y], a: 5}\nl: [*x]": `{"l":[{"a":1,"b":2}],"x":{"a":1,"b":2},"y":{"b":3,"c":4},"z":{"a":5,"b":2,"c":4}}`,
		`{"a":1.0}`: `{"a":1.0}`,
	} {
		v, err := decodeDocument([]byte(in))
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if b, err := json.Marshal(v); err != nil || string(b) != want {
			t.Errorf("%s: got %s, %v, want %s", in, b, err, want)
		}
	}
	many := "x: &x [" + strings.Repeat("a,", 999) + "a]\n"
	for i := range maxAliased/1000 + 1 {
		many += fmt.Sprintf("y%d: *x\n", i)
	}
	chain := "x0: &x0 [a]\n"
	for i := range maxNesting / 2 {
		chain += fmt.Sprintf("x%d: &x%d [*x%d]\n", i+1, i+1, i)
	}
	for in, want := range map[string]string{
		"a: .inf":       "not a value that JSON has",
		"a: 1\na: 2":    "twice",
		"? [a]\n: 1":    "not a text",
		"a: {<<: 5}":    "not a mapping",
		many:            "aliases of the document stand for more than",
		`{"a":1,"a":2}`: "key",
		"x: &x [*x]":    "an alias of the document holds itself",
		chain:           "deeper than 200",
		"a: " + strings.Repeat("[", maxNesting+1) + strings.Repeat("]", maxNesting+1): "deeper",
	} {
		if v, err := decodeDocument([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v, %v, want an error with %q", in, v, err, want)
		}
	}
}

// Numbers of schemas are written shortly if no digit is lost, and keywords that say nothing are left out: the schema that a model reads does
// not depend on how the author wrote it.
func TestSchemasAreWrittenInOneForm(t *testing.T) {
	t.Parallel()
	doc, left := &Document{root: map[string]any{}}, maxSchemaBytes
	for in, want := range map[string]string{
		`{"minimum":1.50,"maximum":1e2,"default":{"a":[2.0]}}`:                                                  `{"default":{"a":[2]},"maximum":100,"minimum":1.5}`,
		`{"maximum":9007199254740993,"multipleOf":0.10}`:                                                        `{"maximum":9007199254740993,"multipleOf":0.1}`,
		`{"enum":[1e-999999,0e-999999,-0.0,1e999999]}`:                                                          `{"enum":[1e-999999,0,-0,1e999999]}`,
		`{"minLength":0,"required":[],"uniqueItems":false,"title":"","default":null,"properties":{},"enum":[]}`: `{}`,
		`{"properties":{"minLength":{"type":"string","minLength":1}},"const":null}`:                             `{"const":null,"properties":{"minLength":{"minLength":1,"type":"string"}}}`,
	} {
		v, err := rawjson.Value([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := newConverter(doc, &left).convert(v); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", in, got, err, want)
		}
	}
}

func TestDocumentsAreRefused(t *testing.T) {
	t.Parallel()
	for members, want := range map[string]string{
		`"paths":{"/a":{"get":5}}`:                  `"get" is not an object`,
		`"paths":{"/a":{"get":{"operationId":5}}}`:  `"operationId" is not a text`,
		`"paths":{"/a":{"get":{"tags":"x"}}}`:       `"tags" is not a list`,
		`"paths":{"/a":{"get":{"security":["x"]}}}`: `"security" is not a list of objects`,
		`"paths":{"/a":5}`:                          `the path "/a": is not an object`,
		`"paths":[]`:                                `"paths" is not an object`,
		`"paths":{"x-a":{}}`:                        "the document has no paths",
		`"paths":{"/a":{"$ref":"#/paths/~1b"},"/b":{"$ref":"#/paths/~1a"}}`:                  "references lead from one to the next",
		`"paths":{"/a":{}},"components":{"schemas":{"default":{"$ref":"other.json#/a"}}}`:    `the reference "other.json#/a" is to another document`,
		`"paths":{"/a":{}},"components":{"schemas":{"A":{"$ref":"#/components/schemas/B"}}}`: "the document has nothing at the reference #/components/schemas/B",
	} {
		if _, err := ReadDocument([]byte(`{"openapi":"3.1.0",` + members + `}`)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", members, err, want)
		}
	}
	d, err := ReadDocument([]byte(`{"openapi":"3.0.0","paths":{"/b":{"$ref":"#/paths/~1a","get":{"operationId":"own"}},"/a":{"get":{"operationId":"a"},"post":{"operationId":"b"}}},
		"components":{"schemas":{"A":{"properties":{"$ref":{"type":"string"}},"example":{"$ref":"no reference"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, f := range d.found {
		ids = append(ids, f.path+" "+f.op.OperationID)
	}
	if got := strings.Join(ids, ", "); got != "/a a, /a b, /b own, /b b" {
		t.Errorf("got %s", got)
	}
}

// A small document cannot ask for much more than it has: aliases, references and lists that operations share are bounded or taken once.
func TestSmallDocumentsStaySmall(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxAliasedBytes/16)
	for in, want := range map[string]string{
		"a: &a " + long + "\nb: [" + strings.Repeat("*a, ", 17) + "]":               "more than 16777216 bytes of text",
		"a: &a {? " + long + " : 1}\nb: [" + strings.Repeat("*a, ", 17) + "]":       "more than 16777216 bytes of text",
		"a: {? &a " + long + " : 1}\nb: [" + strings.Repeat("{*a : 1}, ", 17) + "]": "more than 16777216 bytes of text",
	} {
		if _, err := decodeDocument([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: got %v, want an error with %q", in, err, want)
		}
	}
	named := func(n int, form string) string { return strings.TrimSuffix(strings.Repeat(form+",", n), ",") }
	for in, want := range map[string]string{
		`"tags":[` + named(maxTags+1, `"t"`) + `]`:               "at most 100",
		`"security":[` + named(maxRequirements+1, `{}`) + `]`:    "at most 100 security schemes",
		`"parameters":[{"$ref":"http://x/` + long[:5000] + `"}]`: "is to another document",
	} {
		_, err := ReadDocument([]byte(`{"openapi":"3.1.0","paths":{"/a":{"get":{"operationId":"a",` + in + `}}}}`))
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 400 {
			t.Errorf("%.20s: got %v, want a short error with %q", in, err, want)
		}
	}

	// The schema of one place is taken once, however references to it are spelled. Names that are alike stay short.
	var refs, schemas []string
	for i := range 64 {
		spelled := ""
		for bit := range 6 {
			spelled += []string{"a", "%61"}[i>>bit&1]
		}
		refs = append(refs, fmt.Sprintf(`{"$ref":"#/components/schemas/%s"},{"$ref":"#/components/schemas/%c"}`, spelled, 'а'+i))
		schemas = append(schemas, fmt.Sprintf(`"%c":{}`, 'а'+i))
	}
	defs, err := Import([]byte(`{"openapi":"3.1.0","paths":{"/a":{"get":{"operationId":"a","parameters":[{"name":"q","in":"query","schema":{"anyOf":[
		{"$ref":"#/components/schemas/50%2541"},`+strings.Join(refs, ",")+`]}}]}}},"components":{"schemas":{"50%41":{},"aaaaaa":{},`+strings.Join(schemas, ",")+`}}}`),
		&ImportOptions{Server: "http://127.0.0.1", Operations: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(defs[0].Defs); n != 66 {
		t.Errorf("%d schemas, want 66", n)
	}
	for name := range defs[0].Defs {
		if len(name) > 10 {
			t.Errorf("the name %q", name)
		}
	}

	// All tools of a document share a limit.
	d, err := ReadDocument([]byte(`{"openapi":"3.1.0","paths":{"/a":{"get":{"operationId":"a","parameters":[{"name":"q","in":"query","schema":{"enum":["a","b"]}}]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	left := 400
	for i, want := range []bool{true, false} {
		if _, err := d.define(d.found[0], &ImportOptions{Server: "http://127.0.0.1"}, &left); (err == nil) != want {
			t.Errorf("tool %d: %v", i, err)
		}
	}
}

func TestMediaTypesOfParametersAreObjects(t *testing.T) {
	t.Parallel()
	for media, want := range map[string]string{`[]`: "is not an object", `"x"`: "is not an object", `{"schema":5}`: "neither an object", `{}`: ""} {
		_, err := Import([]byte(`{"openapi":"3.1.0","paths":{"/a":{"get":{"operationId":"a","parameters":[{"name":"q","in":"query","content":{"application/json":`+media+`}}]}}}}`),
			&ImportOptions{Server: "http://127.0.0.1", Operations: []string{"a"}})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", media, err, want)
		}
	}
}

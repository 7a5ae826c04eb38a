package schema

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe/internal/testdata"
)

func ExampleSchema_Validate() {
	s, err := Compile([]byte(`{
		"type": "object",
		"properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}},
		"required": ["city"],
		"additionalProperties": false
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range s.Validate([]byte(`{"unit": "kelvin", "town": "Oslo"}`)) {
		fmt.Printf("%q %s: %s\n", v.Pointer, v.Keyword, v.Message)
	}
	// Output:
	// "" additionalProperties: 1 member too many; allowed are "city", "unit"
	// "" required: missing "city"
	// "/unit" enum: must be one of "C", "F"
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"not":`, MaxDepth) + "{}" + strings.Repeat("}", MaxDepth)
	var refs, subs strings.Builder
	for range MaxReferences + 1 {
		refs.WriteString(`{"$ref":"#/$defs/x"},`)
	}
	for range MaxSubschemas {
		subs.WriteString(`{},`)
	}
	for _, tc := range []struct{ name, schema, want string }{
		{"nothing", ``, "not JSON"},
		{"no JSON", `{"type":}`, "not JSON"},
		{"two values", `{} {}`, "not JSON"},
		{"array", `[]`, "not an object and not a boolean"},
		{"null", `null`, "not an object and not a boolean"},
		{"too large", `{"title":"` + strings.Repeat("x", MaxSchemaBytes) + `"}`, "at most 200000 are allowed"},
		{"too deep", deep, "nested deeper than 64"},
		{"too many references", `{"$defs":{"x":{}},"allOf":[` + refs.String() + `{}]}`, "2001 references"},
		{"too many subschemas", `{"anyOf":[` + subs.String() + `{}]}`, "objects and booleans"},
		{"huge exponent", `{"minimum":1e99999}`, "exponent"},
		{"endless number", `{"minimum":1` + strings.Repeat("0", MaxDigits) + `}`, "digits"},
		{"other draft", `{"$schema":"http://json-schema.org/draft-04/schema#"}`, "neither draft 2020-12 nor draft 7"},
		{"own metaschema", `{"$schema":"https://example.org/schema"}`, "neither draft 2020-12 nor draft 7"},
		{"other draft in a part that nothing refers to", `{"$defs":{"x":{"$id":"x","$schema":"http://json-schema.org/draft-04/schema#"}}}`, "another draft"},
		{"recursive reference", `{"$recursiveRef":"#"}`, "without end"},
		{"other draft inside", `{"$defs":{"x":{"$schema":"https://json-schema.org/draft/2019-09/schema","$id":"x"}},"$ref":"x"}`, "another draft"},
		{"unknown type", `{"type":"text"}`, `at "/type"`},
		{"negative length", `{"minLength":-1}`, `at "/minLength": minimum must be at least 0`},
		{"bad pattern", `{"pattern":"("}`, `at "/pattern"`},
		{"huge pattern", `{"pattern":"` + strings.Repeat("a", MaxPatternSize+1) + `"}`, "regular expressions of more than"},
		{"huge patterns", `{"patternProperties":{"` + strings.Repeat("a", MaxPatternSize/2) + `":{},"` + strings.Repeat("b", MaxPatternSize/2) + `c":{}}}`, "regular expressions of more than"},
		{"reference to nothing", `{"$ref":"#/$defs/x"}`, "not found"},
		{"reference to a file", `{"$ref":"file:///etc/hostname"}`, "not loaded"},
		{"reference to a sibling", `{"$ref":"other.json"}`, "not loaded"},
		{"reference to the network", `{"$ref":"https://example.org/s.json"}`, "not loaded"},
		{"dynamic reference to the network", `{"$dynamicRef":"https://example.org/s.json#x"}`, "not loaded"},
		{"itself", `{"$ref":"#"}`, "without end"},
		{"in a circle", `{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}, "$ref":"#/$defs/a"}`, "without end"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := Compile([]byte(tc.schema))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func TestCompileAccepts(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`true`,
		` {} `,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema"}`,
		`{"$schema":"http://json-schema.org/draft-07/schema"}`,
		`{"$schema":"https://json-schema.org/draft-07/schema#"}`,
		`{"$ref":"http://json-schema.org/draft-07/schema#"}`,
		`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`,
		`{"$id":"https://example.org/a","$defs":{"b":{"$id":"b","type":"string"}},"$ref":"https://example.org/b"}`,
		`{"properties":{"child":{"$ref":"#"}}}`,
		`{"pattern":"(?=a)"}`,
		`{"default":{"$id":"x","$schema":"http://json-schema.org/draft-04/schema#","pattern":"("}}`,
	} {
		if _, err := Compile([]byte(raw)); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestCompileReadsPublishedSchemas(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir(testdata.Dir(t, "mcp-schema"))
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".json") {
			continue
		}
		b, err := os.ReadFile(testdata.Dir(t, "mcp-schema", f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Compile(b); err != nil && len(b) <= MaxSchemaBytes {
			t.Errorf("%s: %v", f.Name(), err)
		}
		read++
	}
	if read == 0 {
		t.Error("no schema read")
	}
}

func TestValidateBounds(t *testing.T) {
	t.Parallel()
	anything := mustCompile(t, `true`)
	var doubling strings.Builder // each level tries the next one twice
	doubling.WriteString(`{"$ref":"#/$defs/a0","$defs":{`)
	for i := range 60 {
		fmt.Fprintf(&doubling, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	doubling.WriteString(`"a60":{"type":"string"}}}`)
	nested := `{"allOf":[{"properties":{"x":{"$ref":"#"}}},{"properties":{"x":{"$ref":"#"}}}],"required":["y"]}`
	for _, tc := range []struct {
		name   string
		schema *Schema
		value  string
		want   string
	}{
		{"too deep", anything, strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1), "limit"},
		{"huge exponent", anything, `[1e999999999]`, "limit"},
		{"tiny exponent", anything, `{"a":-1E-1101}`, "limit"},
		{"endless number", anything, strings.Repeat("9", MaxDigits+1), "limit"},
		{"endless number, typed", mustCompile(t, `{"type":"number"}`), strings.Repeat("9", MaxDigits+1), "limit"},
		{"not JSON", anything, `{"a"`, "json"},
		{"nothing", anything, ``, "json"},
		{"two values", anything, `1 2`, "json"},
		{"doubling references", mustCompile(t, doubling.String()), `1`, "limit"},
		{"doubling with depth", mustCompile(t, nested), strings.Repeat(`{"x":`, 60) + "{}" + strings.Repeat("}", 60), "limit"},
		{"many numbers in an enum", mustCompile(t, `{"items":{"enum":[0.25`+strings.Repeat(",0.5", 20_000)+`]}}`),
			`[0` + strings.Repeat(",0", 5_000) + `]`, "limit"},
		{"slow pattern", mustCompile(t, `{"pattern":"(a?){500}(a?){500}b$"}`), `"` + strings.Repeat("a", 50_000) + `"`, "limit"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			vs := tc.schema.Validate([]byte(tc.value))
			if len(vs) != 1 || vs[0].Keyword != tc.want {
				t.Errorf("got %v, want one violation of %q", vs, tc.want)
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("took %v", took)
			}
		})
	}
	for _, ok := range []string{
		strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth),
		strings.Repeat("9", MaxDigits), `1e1100`, `-1.5E-1100`, "\t {} \n",
	} {
		if vs := anything.Validate([]byte(ok)); vs != nil {
			t.Errorf("%.20s…: got %v, want valid", ok, vs)
		}
	}
}

func TestValidateKeepsDigits(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		schema, value string
		valid         bool
	}{
		{`{"maximum":9007199254740992}`, `9007199254740993`, false},
		{`{"const":0.1}`, `0.10000000000000000555`, false},
		{`{"const":12345678901234567890}`, `12345678901234567891`, false},
		{`{"enum":[12345678901234567890]}`, `1234567890123456789e1`, true},
		{`{"multipleOf":0.01}`, `19.99`, true},
		{`{"type":"integer"}`, `1e400`, true},
		{`{"type":"integer"}`, `1e-400`, false},
		{`{"type":"integer"}`, `100.00`, true},
	} {
		if vs := mustCompile(t, tc.schema).Validate([]byte(tc.value)); (vs == nil) != tc.valid {
			t.Errorf("%s of %s: got %v, want valid %v", tc.schema, tc.value, vs, tc.valid)
		}
	}
}

func TestValidateFormatsAreAnnotations(t *testing.T) {
	t.Parallel()
	for _, draft := range []string{"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"} {
		s := mustCompile(t, `{"$schema":"`+draft+`","format":"email","contentEncoding":"base64"}`)
		if vs := s.Validate([]byte(`"not an address"`)); vs != nil {
			t.Errorf("%s: got %v, want valid", draft, vs)
		}
	}
}

func TestValidateConcurrently(t *testing.T) {
	t.Parallel()
	s := mustCompile(t, order)
	want := s.Validate([]byte(orderInvalid))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if vs := s.Validate([]byte(orderValid)); vs != nil {
					t.Errorf("got %v, want valid", vs)
				}
				if diff := cmp.Diff(want, s.Validate([]byte(orderInvalid))); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
	wg.Wait()
}

func TestValidateLimitsViolations(t *testing.T) {
	t.Parallel()
	vs := mustCompile(t, `{"items":{"type":"string"}}`).Validate([]byte(`[0` + strings.Repeat(",0", 3*MaxViolations) + `]`))
	if len(vs) != MaxViolations {
		t.Errorf("got %d violations, want %d", len(vs), MaxViolations)
	}
	if !slices.IsSortedFunc(vs, func(a, b Violation) int { return strings.Compare(a.Pointer, b.Pointer) }) {
		t.Error("the violations are not sorted")
	}
}

func TestValidateLimitsPointers(t *testing.T) {
	t.Parallel()
	value := `{"a":{"` + strings.Repeat("x", MaxPointer) + `":{"b":1}}}`
	vs := mustCompile(t, `{"additionalProperties":{"$ref":"#"},"type":"object"}`).Validate([]byte(value))
	if len(vs) != 1 || vs[0].Pointer != "/a" {
		t.Errorf("got %v, want one violation at /a", vs)
	}
}

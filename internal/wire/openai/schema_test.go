package openai

import (
	"bytes"
	"os"
	"sync"
	"testing"

	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// apiSchemas compiles the schemas of OpenAI's API description.
var apiSchemas = sync.OnceValues(func() (*jsonschema.Compiler, error) {
	f, err := os.Open(apiFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	doc, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	return c, c.AddResource("api.json", nullable(doc))
})

var apiFile string // set before the first use of apiSchemas

// nullable turns OpenAPI 3.0's nullable into a type of JSON Schema.
func nullable(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = nullable(x)
		}
		if v["nullable"] == true {
			delete(v, "nullable")
			return map[string]any{"anyOf": []any{v, map[string]any{"type": "null"}}}
		}
	case []any:
		for i, x := range v {
			v[i] = nullable(x)
		}
	}
	return v
}

var apiOnce sync.Mutex

// apiSchema returns the schema of that name, or skips the test where the description is absent.
func apiSchema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	apiOnce.Lock()
	defer apiOnce.Unlock()
	apiFile = testdata.Dir(t, "openai-openapi", "subset.schemas.json")
	c, err := apiSchemas()
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("api.json#/components/schemas/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustValidate(t *testing.T, s *jsonschema.Schema, body []byte) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("%s\n%v", body, err)
	}
}

package schema

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/testdata"
)

// suiteGroup is one group of the JSON Schema test suite.
type suiteGroup struct {
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Tests       []struct {
		Description string          `json:"description"`
		Data        json.RawMessage `json:"data"`
		Valid       bool            `json:"valid"`
	} `json:"tests"`
}

// remotes serves the suite's own documents by the address it gives them.
type remotes string

func (dir remotes) Load(url string) (any, error) {
	rest, ok := strings.CutPrefix(url, "http://localhost:1234/")
	if !ok {
		return nil, errors.New("not one of the suite's documents")
	}
	b, err := os.ReadFile(filepath.Join(string(dir), filepath.FromSlash(rest)))
	if err != nil {
		return nil, err
	}
	return rawjson.Value(b)
}

// suiteGroups calls f with each group of the tests of a draft in a folder, "" for the required ones
// and "optional", compiled. Of the optional ones it leaves out what does not compile.
func suiteGroups(t *testing.T, draft, metaschema, folder string, f func(t *testing.T, name string, g *suiteGroup, s *Schema)) {
	t.Helper()
	from := remotes(testdata.Dir(t, "JSON-Schema-Test-Suite", "remotes"))
	files, err := filepath.Glob(filepath.Join(testdata.Dir(t, "JSON-Schema-Test-Suite", "tests", draft), folder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var groups []suiteGroup
		if err := json.Unmarshal(b, &groups); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for i := range groups {
			g := &groups[i]
			name := filepath.Base(file) + ": " + g.Description
			s, err := compile(inDraft(g.Schema, metaschema), from)
			if err != nil {
				if folder == "" {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			f(t, name, g, s)
		}
	}
}

// inDraft names the metaschema in a schema that names none.
func inDraft(schema json.RawMessage, metaschema string) json.RawMessage {
	var obj map[string]json.RawMessage
	if json.Unmarshal(schema, &obj) != nil || obj["$schema"] != nil {
		return schema
	}
	if rest := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(string(schema)), "{")); rest != "}" {
		return json.RawMessage(`{"$schema":"` + metaschema + `",` + rest)
	}
	return schema
}

func TestSuite(t *testing.T) {
	t.Parallel()
	for _, draft := range []struct {
		name, metaschema string
		tests            []int // in the published copy, in the original
	}{
		{"draft2020-12", "https://json-schema.org/draft/2020-12/schema", []int{1255, 1299}},
		{"draft7", "http://json-schema.org/draft-07/schema#", []int{913, 927}},
	} {
		t.Run(draft.name, func(t *testing.T) {
			t.Parallel()
			tests := 0
			suiteGroups(t, draft.name, draft.metaschema, "", func(t *testing.T, name string, g *suiteGroup, s *Schema) {
				for _, test := range g.Tests {
					tests++
					if vs := s.Validate(test.Data); (vs == nil) != test.Valid {
						t.Errorf("%s: %s: got %v, want valid %v", name, test.Description, vs, test.Valid)
					}
				}
			})
			if !slices.Contains(draft.tests, tests) {
				t.Errorf("ran %d tests, want one of %d", tests, draft.tests)
			}
		})
	}
}

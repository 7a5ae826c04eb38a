package server

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func TestQueryParametersAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ pattern, query, want string }{ // want: what the refusal says
		{"GET /api/runs", "", ""},
		{"GET /api/runs", "status=parked&limit=3", ""},
		{"GET /api/runs", "stauts=parked", "Did you mean status?"},
		{"GET /api/runs/{id}", "x=1", "It takes none."},
		{"GET /api/runs/{id}/events", "after=3&follow=pause", ""},
		{"GET /v1/models", "api-version=1", ""},
		{"GET /metrics", "name=x", ""},
		{"POST /api/chat", "protocol=ag-ui", ""},
		{"POST /api/chat", "protoco=ag-ui", "Did you mean protocol?"},
		{"POST /api/runs", "stream=true", "It takes none."},
		{"DELETE /api/sessions/{id}", "force=1", "It takes none."},
		{"POST /v1/messages", "beta=true", ""},
		{"POST /mcp", "x=1", ""},
	} {
		p := checkQuery(c.pattern, httptest.NewRequest("GET", "/?"+c.query, nil))
		if (p == nil) != (c.want == "") || p != nil && (p.Status != 400 || !strings.Contains(p.Message, c.want)) {
			t.Errorf("%s?%s: %+v, want %q", c.pattern, c.query, p, c.want)
		}
	}
}

// The parameters that are known are those that the document describes.
func TestQueryParametersAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths map[string]struct {
			Get, Post, Delete *struct {
				Parameters []struct{ Name, In, Ref string }
			}
		}
	}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(document), `"$ref"`, `"ref"`)), &doc); err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths {
		for i, op := range []*struct {
			Parameters []struct{ Name, In, Ref string }
		}{item.Get, item.Post, item.Delete} {
			if op == nil || !strings.HasPrefix(path, "/api/") {
				continue
			}
			var names []string
			for _, p := range op.Parameters {
				switch {
				case strings.HasSuffix(p.Ref, "/Protocol"):
					names = append(names, "protocol")
				case p.In == "query":
					names = append(names, p.Name)
				}
			}
			slices.Sort(names)
			pattern := []string{"GET ", "POST ", "DELETE "}[i] + path
			if known := slices.Sorted(slices.Values(queries[pattern])); !slices.Equal(names, known) {
				t.Errorf("%s: the document has %v, the server takes %v", pattern, names, known)
			}
		}
	}
}

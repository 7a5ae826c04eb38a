package server

import (
	"net/http"
	"slices"
	"strings"
)

// queries are the query parameters of the routes under /api that take some. Requests under /api with
// another one are refused: a filter with a slip in its name would list everything. Paths of other
// vendors' wires, of MCP and of Prometheus take any, as their clients add their own, and so does the path
// to which an identity provider sends browsers.
var queries = map[string][]string{
	"GET /api/runs":             {"run_id", "session_id", "principal", "status", "reason", "error_code", "model", "tool", "text", "since", "until", "limit", "after"},
	"GET /api/summaries":        {"run_id", "session_id", "status", "limit", "after"},
	"GET /api/stats":            {"since", "until", "buckets", "session_id"},
	"GET /api/tools":            {"stats", "since"},
	"GET /api/tools/{name}":     {"since"},
	"GET /api/usage":            {"since", "until", "limit", "after"},
	"GET /api/keys":             {"limit", "after"},
	"GET /api/audit":            {"limit"},
	"GET /api/approvals":        {"run_id", "session_id", "limit", "after"},
	"GET /api/sessions":         {"q", "limit", "after"},
	"GET /api/runs/{id}/events": {"after", "follow"},
	"GET /api/chat/{id}/stream": {"after", "protocol"},
	"POST /api/chat":            {"protocol"},
	"GET " + signInCallback:     {"code", "state", "iss", "error"}, // and any other
}

// checkQuery refuses a request with a query parameter that its route does not have.
func checkQuery(pattern string, r *http.Request) *problem {
	if _, path, _ := strings.Cut(pattern, " "); !strings.HasPrefix(path, "/api/") || path == signInCallback || r.URL.RawQuery == "" {
		return nil
	}
	known := queries[pattern]
	for name := range r.URL.Query() {
		if slices.Contains(known, name) {
			continue
		}
		has := "It takes none."
		if len(known) > 0 {
			has = "It takes " + strings.Join(known, ", ") + "."
		}
		return badRequest(name, "This path has no query parameter %.64q.%s %s", name, mean(name, known), has)
	}
	return nil
}

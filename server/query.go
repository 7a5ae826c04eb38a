package server

import (
	"net/http"
	"slices"
	"strings"
)

// queries maps the routes under /api to their query parameters. A request under /api with another parameter is refused: a
// filter with a misspelled name would list everything. Any parameter is accepted on the paths of other vendors' wires, of
// MCP and of Prometheus, since their clients add their own, and on the path to which an identity provider redirects
// browsers.
var queries = map[string][]string{
	"GET /api/runs":             {"run_id", "session_id", "principal", "status", "reason", "error_code", "model", "tool", "text", "since", "until", "questions", "limit", "after"},
	"GET /api/summaries":        {"run_id", "session_id", "status", "limit", "after"},
	"GET /api/stats":            {"since", "until", "buckets", "model", "tool", "session_id"},
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
	"GET " + signInCallback:     {"code", "state", "iss", "error"}, // other parameters are accepted, too
}

// checkQuery returns a problem if the request has a query parameter that its route does not have.
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

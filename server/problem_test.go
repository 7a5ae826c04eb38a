package server_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// errorsPage is the address of docs/errors.md.
const errorsPage = "https://github.com/lathe-run/lathe/blob/main/docs/errors.md"

// errorsDoc returns the text of docs/errors.md.
func errorsDoc(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "docs", "errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var ownRequestID = regexp.MustCompile(`req_[A-Z2-7]{26}`)

// withoutID returns an answer without the ids that the server gave to its request.
func withoutID(body string) string { return ownRequestID.ReplaceAllString(body, "req_") }

// The type of a problem leads to the row of its code, and the instance has the id under which the request is in the log.
func TestProblemsHaveTypeAndInstance(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	for _, c := range []struct {
		method, path, body string
		status             int
		code, title        string
	}{
		{"GET", "/api/runs/run_01ARZ3NDEKTSV4RRFFQ69G5FAV", "", 404, "run_not_found", "Run not found"},
		{"GET", "/api/runs?colour=red", "", 400, "invalid_request", "Invalid request"},
		{"POST", "/api/runs", "{", 400, "invalid_json", "Invalid JSON"},
		{"GET", "/api/no/such/path", "", 404, "unknown_url", "Unknown URL"},
	} {
		for _, id := range []string{"", "trace-7:a.b_c", "not allowed"} {
			got := h.refused(c.method, c.path, c.body, c.status, c.code, "X-Request-Id", id)
			known := id == "trace-7:a.b_c"
			if got.Title != c.title || got.Instance != "urn:lathe:request:"+got.RequestID || known != (got.RequestID == id) || !known && !strings.HasPrefix(got.RequestID, "req_") {
				t.Errorf("%s with the id %q: %+v", c.path, id, got)
			}
		}
	}
}

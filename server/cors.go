package server

import (
	"net/http"
	"slices"
	"strings"
)

// Header fields that pages of a configured origin may send and read. OpenAI's SDK sends its own fields (openai-*,
// x-stainless-*) with each request, and browsers block a request if one of its fields is not allowed.
var (
	allowedHeaders = []string{"Authorization", "Content-Type", "Last-Event-ID", "X-Request-Id", "Idempotency-Key", "User-Agent",
		"OpenAI-Organization", "OpenAI-Project", "OpenAI-Beta", "X-Api-Key", "X-Goog-Api-Key", "X-Lathe-Protocol", "X-Lathe-New-Run"}
	allowedPrefixes = []string{"x-stainless-", "x-goog-", "anthropic-", "x-lathe-", "mcp-"}
	exposedHeaders  = strings.Join([]string{"X-Request-Id", "Request-Id", "X-Should-Retry", "Retry-After", "Location", "Idempotency-Replayed",
		"Mcp-Session-Id", "X-Lathe-Run-Id", "X-Lathe-Error-Code", "X-Lathe-Passed", "X-Lathe-Ignored", "X-Lathe-Dropped", "X-Lathe-Reason", "X-Lathe-Lost-Joins",
		"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"}, ", ")
)

const (
	maxAsked      = 64 // maximum number of header fields that are read from a preflight
	maxAskedBytes = 64 // maximum length of the name of such a field
)

// allowOrigin sets the headers that allow a page of origin, which is a configured one, to read the response to r. For a
// preflight they also allow the page to send the header fields that it names and that the gateway knows.
func allowOrigin(h http.Header, r *http.Request, origin string) {
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", exposedHeaders)
	if !preflight(r) {
		return
	}
	h.Add("Vary", "Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Methods", strings.Join(routeMethods, ", "))
	h.Set("Access-Control-Max-Age", "600")
	allowed := slices.Clone(allowedHeaders)
	asked := strings.SplitN(r.Header.Get("Access-Control-Request-Headers"), ",", maxAsked+1)
	for _, name := range asked[:min(len(asked), maxAsked)] {
		name = strings.ToLower(strings.TrimSpace(name))
		known := slices.ContainsFunc(allowedPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if known && len(name) <= maxAskedBytes && isToken(name) {
			allowed = append(allowed, name)
		}
	}
	h.Set("Access-Control-Allow-Headers", strings.Join(allowed, ", "))
}

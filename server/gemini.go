package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/wire"
)

// Gemini's paths end in MODEL:VERB, and names of models may contain slashes and colons. The body of a request names neither
// the model nor whether the answer is streamed.

// The verbs of Gemini's paths that this server supports.
const (
	verbGenerate = "generateContent"
	verbStream   = "streamGenerateContent"
	verbCount    = "countTokens"
)

// geminiPrefixes are the prefixes of Gemini's paths, which precede the name of a model.
var geminiPrefixes = []string{"/v1beta/models/", "/v1/models/"}

// geminiVerb returns the model and the verb in a path; both are "" if the path has no verb.
func geminiVerb(path string) (model, verb string) {
	for _, prefix := range geminiPrefixes {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			if i := strings.LastIndexByte(rest, ':'); i >= 0 {
				return rest[:i], rest[i+1:]
			}
		}
	}
	return "", ""
}

func isGemini(r *http.Request) bool {
	path := r.URL.Path
	if strings.HasPrefix(path, "/v1beta/") {
		return true
	}
	if _, verb := geminiVerb(path); r.Method == http.MethodPost && verb != "" {
		return true
	}
	return (path == "/v1/models" || strings.HasPrefix(path, "/v1/models/")) && (r.Header["X-Goog-Api-Key"] != nil || r.URL.Query().Has("key"))
}

func (h *chatHandler) gemini(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	_, verb := geminiVerb(r.URL.Path)
	streamsArray := verb == verbStream && r.URL.Query().Get("alt") != "sse"
	switch {
	case streamsArray:
		return h.answer(w, r, c, geminiArray)
	case verb == verbStream, verb == verbGenerate:
		return h.answer(w, r, c, geminiAPI)
	case verb == verbCount:
		return (&tokenCounter{h.planner}).countTokens(w, r, c, countedGemini)
	}
	return notFound("unknown_url", "There is no such method of a model. %s, %s and %s are served.", verbGenerate, verbStream, verbCount)
}

// completeGemini sets the model and the stream flag of a request from its path, and checks the query parameter alt.
func completeGemini(r *http.Request, req *wire.ClientRequest) *problem {
	model, verb := geminiVerb(r.URL.Path)
	req.Model, req.Stream = model, verb == verbStream
	if alt := r.URL.Query()["alt"]; len(alt) > 0 && !slices.Contains([]string{"sse", "json"}, alt[0]) {
		return badRequest("alt", "alt may be sse or json.")
	}
	return nil
}

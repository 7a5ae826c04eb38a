package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/lathe-run/lathe/internal/gateway/console"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// routeMethods are the methods of the routes. The routes of GET answer HEAD, too, and [Server.unmatched] answers the preflights of OPTIONS.
var routeMethods = []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete}

// unmatched handles requests for which there is no other route: preflights, methods that a path does not have, and unknown
// paths.
func (g *Server) unmatched(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	if preflight(r) {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if g.toPage(r) {
		w.Header().Add("Vary", "Accept")
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return nil
	}
	allowed := g.methodsAt(r)
	if len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return problems.New(http.StatusMethodNotAllowed, "method_not_allowed", "This path takes %s.", strings.Join(allowed, ", "))
	}
	hint, form := foreignPath(r.URL.Path)
	if form != problems.Details {
		c.form = form
	}
	return notFound("unknown_url", "There is nothing at this path%s", hint)
}

// methodsAt returns the methods that the path of a request has, other than those of a console screen, which is not part of the API.
func (g *Server) methodsAt(r *http.Request) (allowed []string) {
	for _, m := range routeMethods {
		probe := r.Clone(r.Context())
		probe.Method = m
		if _, pattern := g.mux.Handler(probe); pattern != "/" && pattern != "" && !slices.Contains(console.Patterns(), pattern) {
			allowed = append(allowed, m)
		}
	}
	return allowed
}

// toPage reports whether a browser opens the base URL of the API, which users copy: it is redirected to the console.
func (g *Server) toPage(r *http.Request) bool {
	if g.opts.NoPage || r.Method != http.MethodGet || r.URL.Path != "/v1" && r.URL.Path != "/v1/" {
		return false
	}
	for media := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		media, _, _ = strings.Cut(media, ";")
		if strings.EqualFold(strings.TrimSpace(media), "text/html") {
			return true
		}
	}
	return false
}

// Paths of other APIs, without their version prefix. This server has the servedPaths of OpenAI's API, but not the
// unservedPaths.
var (
	servedPaths   = []string{"/chat/completions", "/models", "/responses"}
	unservedPaths = []string{"/completions", "/embeddings", "/moderations"}
	ollamaPaths   = []string{"tags", "show", "version", "embed", "embeddings", "generate", "ps", "pull", "push", "create", "copy", "delete", "blobs", "me"}
)

// foreignPath returns the end of the error message for a path of another API, and the format of errors for clients of that
// API.
func foreignPath(path string) (hint string, form problems.Form) {
	const useChat = "; this gateway has chat completions at /v1/chat/completions."
	if rest, ok := strings.CutPrefix(path, "/v1/v1/"); ok { // the client adds the version to its base URL
		return ". Did you mean /v1/" + rest + "? The base URL of this client must not end in /v1.", problems.OpenAI
	}
	if rest, ok := strings.CutPrefix(path, "/api/"); ok {
		if first, _, _ := strings.Cut(rest, "/"); slices.Contains(ollamaPaths, first) {
			return ": Ollama's API is not served. Use an OpenAI client with the base URL /v1" + useChat, problems.Ollama
		}
	}
	model, isModel := strings.CutPrefix(path, "/models/")
	if _, verb, _ := strings.Cut(model, ":"); isModel && verb != "" {
		return ". Did you mean /v1beta" + path + "? The base URL of this client must end in /v1beta.", problems.Google
	}
	if path == "/messages" || strings.HasPrefix(path, "/messages/") {
		return ". Did you mean /v1" + path + "? The base URL of this client must end in /v1.", problems.Anthropic
	}
	if strings.HasPrefix(path, "/openai/") {
		return ": Azure's paths are not served. Use a client for OpenAI's own API with a base URL that ends in /v1, and name the model in the request" + useChat, problems.OpenAI
	}
	if isModel || slices.Contains(servedPaths, path) {
		return ". Did you mean /v1" + path + "? The client's base URL must end in /v1.", problems.OpenAI
	}
	if bare := strings.TrimPrefix(path, "/v1"); slices.Contains(servedPaths, bare) || slices.Contains(unservedPaths, bare) {
		return useChat, problems.OpenAI
	}
	return "; GET /api/openapi.json lists the paths that exist.", problems.Details
}

// foreignMembers are members that identify a body for the chat API of Ollama or OpenAI; pageMembers are those of bodies of
// chat pages.
var (
	foreignMembers = rawjson.NewNames("stream", "options", "keep_alive", "format", "think")
	pageMembers    = rawjson.NewNames("id", "threadId", "runId", "commands", "state", "trigger", "messageId")
)

// foreignBody refuses a body for POST /api/chat of Ollama, or for chat completions, which the parser for chat pages would
// accept as a conversation without an id.
func foreignBody(c *caller, body []byte) *problem {
	if rawjson.Check(body, rawjson.Limits{}) != nil {
		return nil // the parser for chat pages returns the error
	}
	body = body[rawjson.SkipSpace(body, 0):]
	if body[0] != '{' {
		return nil
	}
	foreign := ""
	for key := range rawjson.Members(body) {
		name := rawjson.Text(key)
		if pageMembers.Has(name) {
			return nil
		}
		if foreign == "" && foreignMembers.Has(name) {
			foreign = name
		}
	}
	if foreign == "" {
		return nil
	}
	c.form = problems.Ollama
	return badRequest(foreign, "POST /api/chat is for chat pages (docs/chat.md), and this body, which has %s, is for another API. "+
		"Ollama's API is not served: use an OpenAI client with the base URL /v1 and POST /v1/chat/completions.", foreign)
}

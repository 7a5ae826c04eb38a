package server

import (
	"net/http"
	"strings"

	"github.com/lathe-run/lathe/internal/gateway/admission"
	"github.com/lathe-run/lathe/internal/gateway/console"
	"github.com/lathe-run/lathe/internal/wire/workers"
)

// A route is one row of the routing table. The zero values of its fields are the strictest rules: the route requires a key,
// the host and origin of the request are checked, the request counts in the pool of normal requests, and its body is not
// read.
type route struct {
	pattern    string // a pattern of [http.ServeMux]
	handle     handler
	credential credential
	pool       admission.Pool
	body       bodyRule
	// maxBody is the maximum size of the body in bytes, if it is less than Limits.MaxBody; 0 stands for Limits.MaxBody.
	maxBody int64
	needs   need
	admin   bool // only admin keys may use the route
	// startsRun is set if the route may begin a run: its requests are refused while the server drains.
	startsRun bool
	// outlivesDrain is set if a drain does not wait for the request, because the handler itself ends it when the server
	// drains.
	outlivesDrain bool
	// machinesOnly is set if only programs use the route. Any host name is accepted, because such callers reach this
	// process by an address that is not in serve.hosts. A request with an Origin is refused. DNS rebinding gains nothing: a
	// page does not have the token of the route.
	machinesOnly bool
	// upgrades is set if the route opens WebSockets: the origin of its requests is checked although their method is GET.
	upgrades bool
	probe    bool // a health check, which is logged at level debug
}

// A credential is the kind of token that a route requires.
type credential int

const (
	apiKey       credential = iota // a key of [Setup.Keys]; if there are no keys, every caller is the same
	workerToken                    // the token of a pool in [WorkerOptions.Pools]
	clusterKey                     // the key of [Cluster]
	noCredential                   // none: the response is the same for every caller
)

// A need is an optional part of the server that a route requires.
type need int

const (
	nothing     need = iota
	runStore         // a store of runs, with its supervisor and its event bus
	serverState      // [Setup].State, which describes the parts of the server
	evalResults      // [Setup].Evals, the results of evaluations
)

// permits returns a problem if the server does not have the part that the route needs, or if the route is for admin keys
// and the caller has none.
func (g *gate) permits(c *caller, rt *route) *problem {
	switch {
	case rt.needs == runStore && (g.opts.Index == nil || g.opts.Supervisor == nil || g.opts.Bus == nil):
		return noStore()
	case rt.needs == evalResults && c.setup.Evals == nil:
		return notFound("no_evals", "This gateway shows no results of evaluations: serve.evals in the configuration names their folder.")
	case rt.admin && !c.key.isAdmin():
		return forbidden("admin_required", "This needs an admin key: keys.NAME.admin in the configuration.")
	case rt.needs == serverState && c.setup.State == nil:
		return notFound("not_found", "This gateway does not describe its parts.")
	}
	return nil
}

// A bodyRule says who reads the body of a request, and within which limits.
type bodyRule int

const (
	noBody      bodyRule = iota // the body is not read
	wholeBody                   // the middleware reads the body within the limits of the server, decompresses it and passes it to the handler
	messageBody                 // the handler reads the body, with a smaller limit and without decompression; the middleware only reserves memory for it
)

// routes returns the routing table of the main listener. Other methods of the same path get 405.
func (g *Server) routes() []route {
	table := []route{
		{pattern: "POST /v1/chat/completions", handle: g.chat.serve(chatCompletions), body: wholeBody, startsRun: true},
		{pattern: "POST /v1/responses", handle: g.chat.serve(responsesAPI), body: wholeBody, startsRun: true},
		{pattern: "POST /v1/responses/compact", handle: g.chat.serve(compactedResponses), body: wholeBody, startsRun: true},
		{pattern: "POST /v1/responses/input_tokens", handle: g.counter.serve(responsesAPI), body: wholeBody},
		{pattern: "GET /v1/responses", handle: g.connectSocket, pool: admission.Sockets, outlivesDrain: true, upgrades: true},
		{pattern: "POST /v1/messages", handle: g.chat.serve(messagesAPI), body: wholeBody, startsRun: true},
		{pattern: "POST /v1/messages/count_tokens", handle: g.counter.serve(countedMessages), body: wholeBody},
		{pattern: "POST /v1beta/models/{model...}", handle: g.chat.gemini, body: wholeBody, startsRun: true},
		{pattern: "POST /v1/models/{model...}", handle: g.chat.gemini, body: wholeBody, startsRun: true},
		{pattern: "GET /v1/models", handle: g.catalog.listModels},
		{pattern: "GET /v1/models/{id...}", handle: g.catalog.showModel},
		{pattern: "GET /v1beta/models", handle: g.catalog.listModels},
		{pattern: "GET /v1beta/models/{id...}", handle: g.catalog.showModel},

		{pattern: "GET /api/tools", handle: g.catalog.listTools},
		{pattern: "POST /api/tools/{name}/call", handle: g.catalog.callTool, body: wholeBody, startsRun: true},
		{pattern: "POST /api/tools/{name}/disable", handle: g.catalog.switchTool(true), admin: true, body: wholeBody},
		{pattern: "POST /api/tools/{name}/enable", handle: g.catalog.switchTool(false), admin: true},
		{pattern: "GET /api/summaries", handle: g.catalog.summaries},
		{pattern: "GET /api/limits", handle: g.catalog.showLimits},

		{pattern: "POST /api/chat", handle: g.ui.uiChat, body: wholeBody, startsRun: true},

		{pattern: "GET /api/tools/{name}", handle: g.state.showTool},
		{pattern: "GET /api/keys", handle: g.state.listKeys},
		{pattern: "GET /api/usage", handle: g.state.showUsage},
		{pattern: "GET /api/health", handle: g.state.health, admin: true},
		{pattern: "POST /api/reload", handle: g.state.reload, admin: true},
		{pattern: "POST /api/session/links", handle: g.browsers.makeLink},

		{pattern: "GET /metrics", handle: g.metrics, pool: admission.Unbounded},
		{pattern: "GET /api/openapi.json", handle: plain(openAPI), credential: noCredential},
		{pattern: "GET " + resourceMetadataPath, handle: g.describeResource(""), credential: noCredential},
		{pattern: "GET " + resourceMetadataPath + mcpPath, handle: g.describeResource(mcpPath), credential: noCredential},
		{pattern: "GET /livez", handle: plain(g.livez), credential: noCredential, probe: true},
		{pattern: "GET /readyz", handle: plain(g.readyz), credential: noCredential, probe: true},
		{pattern: "GET /healthz", handle: plain(g.readyz), credential: noCredential, probe: true},
		{pattern: "HEAD /{$}", handle: plain(head), credential: noCredential, probe: true}, // Claude Code sends this request first
		{pattern: "/", handle: g.unmatched, credential: noCredential},                      // every path that no other row has
	}
	table = append(table, needing(runStore, []route{
		{pattern: "GET /v1/responses/{id}", handle: g.stored.showResponse},
		{pattern: "DELETE /v1/responses/{id}", handle: g.stored.deleteResponse},
		{pattern: "POST /v1/responses/{id}/cancel", handle: g.stored.cancelResponse},
		{pattern: "GET /v1/responses/{id}/input_items", handle: g.stored.listInput},
		{pattern: "POST /api/runs", handle: g.runs.createRun, body: wholeBody, startsRun: true},
		{pattern: "GET /api/runs", handle: g.runs.listRuns},
		{pattern: "POST /api/runs/import", handle: g.runs.importRun, body: wholeBody},
		{pattern: "GET /api/stats", handle: g.runs.showStats},
		{pattern: "GET /api/runs/{id}", handle: g.runs.showRun},
		{pattern: "DELETE /api/runs/{id}", handle: g.removal.deleteRun},
		{pattern: "GET /api/runs/{id}/events", handle: g.runs.watchRun, pool: admission.Watchers},
		{pattern: "GET /api/runs/{id}/export", handle: g.runs.exportRun},
		{pattern: "POST /api/runs/{id}/cancel", handle: g.inputs.cancelRun},
		{pattern: "POST /api/runs/{id}/resume", handle: g.inputs.resumeRun},
		{pattern: "POST /api/runs/{id}/replay", handle: g.runs.replayRun, body: wholeBody, startsRun: true},
		{pattern: "POST /api/runs/{id}/approvals/{call}", handle: g.inputs.answerApproval, body: wholeBody},
		{pattern: "POST /api/runs/{id}/tool_results", handle: g.inputs.postResults, body: wholeBody},
		{pattern: "GET /api/approvals", handle: g.runs.listApprovals},
		{pattern: "GET /api/sessions", handle: g.removal.listSessions},
		{pattern: "PATCH /api/sessions/{id}", handle: g.removal.renameSession, body: wholeBody},
		{pattern: "DELETE /api/sessions/{id}", handle: g.removal.deleteSession},
		{pattern: "DELETE /api/principals/{name}", handle: g.removal.deletePrincipal},
		{pattern: "GET /api/chat/{id}/stream", handle: g.ui.watchUI, pool: admission.Watchers},
		{pattern: "POST /api/chat/resume", handle: g.ui.resumeUI, pool: admission.Watchers, body: wholeBody},
	})...)
	table = append(table, needing(serverState, []route{
		{pattern: "GET /api/servers", handle: g.state.listServers},
		{pattern: "POST /api/servers/{name}/reconnect", handle: g.state.reconnect, admin: true},
		{pattern: "GET /api/pins", handle: g.state.listPins, admin: true},
		{pattern: "POST /api/pins/{name}/accept", handle: g.state.accept, admin: true, body: wholeBody},
		{pattern: "GET /api/models", handle: g.state.listModels},
		{pattern: "POST /api/policy/explain", handle: g.state.explain, body: wholeBody},
		{pattern: "GET /api/audit", handle: g.state.showAudit, admin: true},
		{pattern: "GET /api/config", handle: g.state.listSettings, admin: true},
	})...)
	table = append(table, needing(evalResults, []route{
		{pattern: "GET /api/evals", handle: g.catalog.listEvals, admin: true},
		{pattern: "GET /api/evals/{id}", handle: g.catalog.showEval, admin: true},
		{pattern: "GET /api/evals/{id}/runs/{name}", handle: g.catalog.showEvalRun, admin: true},
	})...)
	if g.opts.MCP != nil {
		table = append(table,
			route{pattern: "POST " + mcpPath, handle: g.mcp, body: messageBody, outlivesDrain: true},
			route{pattern: "GET " + mcpPath, handle: g.mcp, pool: admission.Watchers, outlivesDrain: true},
			route{pattern: "DELETE " + mcpPath, handle: g.mcp, outlivesDrain: true})
	}
	if g.opts.Workers != nil { // the pool is Unbounded: [WorkerOptions] has limits of its own on connections
		table = append(table, route{pattern: "GET " + workers.Path, handle: g.opts.Workers.connect, credential: workerToken, pool: admission.Unbounded, outlivesDrain: true, machinesOnly: true})
	}
	if g.shared != nil {
		table = append(table, route{pattern: "GET " + clusterPath + "runs/{id}/deltas", handle: g.peers.streamDeltas, credential: clusterKey, pool: admission.Watchers, machinesOnly: true})
	}
	if !g.opts.SeparateConsole {
		table = append(table, g.consolePages()...)
	}
	return table
}

// consolePages returns the routes that only the listener of the console serves: the files of the console, and the sign-in
// and sessions of its pages.
func (g *Server) consolePages() []route {
	table := []route{
		{pattern: "GET /api/session", handle: g.browsers.showSession, credential: noCredential},
		{pattern: "POST /api/session", handle: g.browsers.signIn, credential: noCredential, body: wholeBody, maxBody: maxSignIn},
		{pattern: "DELETE /api/session", handle: g.browsers.signOut},
		{pattern: "GET /api/session/oidc", handle: g.browsers.beginSignIn, credential: noCredential},
		{pattern: "GET " + signInCallback, handle: g.browsers.finishSignIn, credential: noCredential},
	}
	if g.opts.NoPage {
		return table
	}
	page := console.Handler()
	for _, pattern := range console.Patterns() {
		table = append(table, route{pattern: pattern, handle: plain(page.ServeHTTP), credential: noCredential})
	}
	return table
}

// consoleRoutes returns the routes of the console's own listener: the pages, and the API that the pages call.
func (g *Server) consoleRoutes() []route {
	var table []route
	for _, rt := range g.table {
		_, path, _ := strings.Cut(rt.pattern, " ")
		if rt.machinesOnly || rt.credential == workerToken || path == mcpPath || path == resourceMetadataPath+mcpPath || path == "/metrics" {
			continue
		}
		table = append(table, rt)
	}
	if g.opts.SeparateConsole {
		table = append(table, g.consolePages()...)
	}
	return table
}

// name returns the name of the route in the log and in metrics, which is its pattern, or "" for the row of unmatched paths.
func (rt *route) name() string {
	if rt.pattern == "/" {
		return ""
	}
	return rt.pattern
}

// mount returns a mux that serves each route behind the middleware.
func (g *Server) mount(table []route) *http.ServeMux {
	mux := http.NewServeMux()
	for i := range table {
		mux.Handle(table[i].pattern, g.gate.guarded(&table[i]))
	}
	return mux
}

// plain converts an http.HandlerFunc to the handler of a route whose response is the same for every caller.
func plain(h http.HandlerFunc) handler {
	return func(w http.ResponseWriter, r *http.Request, _ *caller) *problem {
		h(w, r)
		return nil
	}
}

// needing sets what the routes need.
func needing(n need, rows []route) []route {
	for i := range rows {
		rows[i].needs = n
	}
	return rows
}

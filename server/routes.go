package server

import (
	"maps"
	"net/http"
	"strings"

	"github.com/lathe-run/lathe/internal/gateway/admission"
	"github.com/lathe-run/lathe/internal/gateway/console"
	"github.com/lathe-run/lathe/internal/wire/workers"
)

// routes is a routing table, by pattern of [http.ServeMux].
type routes map[string]*route

// A route is one row of a routing table. The zero values of its fields are the strictest rules: the route requires a key,
// the host and origin of the request are checked, the request counts in the pool of normal requests, and its body is not
// read.
type route struct {
	pattern    string // key of the route in routes; set by mount
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
func (g *Server) routes() routes {
	table := routes{
		"POST /v1/chat/completions":       {handle: chatCompletions.handler(g.chat.answer), body: wholeBody, startsRun: true},
		"POST /v1/responses":              {handle: responsesAPI.handler(g.chat.answer), body: wholeBody, startsRun: true},
		"POST /v1/responses/compact":      {handle: compactedResponses.handler(g.chat.answer), body: wholeBody, startsRun: true},
		"POST /v1/responses/input_tokens": {handle: responsesAPI.handler(g.counter.countTokens), body: wholeBody},
		"GET /v1/responses":               {handle: g.connectSocket, pool: admission.Sockets, outlivesDrain: true, upgrades: true},
		"POST /v1/messages":               {handle: messagesAPI.handler(g.chat.answer), body: wholeBody, startsRun: true},
		"POST /v1/messages/count_tokens":  {handle: countedMessages.handler(g.counter.countTokens), body: wholeBody},
		"POST /v1beta/models/{model...}":  {handle: g.chat.gemini, body: wholeBody, startsRun: true},
		"POST /v1/models/{model...}":      {handle: g.chat.gemini, body: wholeBody, startsRun: true},
		"GET /v1/models":                  {handle: g.catalog.listModels},
		"GET /v1/models/{id...}":          {handle: g.catalog.showModel},
		"GET /v1beta/models":              {handle: g.catalog.listModels},
		"GET /v1beta/models/{id...}":      {handle: g.catalog.showModel},

		"GET /api/tools":                 {handle: g.catalog.listTools},
		"POST /api/tools/{name}/call":    {handle: g.catalog.callTool, body: wholeBody, startsRun: true},
		"POST /api/tools/{name}/disable": {handle: g.catalog.switchTool(disableTool), admin: true, body: wholeBody},
		"POST /api/tools/{name}/enable":  {handle: g.catalog.switchTool(enableTool), admin: true},
		"GET /api/summaries":             {handle: g.catalog.summaries},
		"GET /api/limits":                {handle: g.catalog.showLimits},

		"POST /api/chat": {handle: g.ui.uiChat, body: wholeBody, startsRun: true},

		"GET /api/tools/{name}":   {handle: g.state.showTool},
		"GET /api/keys":           {handle: g.state.listKeys},
		"GET /api/usage":          {handle: g.state.showUsage},
		"GET /api/health":         {handle: g.state.health, admin: true},
		"POST /api/reload":        {handle: g.state.reload, admin: true},
		"POST /api/session/links": {handle: g.browsers.makeLink},

		"GET /metrics":                          {handle: g.metrics, pool: admission.Unbounded},
		"GET /api/openapi.json":                 {handle: plain(openAPI), credential: noCredential},
		"GET " + resourceMetadataPath:           {handle: g.describeResource(""), credential: noCredential},
		"GET " + resourceMetadataPath + mcpPath: {handle: g.describeResource(mcpPath), credential: noCredential},
		"GET /livez":                            {handle: plain(g.livez), credential: noCredential, probe: true},
		"GET /readyz":                           {handle: plain(g.readyz), credential: noCredential, probe: true},
		"GET /healthz":                          {handle: plain(g.readyz), credential: noCredential, probe: true},
		"HEAD /{$}":                             {handle: plain(head), credential: noCredential, probe: true}, // Claude Code sends this request first
		"/":                                     {handle: g.unmatched, credential: noCredential},              // every path that no other row has
	}
	maps.Copy(table, needing(runStore, routes{
		"GET /v1/responses/{id}":               {handle: g.stored.showResponse},
		"DELETE /v1/responses/{id}":            {handle: g.stored.deleteResponse},
		"POST /v1/responses/{id}/cancel":       {handle: g.stored.cancelResponse},
		"GET /v1/responses/{id}/input_items":   {handle: g.stored.listInput},
		"POST /api/runs":                       {handle: g.runs.createRun, body: wholeBody, startsRun: true},
		"GET /api/runs":                        {handle: g.runs.listRuns},
		"POST /api/runs/import":                {handle: g.runs.importRun, body: wholeBody},
		"GET /api/stats":                       {handle: g.runs.showStats},
		"GET /api/runs/{id}":                   {handle: g.runs.showRun},
		"DELETE /api/runs/{id}":                {handle: g.removal.deleteRun},
		"GET /api/runs/{id}/events":            {handle: g.runs.watchRun, pool: admission.Watchers},
		"GET /api/runs/{id}/export":            {handle: g.runs.exportRun},
		"POST /api/runs/{id}/cancel":           {handle: g.inputs.cancelRun},
		"POST /api/runs/{id}/resume":           {handle: g.inputs.resumeRun},
		"POST /api/runs/{id}/replay":           {handle: g.runs.replayRun, body: wholeBody, startsRun: true},
		"POST /api/runs/{id}/approvals/{call}": {handle: g.inputs.answerApproval, body: wholeBody},
		"POST /api/runs/{id}/tool_results":     {handle: g.inputs.postResults, body: wholeBody},
		"GET /api/approvals":                   {handle: g.runs.listApprovals},
		"GET /api/sessions":                    {handle: g.removal.listSessions},
		"PATCH /api/sessions/{id}":             {handle: g.removal.renameSession, body: wholeBody},
		"DELETE /api/sessions/{id}":            {handle: g.removal.deleteSession},
		"DELETE /api/principals/{name}":        {handle: g.removal.deletePrincipal},
		"GET /api/chat/{id}/stream":            {handle: g.ui.watchUI, pool: admission.Watchers},
		"POST /api/chat/resume":                {handle: g.ui.resumeUI, pool: admission.Watchers, body: wholeBody},
	}))
	maps.Copy(table, needing(serverState, routes{
		"GET /api/servers":                   {handle: g.state.listServers},
		"POST /api/servers/{name}/reconnect": {handle: g.state.reconnect, admin: true},
		"GET /api/pins":                      {handle: g.state.listPins, admin: true},
		"POST /api/pins/{name}/accept":       {handle: g.state.accept, admin: true, body: wholeBody},
		"GET /api/models":                    {handle: g.state.listModels},
		"POST /api/policy/explain":           {handle: g.state.explain, body: wholeBody},
		"GET /api/audit":                     {handle: g.state.showAudit, admin: true},
		"GET /api/config":                    {handle: g.state.listSettings, admin: true},
	}))
	maps.Copy(table, needing(evalResults, routes{
		"GET /api/evals":                  {handle: g.catalog.listEvals, admin: true},
		"GET /api/evals/{id}":             {handle: g.catalog.showEval, admin: true},
		"GET /api/evals/{id}/runs/{name}": {handle: g.catalog.showEvalRun, admin: true},
	}))
	if g.opts.MCP != nil {
		table["POST "+mcpPath] = &route{handle: g.mcp, body: messageBody, outlivesDrain: true}
		table["GET "+mcpPath] = &route{handle: g.mcp, pool: admission.Watchers, outlivesDrain: true}
		table["DELETE "+mcpPath] = &route{handle: g.mcp, outlivesDrain: true}
	}
	if g.opts.Workers != nil { // the pool is Unbounded: [WorkerOptions] has limits of its own on connections
		table["GET "+workers.Path] = &route{handle: g.opts.Workers.connect, credential: workerToken, pool: admission.Unbounded, outlivesDrain: true, machinesOnly: true}
	}
	if g.shared != nil {
		table["GET "+clusterPath+"runs/{id}/deltas"] = &route{handle: g.peers.streamDeltas, credential: clusterKey, pool: admission.Watchers, machinesOnly: true}
	}
	if !g.opts.SeparateConsole {
		maps.Copy(table, g.consolePages())
	}
	return table
}

// consolePages returns the routes that only the listener of the console serves: the files of the console, and the sign-in
// and sessions of its pages.
func (g *Server) consolePages() routes {
	table := routes{
		"GET /api/session":      {handle: g.browsers.showSession, credential: noCredential},
		"POST /api/session":     {handle: g.browsers.signIn, credential: noCredential, body: wholeBody, maxBody: maxSignIn},
		"DELETE /api/session":   {handle: g.browsers.signOut},
		"GET /api/session/oidc": {handle: g.browsers.beginSignIn, credential: noCredential},
		"GET " + signInCallback: {handle: g.browsers.finishSignIn, credential: noCredential},
	}
	if g.opts.NoPage {
		return table
	}
	page := console.Handler()
	for _, pattern := range console.Patterns() {
		table[pattern] = &route{handle: plain(page.ServeHTTP), credential: noCredential}
	}
	return table
}

// consoleRoutes returns the routes of the console's own listener: the pages, and the API that the pages call.
func (g *Server) consoleRoutes() routes {
	table := maps.Clone(g.table)
	maps.DeleteFunc(table, func(pattern string, rt *route) bool {
		_, path, _ := strings.Cut(pattern, " ")
		return rt.machinesOnly || rt.credential == workerToken || path == mcpPath || path == resourceMetadataPath+mcpPath || path == "/metrics"
	})
	if g.opts.SeparateConsole {
		maps.Copy(table, g.consolePages())
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
func (g *Server) mount(table routes) *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, rt := range table {
		rt.pattern = pattern
		mux.Handle(pattern, g.gate.guarded(rt))
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
func needing(n need, rows routes) routes {
	for _, rt := range rows {
		rt.needs = n
	}
	return rows
}

package gateway

import "net/http"

// routes is the table of what the gateway serves. A handler gets the caller: who asks, under which
// settings, and in which shape errors are told. Methods that a path does not have are answered 405.
func (g *Gateway) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, h := range map[string]handler{
		"POST /v1/chat/completions": g.chat,
		"GET /v1/models":            g.listModels,
		"GET /v1/models/{id...}":    g.showModel,

		"GET /api/tools":              g.listTools,
		"POST /api/tools/{name}/call": g.callTool,
		"GET /api/summaries":          g.summaries,
		"GET /api/limits":             g.showLimits,

		"POST /api/runs":                       g.runs(g.createRun),
		"GET /api/runs":                        g.runs(g.listRuns),
		"GET /api/runs/{id}":                   g.runs(g.showRun),
		"DELETE /api/runs/{id}":                g.runs(g.deleteRun),
		"GET /api/runs/{id}/events":            g.runs(g.watchRun),
		"GET /api/runs/{id}/export":            g.runs(g.exportRun),
		"POST /api/runs/{id}/cancel":           g.runs(g.cancelRun),
		"POST /api/runs/{id}/resume":           g.runs(g.resumeRun),
		"POST /api/runs/{id}/approvals/{call}": g.runs(g.answerApproval),
		"POST /api/runs/{id}/tool_results":     g.runs(g.takeResults),
		"GET /api/approvals":                   g.runs(g.listApprovals),
		"DELETE /api/sessions/{id}":            g.runs(g.deleteSession),
		"DELETE /api/principals/{name}":        g.runs(g.deletePrincipal),

		"POST /api/chat":            g.uiChat,
		"GET /api/chat/{id}/stream": g.runs(g.watchUI),
		"POST /api/chat/resume":     g.runs(g.resumeUI),

		"GET /metrics": g.metrics,
	} {
		mux.Handle(pattern, g.guarded(pattern, placeOf(pattern), h))
	}
	if g.opts.MCP != nil {
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
			pattern := method + " " + mcpPath
			mux.Handle(pattern, g.guarded(pattern, placeOf(pattern), g.mcp))
		}
	}
	g.page(mux)
	mux.HandleFunc("GET /api/openapi.json", g.openAPI)
	mux.HandleFunc("GET /livez", g.livez)
	mux.HandleFunc("GET /readyz", g.readyz)
	mux.HandleFunc("/", g.elsewhere)
	return mux
}

// placeOf returns the kind of place that requests of a route take.
func placeOf(pattern string) place {
	switch pattern {
	case "GET /metrics":
		return noPlace
	case "GET /api/runs/{id}/events", "GET /api/chat/{id}/stream", "POST /api/chat/resume", "GET " + mcpPath:
		return watcherPlace
	}
	return requestPlace
}

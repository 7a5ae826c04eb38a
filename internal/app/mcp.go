package app

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/gateway/mcp"
	"github.com/lathe-run/lathe/server"
)

// mcpCallers returns the callers that may use the tools over MCP: those of the HTTP API. The HTTP server has checked the Host and Origin
// headers, the key and the limits of a request before it calls MCP.
func mcpCallers(cfg *config.Config) *mcp.HTTPOptions {
	out := &mcp.HTTPOptions{Admitted: true, Charge: server.Charge}
	if cfg.RequiresKey() {
		out.Identify = func(r *http.Request) (mcp.Caller, bool) {
			k, ok := server.CallerOf(r.Context())
			return mcp.Caller{Principal: k.Name, Profile: k.Profile, Labels: k.Labels, Allow: k.Tools, Limits: new(k.Narrowed(cfg.Limits()))}, ok && k.Name != ""
		}
	}
	return out
}

// serveMCP serves the current tools to MCP clients. The HTTP server has admitted the request.
func (a *App) serveMCP(w http.ResponseWriter, r *http.Request) { a.mcp.Handler().ServeHTTP(w, r) }

// offerTools makes the tools of r those that MCP clients use. unused is closed when no call uses the tools of the previous revision; it is
// nil for the first revision. Approvals cannot be requested over MCP: a call that needs one is denied.
func (a *App) offerTools(r *revision) (unused <-chan struct{}) {
	callers := mcpCallers(r.cfg)
	if a.mcp == nil {
		opts := &mcp.Options{Title: "Lathe", Version: a.opts.Version, Log: a.log, Sinks: a.sinks, HTTP: *callers}
		if a.audit != nil {
			opts.Sinks = append(slices.Clone(opts.Sinks), a.audit)
		}
		a.mcp = mcp.New(r.unattended, opts)
		r.offerCatalog(a)
		return nil
	}
	a.mcp.Admit(callers) // first: a caller with fewer rights than before must not get the new tools
	r.offerCatalog(a)
	return a.mcp.Use(r.unattended) // after the catalog: when no call uses the previous runner, the files of the previous catalog may be closed
}

// offerCatalog makes the resources and prompts of r those that MCP clients of a get. newRevision has checked them.
func (r *revision) offerCatalog(a *App) {
	if err := a.mcp.Offer(&r.catalog.Catalog); err != nil {
		a.log.Error("the resources and prompts are not served", "error", err)
	}
}

// observers returns the observers of requests to MCP servers.
func (t *telemetry) observers() []event.MCPObserver {
	if t.traces == nil {
		return []event.MCPObserver{t.metrics}
	}
	return []event.MCPObserver{t.metrics, t.traces}
}

// refreshEvery is the interval at which changes of the tools of MCP servers, modules and workers are detected.
const refreshEvery = time.Second

// RefreshTools notifies the clients of s of added and removed tools, until ctx is done.
func RefreshTools(ctx context.Context, s *mcp.Server) {
	every(ctx, refreshEvery, s.Refresh)
}

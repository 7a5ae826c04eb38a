package main

import (
	"net/http"
	"slices"

	"github.com/lathe-run/lathe/gateway"
	"github.com/lathe-run/lathe/mcpserve"
	"github.com/lathe-run/lathe/observe"
)

// callers returns the callers who may use the tools over MCP: those of everything else. The gateway, which serves the path,
// has checked Host, Origin and limits.
func (g *generation) callers(keys []gateway.Key) *mcpserve.HTTPOptions {
	out := &mcpserve.HTTPOptions{Admitted: true, Charge: gateway.Charge}
	if len(keys) > 0 {
		known := make([]mcpserve.Key, len(keys))
		for i := range keys {
			limits := keys[i].Narrowed(g.cfg.Limits())
			known[i] = mcpserve.Key{Secret: keys[i].Secret, Caller: mcpserve.Caller{Principal: keys[i].Name, Allow: keys[i].Tools, Limits: &limits}}
		}
		out.Identify = mcpserve.Keys(known...)
	}
	return out
}

// handler serves the gateway, and within it MCP.
func (d *daemon) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.traces != nil {
			r = r.WithContext(observe.RemoteTrace(r.Context(), r.Header))
		}
		d.gateway.ServeHTTP(w, r)
	})
}

// serveMCP serves the tools in force to MCP clients. The gateway has admitted the request.
func (d *daemon) serveMCP(w http.ResponseWriter, r *http.Request) { d.tools.Handler().ServeHTTP(w, r) }

// serveTools puts the tools of the generation in force for MCP clients. The channel is closed when no call uses those
// before any more; nil: there were none. Nobody can be asked there: what would be asked about is denied.
func (d *daemon) serveTools(g *generation, keys []gateway.Key) (unused <-chan struct{}) {
	runner, callers := buildRunner(g.cfg, g.set, nil, d.trail, d.log), g.callers(keys)
	first := d.tools == nil
	if first {
		opts := &mcpserve.Options{Title: "Lathe", Version: currentVersion().Version, Log: d.log, Sinks: d.sinks, HTTP: *callers}
		if d.trail != nil {
			opts.Sinks = append(slices.Clone(opts.Sinks), d.trail)
		}
		d.tools = mcpserve.New(runner, opts)
	} else {
		d.tools.Admit(callers) // before the rest: who may do less now does not get the new tools
	}
	if err := d.tools.Offer(&g.catalog.Catalog); err != nil {
		d.log.Error("the resources and prompts are not served", "error", err) // they were good when they were read
	}
	if !first {
		unused = d.tools.Use(runner) // after the catalog: whose files are those before is done with the runner before
	}
	return unused
}

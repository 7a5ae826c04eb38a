package main

import (
	"net/http"
	"slices"

	"github.com/lathe-run/lathe/gateway"
	"github.com/lathe-run/lathe/mcpserve"
	"github.com/lathe-run/lathe/observe"
)

// mcp offers the tools of the generation to MCP clients, under the same keys as everything else.
// Nobody can be asked there: what would be asked about is denied.
func (g *generation) mcp(d *daemon, keys []gateway.Key) *mcpserve.Server {
	opts := &mcpserve.Options{Title: "Lathe", Version: currentVersion().Version, Log: d.log, Sinks: d.sinks,
		HTTP: mcpserve.HTTPOptions{Hosts: g.cfg.Serve.Hosts, Origins: g.cfg.Serve.Origins}}
	if len(keys) > 0 {
		known := make([]mcpserve.Key, len(keys))
		for i := range keys {
			limits := keys[i].Narrowed(g.cfg.Limits())
			known[i] = mcpserve.Key{Secret: keys[i].Secret, Caller: mcpserve.Caller{Principal: keys[i].Name, Allow: keys[i].Tools, Limits: &limits}}
		}
		opts.HTTP.Identify = mcpserve.Keys(known...)
	}
	if d.trail != nil {
		opts.Sinks = append(slices.Clone(opts.Sinks), d.trail)
	}
	s := mcpserve.New(buildRunner(g.cfg, g.set, nil, d.trail, d.log), opts)
	if err := s.Offer(&g.catalog.Catalog); err != nil {
		d.log.Error("the resources and prompts are not served", "error", err) // they were good when they were read
	}
	return s
}

// handler serves the gateway, and MCP beside it.
func (d *daemon) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.traces != nil {
			r = r.WithContext(observe.RemoteTrace(r.Context(), r.Header))
		}
		if r.URL.Path == "/mcp" {
			d.tools.Load().Handler().ServeHTTP(w, r)
			return
		}
		d.gateway.ServeHTTP(w, r)
	})
}

// serveTools puts the tools of the generation in force for MCP clients. Sessions of those before end:
// their clients begin anew.
func (d *daemon) serveTools(g *generation, keys []gateway.Key) {
	next := g.mcp(d, keys)
	if former := d.tools.Swap(next); former != nil {
		former.Close()
	}
}

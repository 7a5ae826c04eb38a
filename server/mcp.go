package server

import (
	"context"
	"net/http"
)

// mcpPath is where MCP clients are served.
const mcpPath = "/mcp"

// mcp leaves the request to the handler for MCP. It does not count as work that a drain waits for:
// streams of MCP clients end when their server is closed, after the drain.
func (g *Server) mcp(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	c.leave(g.core)
	g.opts.MCP.ServeHTTP(w, r.WithContext(context.WithValue(g.withCharge(r.Context(), c.key), admitted{}, c.key)))
	return nil
}

// leave ends the request's part in the work of the gateway.
func (c *caller) leave(co *core) {
	if !c.left {
		c.left = true
		co.work.end(c.setup)
	}
}

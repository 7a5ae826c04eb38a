package server

import (
	"context"
	"net/http"
)

// mcpPath is the path of the MCP endpoint.
const mcpPath = "/mcp"

// mcp passes the request to [Options].MCP. The request does not count as work that a drain waits for: streams of MCP
// clients end when the MCP server is closed, after the drain.
func (g *Server) mcp(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	c.leave(g.core)
	g.opts.MCP.ServeHTTP(w, r.WithContext(context.WithValue(g.withCharge(r.Context(), c.key), admitted{}, c.key)))
	return nil
}

// leave stops counting the request as work in progress. Further calls have no effect.
func (c *caller) leave(co *core) {
	if !c.left {
		c.left = true
		co.work.end(c.setup)
	}
}

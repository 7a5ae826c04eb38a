package server

import (
	"context"
	"encoding/json"
	"net/http"
)

// mcpPath is where MCP clients are served.
const mcpPath = "/mcp"

// mcp leaves the request to the handler for MCP. It does not count as work that a drain waits for:
// streams of MCP clients end when their server is closed, after the drain.
func (g *Server) mcp(w http.ResponseWriter, r *http.Request, c *caller) {
	c.leave(g.core)
	g.opts.MCP.ServeHTTP(w, r.WithContext(context.WithValue(g.withCharge(r.Context(), c.key), admitted{}, c.key)))
}

// leave ends the request's part in the work of the gateway.
func (c *caller) leave(co *core) {
	if !c.left {
		c.left = true
		co.work.end(c.setup)
	}
}

// codeRefused is the code of JSON-RPC errors that answer requests which the gateway does not admit.
const codeRefused = -32000

// rpcError returns the problem as MCP clients read it.
func (p *problem) rpcError(requestID string) []byte {
	type data struct {
		Code      string `json:"code"`
		RequestID string `json:"request_id"`
	}
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{
		"code": codeRefused, "message": p.Message, "data": data{p.Code, requestID}}}) // strings and numbers
	return append(body, '\n')
}

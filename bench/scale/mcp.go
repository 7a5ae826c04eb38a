package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpAnswer is the output of every tool of the MCP server.
const mcpAnswer = `{"ok":true}`

// newMCPServer returns an MCP server on loopback with n tools, over streamable HTTP.
func newMCPServer(n int) *httptest.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "catalogue", Version: "1"}, nil)
	for i := range n {
		server.AddTool(&mcp.Tool{Name: toolName(i), Description: toolText, InputSchema: toolSchema(i)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: mcpAnswer}}, StructuredContent: json.RawMessage(mcpAnswer)}, nil
			})
	}
	return httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{JSONResponse: true}))
}

// mcpConfig writes a configuration whose tools are those of an MCP server, in a folder of its own, which holds their pins, too.
func (s *settings) mcpConfig(server, model string) (string, error) {
	dir, err := os.MkdirTemp(s.dir, "mcp")
	if err != nil {
		return "", err
	}
	return writeToolConfig(dir, `mcp: {many: {url: "`+server+`", allowlist: ["*"], max_tools: 10000, required: true}}`, model)
}

// mcpMeasurements measure an application with the tools of an MCP server.
func (s *settings) mcpMeasurements() []measurement {
	// start returns an operation that starts an application, uses it and stops it.
	start := func(n int, use func(http.Handler) error) (func() error, func(), error) {
		server := newMCPServer(n)
		path, err := s.mcpConfig(server.URL, nowhere)
		return func() error {
			a, err := newApp(path)
			if err != nil {
				return err
			}
			if err := use(a.Handler()); err != nil {
				_ = a.Close()
				return err
			}
			return a.Close()
		}, server.Close, err
	}
	return []measurement{
		{name: "read the configuration, connect and start", prepare: func(n int) (func() error, func(), error) {
			return start(n, func(http.Handler) error { return nil })
		}},
		{name: "start and first call", prepare: func(n int) (func() error, func(), error) {
			return start(n, func(h http.Handler) error { return callMCPTool(h, n/2) })
		}},
		{name: "a request with the tools of the server", prepare: func(n int) (func() error, func(), error) {
			server := newMCPServer(n)
			op, stop, err := askApp("", func(model string) (string, error) { return s.mcpConfig(server.URL, model) })
			return op, func() {
				if stop != nil {
					stop()
				}
				server.Close()
			}, err
		}},
		{name: "go-sdk client: connect and list", peer: true, prepare: func(n int) (func() error, func(), error) {
			server := newMCPServer(n)
			return func() error { return listWithSDK(server.URL, n) }, server.Close, nil
		}},
	}
}

// callMCPTool calls tool i through the API.
func callMCPTool(h http.Handler, i int) error {
	r := httptest.NewRequest(http.MethodPost, "http://localhost/api/tools/many__"+toolName(i)+"/call", strings.NewReader(`{"arguments":{"id":"x"}}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"is_error":false`) {
		return fmt.Errorf("status %d: %.300s", w.Code, w.Body)
	}
	return nil
}

// listWithSDK lists the tools of an MCP server, and checks that there are n.
func listWithSDK(url string, n int) error {
	ctx := context.Background()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true}, nil)
	if err != nil {
		return err
	}
	got := 0
	for _, err := range session.Tools(ctx, nil) {
		if err != nil {
			_ = session.Close()
			return err
		}
		got++
	}
	if err := session.Close(); err != nil {
		return err
	}
	if got != n {
		return fmt.Errorf("%d tools, want %d", got, n)
	}
	return nil
}

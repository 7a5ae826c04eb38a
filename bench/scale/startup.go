package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/lathe-run/lathe/internal/app"
)

// startUp measures the start of an application whose tools are the operations of an OpenAPI document, or those of an MCP server, and a
// request that offers all of them.
func startUp(s *settings) (*Chart, error) {
	c := &Chart{Title: "Start-up with many tools of an OpenAPI document or an MCP server", Size: "tools, each with a schema of its own"}
	sizes, mcpSizes := steps(10, 2000), steps(10, 5000)
	if s.quick {
		sizes, mcpSizes = []int{1, 5, 20}, []int{1, 5, 20}
	}
	if err := s.operations(c, "OpenAPI operations", sizes, []measurement{
		{name: "read the configuration and start", prepare: func(n int) (func() error, func(), error) {
			path, err := s.openAPIConfig(n, nowhere)
			return func() error {
				a, err := newApp(path)
				if err != nil {
					return err
				}
				return a.Close()
			}, nil, err
		}},
		{name: "a request", prepare: s.openAPIRequest},
	}); err != nil {
		return nil, err
	}
	c.note("The MCP server and the model server are in the same process: what they do is part of the cost.")
	return c, s.operations(c, "Tools of an MCP server", mcpSizes, s.mcpMeasurements())
}

// openAPIDocument is a document with n operations.
func openAPIDocument(n int) ([]byte, error) {
	type object = map[string]any
	paths, schemas := object{}, object{}
	for i := range n {
		item := fmt.Sprintf("Item%d", i)
		paths[fmt.Sprintf("/items/%d/{id}", i)] = object{"post": object{
			"operationId": fmt.Sprintf("updateItem%d", i), "summary": fmt.Sprintf("Changes item %d of the catalogue.", i), "tags": []string{"all"},
			"parameters":  []any{object{"name": "id", "in": "path", "required": true, "schema": object{"type": "string"}}, object{"name": "limit", "in": "query", "schema": object{"type": "integer", "minimum": 1, "maximum": 100}}},
			"requestBody": object{"content": object{"application/json": object{"schema": object{"$ref": "#/components/schemas/" + item}}}},
			"responses":   object{"200": object{"description": "It was changed."}},
		}}
		schemas[item] = object{"type": "object", "required": []string{"name"}, "properties": object{
			"name": object{"type": "string"}, "price": object{"type": "number"}, "labels": object{"type": "array", "items": object{"type": "string"}}, "kind": object{"type": "string", "enum": []string{"a", "b", "c"}}}}
	}
	return json.Marshal(object{"openapi": "3.0.3", "info": object{"title": "Catalogue", "version": "1"}, "paths": paths, "components": object{"schemas": schemas}})
}

// openAPIConfig writes a configuration whose tools are n operations.
func (s *settings) openAPIConfig(n int, model string) (string, error) {
	doc, err := openAPIDocument(n)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(s.dir, fmt.Sprintf("openapi-%d", n))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "api.json"), doc, 0o600); err != nil {
		return "", err
	}
	return writeToolConfig(dir, `openapi: {catalogue: {file: api.json, server: "http://127.0.0.1:9", tags: [all], allowlist: ["*"]}}`, model)
}

// writeToolConfig writes a configuration with a line of tools, whose number is not limited, and returns its path.
func writeToolConfig(dir, tools, model string) (string, error) {
	text := `tools:
  builtin: []
  ` + tools + `
  egress: {private: ["127.0.0.1"]}
policy: {effects: {writes: allow}}
tool_calling: {max_tools: 100000, max_tools_bytes: 1000000000}
models: {m: {base_url: "` + model + `", max_attempts: 1}}
`
	path := filepath.Join(dir, "lathe.yaml")
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// openAPIRequest is a chat completion with a run that offers n operations.
func (s *settings) openAPIRequest(n int) (func() error, func(), error) {
	return askApp("", func(model string) (string, error) { return s.openAPIConfig(n, model) })
}

// askApp returns a function that makes a chat completion in this process, with the key of a client, and one that stops the
// application. configure writes its configuration, with the URL of the model server, which is a handler in this process: its
// reading of the body is part of the cost.
func askApp(key string, configure func(model string) (path string, err error)) (request func() error, stop func(), err error) {
	upstream := httptest.NewServer(http.HandlerFunc(modelServer))
	path, err := configure(upstream.URL + "/v1")
	if err != nil {
		upstream.Close()
		return nil, nil, err
	}
	a, err := newApp(path)
	if err != nil {
		upstream.Close()
		return nil, nil, err
	}
	return func() error { return ask(a, key) }, func() { _ = a.Close(); upstream.Close() }, nil
}

// ask makes a chat completion in this process, with the key of a client.
func ask(a *app.App, key string) error {
	r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"Hello."}]}`))
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	w := httptest.NewRecorder()
	a.Handler().ServeHTTP(w, r)
	if b, _ := io.ReadAll(w.Body); w.Code != http.StatusOK || !strings.Contains(string(b), "A short answer.") {
		return fmt.Errorf("status %d: %.300s", w.Code, b)
	}
	return nil
}

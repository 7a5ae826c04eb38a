package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// A protectedServer is an MCP server that requires tokens and an authorization server that grants them to every client,
// both on one address. Reading requires the scope notes:read, writing notes:write.
type protectedServer struct {
	*httptest.Server
	mu     sync.Mutex
	scopes map[string][]string // by token, and by code
	issued int
}

// serveProtected starts a protected server and sets $SEARCH_URL to its endpoint, and $NOTES_URL to the
// same notes without MCP, at /notes: `protected`.
func serveProtected(ts *testscript.TestScript, _ bool, _ []string) {
	p := &protectedServer{scopes: map[string][]string{}}
	p.Server = httptest.NewUnstartedServer(p)
	p.Start()
	ts.Defer(p.Close)
	ts.Setenv("SEARCH_URL", p.URL+"/mcp")
	ts.Setenv("NOTES_URL", p.URL)
}

// browse is a browser that follows wherever it is led: `xdg-open URL`.
func browse() {
	resp, err := http.Get(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = resp.Body.Close()
}

func (p *protectedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := r.ParseForm(); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	answer := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	switch r.URL.Path {
	case "/.well-known/oauth-protected-resource/mcp":
		answer(map[string]any{"resource": p.URL + "/mcp", "authorization_servers": []string{p.URL}})
	case "/.well-known/oauth-authorization-server":
		answer(map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "registration_endpoint": p.URL + "/register",
			"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"}})
	case "/register":
		answer(map[string]any{"client_id": "lathe-1"})
	case "/authorize":
		p.issued++
		code := fmt.Sprintf("canary-code-%d", p.issued)
		p.scopes[code] = strings.Fields(r.Form.Get("scope"))
		http.Redirect(w, r, r.Form.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {r.Form.Get("state")}}.Encode(), http.StatusFound)
	case "/token":
		p.issued++
		token := fmt.Sprintf("canary-token-%d", p.issued)
		p.scopes[token] = p.scopes[r.Form.Get("code")]
		if r.Form.Get("grant_type") == "client_credentials" {
			p.scopes[token] = strings.Fields(r.Form.Get("scope"))
		}
		answer(map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 3600, "refresh_token": "canary-refresh", "scope": strings.Join(p.scopes[token], " ")})
	case "/notes":
		p.serveNotes(w, r, answer)
	case "/mcp":
		p.serveMCP(w, r, answer)
	default:
		http.NotFound(w, r)
	}
}

// serveNotes is an API that says what it was asked with.
func (p *protectedServer) serveNotes(w http.ResponseWriter, r *http.Request, answer func(any)) {
	scopes, known := p.scopes[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	switch {
	case !known:
		w.WriteHeader(http.StatusNotFound) // it does not even say that it is there
	case r.Method == http.MethodPost && !slices.Contains(scopes, "notes:write"):
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="notes:write"`)
		w.WriteHeader(http.StatusForbidden)
	default:
		answer(map[string]any{"done": r.Method, "sent": r.Header.Get("Authorization")})
	}
}

func (p *protectedServer) serveMCP(w http.ResponseWriter, r *http.Request, answer func(any)) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name string }
	}
	b, err := io.ReadAll(r.Body)
	if r.Method != http.MethodPost || err != nil || json.Unmarshal(b, &m) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	scopes, known := p.scopes[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	switch {
	case !known:
		w.Header().Set("WWW-Authenticate", `Bearer scope="notes:read"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	case m.Params.Name == "write" && !slices.Contains(scopes, "notes:write"):
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="notes:write"`)
		w.WriteHeader(http.StatusForbidden)
		return
	case len(m.ID) == 0:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	reply := map[string]any{"jsonrpc": "2.0", "id": m.ID}
	switch m.Method {
	case "initialize":
		reply["result"] = map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "search", "version": "3.1.0"}}
	case "tools/list":
		object := map[string]any{"type": "object"}
		reply["result"] = map[string]any{"tools": []any{map[string]any{"name": "read", "description": "Reads a note.", "inputSchema": object},
			map[string]any{"name": "write", "description": "Writes a note.", "inputSchema": object}}}
	case "tools/call":
		reply["result"] = map[string]any{"content": []any{map[string]any{"type": "text", "text": "done: " + m.Params.Name}}}
	default:
		reply["error"] = map[string]any{"code": -32601, "message": "method not found"}
	}
	answer(reply)
}

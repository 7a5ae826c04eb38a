package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe/egress"
)

// A world is a server that wants tokens and the authorization server that gives them, both on this
// machine. What a test sets in it before the first request is what they say.
type world struct {
	t        *testing.T
	as, mcp  *httptest.Server
	path     string // of the protected endpoint
	metadata func(m map[string]any)
	resource func(m map[string]any)
	answer   func(q url.Values)                                // of the authorization endpoint
	instead  func(w http.ResponseWriter, r *http.Request) bool // true: it has answered in place of the authorization server, or of the metadata
	token    func(form url.Values, header http.Header) (int, map[string]any)
	guard    func(w http.ResponseWriter, r *http.Request) bool // false: it has answered

	mu       sync.Mutex
	requests []string // METHOD PATH of both
	authz    url.Values
	forms    []url.Values
	headers  []http.Header
	clients  []map[string]any
	live     map[string]bool // tokens that the server takes
	refresh  string          // the token that can be renewed with
	issued   int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, path: "/mcp", live: map[string]bool{}}
	w.as = httptest.NewUnstartedServer(http.HandlerFunc(w.serveAS))
	w.mcp = httptest.NewUnstartedServer(http.HandlerFunc(w.serveMCP))
	w.as.Start()
	w.mcp.Start()
	t.Cleanup(w.as.Close)
	t.Cleanup(w.mcp.Close)
	return w
}

func (w *world) note(r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, r.Method+" "+r.URL.Path)
}

func (w *world) seen(request string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, r := range w.requests {
		if r == request {
			n++
		}
	}
	return n
}

func (w *world) serveMCP(rw http.ResponseWriter, r *http.Request) {
	w.note(r)
	if strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource") {
		if w.instead != nil && w.instead(rw, r) {
			return
		}
		m := map[string]any{"resource": w.mcp.URL + w.path, "authorization_servers": []string{w.as.URL}}
		if w.resource != nil {
			w.resource(m)
		}
		if len(m) == 0 {
			http.NotFound(rw, r)
			return
		}
		writeJSON(rw, http.StatusOK, m)
		return
	}
	if w.guard != nil && !w.guard(rw, r) {
		return
	}
	w.mu.Lock()
	ok := w.live[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	w.mu.Unlock()
	if !ok {
		rw.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", scope="notes:read"`)
		rw.WriteHeader(http.StatusUnauthorized)
		return
	}
	body, _ := io.ReadAll(r.Body)
	_, _ = io.WriteString(rw, "served "+string(body))
}

func (w *world) serveAS(rw http.ResponseWriter, r *http.Request) {
	w.note(r)
	if w.instead != nil && w.instead(rw, r) {
		return
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-authorization-server"):
		m := map[string]any{
			"issuer": w.as.URL, "authorization_endpoint": w.as.URL + "/authorize?tenant=a", "token_endpoint": w.as.URL + "/token",
			"registration_endpoint": w.as.URL + "/register", "code_challenge_methods_supported": []string{"S256"},
			"token_endpoint_auth_methods_supported": []string{"none"},
		}
		if w.metadata != nil {
			w.metadata(m)
		}
		writeJSON(rw, http.StatusOK, m)
	case r.URL.Path == "/authorize":
		q := r.URL.Query()
		w.mu.Lock()
		w.authz = q
		w.mu.Unlock()
		back, err := url.Parse(q.Get("redirect_uri"))
		if err != nil {
			w.t.Error(err)
		}
		a := url.Values{"code": {"the-code"}, "state": {q.Get("state")}}
		if w.answer != nil {
			w.answer(a)
		}
		back.RawQuery = a.Encode()
		http.Redirect(rw, r, back.String(), http.StatusFound)
	case r.URL.Path == "/register":
		var m map[string]any
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			w.t.Error(err)
		}
		w.mu.Lock()
		w.clients = append(w.clients, m)
		w.mu.Unlock()
		writeJSON(rw, http.StatusCreated, map[string]any{"client_id": "registered"})
	case r.URL.Path == "/token":
		if err := r.ParseForm(); err != nil {
			w.t.Error(err)
		}
		status, m := w.grant(r.PostForm, r.Header)
		writeJSON(rw, status, m)
	default:
		http.NotFound(rw, r)
	}
}

// grant gives tokens token-1, token-2 …, each with a refresh token that replaces the one before.
func (w *world) grant(form url.Values, header http.Header) (int, map[string]any) {
	w.mu.Lock()
	w.forms, w.headers = append(w.forms, maps.Clone(form)), append(w.headers, header.Clone())
	w.mu.Unlock()
	if w.token != nil {
		return w.token(form, header)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch form.Get("grant_type") {
	case "authorization_code":
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		if form.Get("code") != "the-code" || base64.RawURLEncoding.EncodeToString(sum[:]) != w.authz.Get("code_challenge") {
			return http.StatusBadRequest, map[string]any{"error": "invalid_grant"}
		}
	case "refresh_token":
		if form.Get("refresh_token") != w.refresh {
			return http.StatusBadRequest, map[string]any{"error": "invalid_grant", "error_description": "never shown " + form.Get("refresh_token")}
		}
	}
	return http.StatusOK, w.issue()
}

// issue makes a token; w.mu is held.
func (w *world) issue() map[string]any {
	w.issued++
	token := "token-" + string(rune('0'+w.issued))
	w.refresh = "refresh-" + string(rune('0'+w.issued))
	w.live[token] = true
	return map[string]any{"access_token": token, "token_type": "bearer", "expires_in": 3600, "refresh_token": w.refresh}
}

func (w *world) revoke(token string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.live, token)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (w *world) egress() *egress.Client {
	w.t.Helper()
	e, err := egress.New(&egress.Rules{Hosts: []string{"*"}, Schemes: []string{"https", "http"}, AnyPort: true, Private: []string{"127.0.0.1"}},
		&egress.Options{MaxRedirects: -1})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(e.Close)
	return e
}

// client returns a client of the protected server, with what change makes of its configuration.
func (w *world) client(store *Store, change func(*Config)) *Client {
	w.t.Helper()
	conf := Config{Name: "notes", Server: w.mcp.URL + w.path}
	if change != nil {
		change(&conf)
	}
	if conf.TokenEndpoint == "" && (!conf.Secret.IsZero() || !conf.Assertion.IsZero()) {
		conf.Issuer = w.as.URL // as who has a secret has to
	}
	c, err := New(conf, &Options{HTTP: w.egress(), Store: store})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// store returns one in a file of its own.
func (w *world) store() *Store { return NewStore(filepath.Join(w.t.TempDir(), "tokens.json")) }

// call posts to the protected server and returns what it says.
func call(t *testing.T, c *Client, address string) (string, error) {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	h := &http.Client{Transport: c.Transport(transport), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := h.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", errors.New(resp.Status)
	}
	return string(b), nil
}

// openURL is a browser that follows wherever it is led.
func openURL(t *testing.T) func(string) error {
	return func(address string) error {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport}).Get(address)
		if err != nil {
			t.Error(err)
			return err
		}
		return resp.Body.Close()
	}
}

func login(t *testing.T, c *Client) (*Granted, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return c.Login(ctx, openURL(t))
}

func needsLogin(err error) bool {
	e := (*LoginError)(nil)
	return errors.As(err, &e)
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

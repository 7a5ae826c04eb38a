package oauth

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/secret"
)

// api makes a configuration that of a server which is no MCP server.
func api(w *world, change func(*Config)) func(*Config) {
	return func(c *Config) {
		c.API, c.Server = true, w.mcp.URL
		if change != nil {
			change(c)
		}
	}
}

func machine(c *Config) {
	c.Grant, c.ClientID, c.Secret = ClientCredentials, "machine", secret.New("s")
}

// An API is asked for nothing without a token, and need not know of resources or publish metadata.
func TestAPIsGetTheTokenAtOnce(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		conf     func(*world, *Config)
		requests []string // before the one for a token
	}{
		{"an issuer", func(w *world, c *Config) { c.Issuer = w.as.URL }, []string{"GET /.well-known/oauth-authorization-server"}},
		{"endpoints", func(w *world, c *Config) { c.TokenEndpoint = w.as.URL + "/token" }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.metadata = func(m map[string]any) { delete(m, "token_endpoint_auth_methods_supported") }
			w.token = func(url.Values, http.Header) (int, map[string]any) {
				w.mu.Lock()
				defer w.mu.Unlock()
				return 200, w.issue()
			}
			c := w.client(w.store(), api(w, func(c *Config) {
				machine(c)
				tc.conf(w, c)
			}))
			if ready, err := c.Ready(); !ready || err != nil {
				t.Errorf("ready %v, %v", ready, err)
			}
			for range 2 { // the second uses the token of the first
				if text, err := call(t, c, w.mcp.URL+"/v2/things"); text != "served hello" || err != nil {
					t.Fatalf("%q, %v", text, err)
				}
			}
			if want := append(tc.requests, "POST /token", "POST /v2/things", "POST /v2/things"); !slices.Equal(w.requests, want) {
				t.Errorf("got %q, want %q", w.requests, want)
			}
			if w.forms[0].Has("resource") {
				t.Errorf("asked with %v", w.forms[0])
			}
			w.revoke("token-1")
			if text, err := call(t, c, w.mcp.URL+"/v2/things"); text != "served hello" || err != nil {
				t.Errorf("after the token was revoked: %q, %v", text, err)
			}
		})
	}
}

func TestAPIsAreNotAskedBeforeALogin(t *testing.T) {
	t.Parallel()
	for name, conf := range map[string]func(*world, *Config){
		"metadata": func(*world, *Config) {},
		"endpoints": func(w *world, c *Config) {
			c.TokenEndpoint, c.AuthorizationEndpoint, c.ClientID = w.as.URL+"/token", w.as.URL+"/authorize", "by-hand"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.resource = func(m map[string]any) { m["resource"] = w.mcp.URL + "/v2" } // any of the origin
			w.answer = func(q url.Values) {
				if name == "endpoints" { // the issuer is unknown
					q.Set("iss", "https://login.example")
				}
			}
			c := w.client(w.store(), api(w, func(c *Config) { conf(w, c) }))
			if _, err := call(t, c, w.mcp.URL+"/v1"); !needsLogin(err) {
				t.Errorf("got %v", err)
			}
			if ready, err := c.Ready(); ready || err != nil || len(w.requests) > 0 {
				t.Errorf("ready %v, %v; requests %q", ready, err, w.requests)
			}
			if _, err := login(t, c); err != nil {
				t.Fatal(err)
			}
			if ready, err := c.Ready(); !ready || err != nil {
				t.Errorf("ready %v, %v", ready, err)
			}
			if text, err := call(t, c, w.mcp.URL+"/v1"); text != "served hello" || err != nil {
				t.Errorf("%q, %v", text, err)
			}
			want := map[string]string{"metadata": w.mcp.URL + "/v2"}[name]
			if got := w.forms[0].Get("resource"); got != want || w.authz.Get("resource") != want {
				t.Errorf("resource %q, want %q", got, want)
			}
			if w.authz.Get("code_challenge") == "" || name == "endpoints" && (w.authz.Get("client_id") != "by-hand" || w.seen("GET /.well-known/oauth-authorization-server") > 0) {
				t.Errorf("asked %v; requests %q", w.authz, w.requests)
			}
			w.revoke("token-1")
			if text, err := call(t, c, w.mcp.URL+"/v1"); text != "served hello" || err != nil {
				t.Errorf("after the token was revoked: %q, %v", text, err)
			}
		})
	}
}

// A token is not sent again after a request has left its origin, though it comes back there; nor does
// any other part of the chain get it.
func TestT8_TokensDoNotComeBackOverRedirects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := map[string]string{}
	note := func(name string, r *http.Request) { got[name] = r.Header.Get("Authorization") }
	var home string
	other := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		note("other", r)
		http.Redirect(rw, r, home+"/back", http.StatusFound)
	}))
	t.Cleanup(other.Close)
	w.guard = func(rw http.ResponseWriter, r *http.Request) bool {
		note(r.URL.Path, r)
		switch r.URL.Path {
		case "/out":
			http.Redirect(rw, r, "/near", http.StatusFound)
		case "/near":
			http.Redirect(rw, r, other.URL, http.StatusFound)
		}
		return false
	}
	home = w.mcp.URL
	c := w.client(nil, api(w, func(c *Config) { machine(c); c.TokenEndpoint = w.as.URL + "/token" }))
	e, err := egress.New(&egress.Rules{Hosts: []string{"127.0.0.1"}, Schemes: []string{"http"}, AnyPort: true, Private: []string{"127.0.0.1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, home+"/out", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := e.With(c.Transport).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got["/out"] != "Bearer token-1" || got["/near"] != "Bearer token-1" || got["other"] != "" || got["/back"] != "" || len(got) != 4 {
		t.Errorf("got %q", got)
	}
}

// Errors for a missing token differ from errors of the egress check.
func TestMissingTokensAreErrorsOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(nil, api(w, nil))
	e := w.egress().With(c.Transport)
	do := func(address string) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, io.NopCloser(strings.NewReader("canary")))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := e.Do(req)
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
	err := do(w.mcp.URL)
	got := (*egress.Error)(nil)
	if !errors.As(err, &got) || got.Code != egress.CodeCredential || !got.Unsent || !got.Refused || !needsLogin(err) {
		t.Errorf("got %v", err)
	}
	if err := do("http://10.0.0.1/"); egress.CodeOf(err) != egress.CodeAddress {
		t.Errorf("got %v", err)
	}
}

package oauth

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/secret"
)

// The libraries quote answers, addresses and what they sent in their errors. Nothing of it is shown, whichever request of
// a login fails and however.
func TestT21_ErrorsQuoteNoAnswer(t *testing.T) {
	t.Parallel()
	const (
		canary   = "canary-in-an-answer"
		resource = "/.well-known/oauth-protected-resource/mcp"
		issuer   = "/.well-known/oauth-authorization-server"
		register = "/register"
		token    = "/token"
		asJSON   = "application/json"
	)
	long := canary + strings.Repeat(" ", maxAnswerBytes)
	for i, tc := range []struct {
		path       string
		status     int // 3xx: to an address with the canary in it
		kind, body string
		want       string
	}{
		{resource, 500, "text/plain", canary, "the server's metadata: 127.0.0.1"},
		{resource, 302, "", "", "redirect_limit"},
		{resource, 200, asJSON, `"` + canary + `"`, "not a JSON object"},
		{resource, 200, asJSON, `{"` + canary + `":1,"` + canary + `":2}`, "not a JSON object"},
		{resource, 200, asJSON, `{"resource":"ftp://` + canary + `"}`, "neither https"},
		{resource, 200, asJSON, `{"resource":["` + canary + `"]}`, "publishes"},
		{issuer, 200, asJSON, `{"issuer":"https://` + canary + `"}`, "another issuer"},
		{issuer, 200, asJSON, canary, "not a JSON object"},
		{issuer, 503, asJSON, `{"error":"` + canary + `"}`, "HTTP 503"},
		{register, 400, asJSON, `{"error":"invalid_redirect_uri","error_description":"` + canary + `"}`, "refuses with HTTP 400, invalid_redirect_uri"},
		{register, 400, asJSON, `{"error":"bad ` + canary + `"}`, "answers with HTTP 400"},
		{register, 400, "text/html", canary, "answers with HTTP 400"},
		{register, 403, asJSON, `{"error":"` + canary + `"}`, "HTTP 403"},
		{register, 307, "", "", "redirect_limit"},
		{register, 201, asJSON, `{"client_id":["` + canary + `"]}`, "the answer cannot be used"},
		{register, 201, asJSON, `{"x":"` + canary + `"}`, "the answer cannot be used"},
		{register, 201, asJSON, canary, "not a JSON object"},
		{register, 201, asJSON, long, "more than"},
		{register, 201, asJSON, `{"client_id":"a","token_endpoint_auth_method":"` + canary + `"}`, "a way to log in"},
		{register, 201, asJSON, `{"client_id":"` + canary + strings.Repeat("x", maxURLBytes) + `"}`, "holds no client"},
		{token, 400, asJSON, `{"error":"invalid_grant","error_description":"` + canary + `","error_uri":"https://` + canary + `"}`, "refuses with HTTP 400, invalid_grant"},
		{token, 200, asJSON, `{"error":"invalid_grant","error_description":"` + canary + `"}`, "refuses with HTTP 200, invalid_grant"},
		{token, 502, "text/plain", "error=" + canary, "HTTP 502"},
		{token, 500, asJSON, canary, "HTTP 500"},
		{token, 308, "", "", "redirect_limit"},
		{token, 200, asJSON, `{"access_token":["` + canary + `"]}`, "holds no token"},
		{token, 200, "text/plain", "access_token=" + canary + "&token_type=bearer", "not a JSON object"},
		{token, 200, asJSON, `{"access_token":"a","token_type":"` + canary + `"}`, "of a type"},
		{token, 200, asJSON, `{"access_token":"a","token_type":"bearer","access_token":"` + canary + `"}`, "not a JSON object"},
		{token, 200, asJSON, long, "more than"},
	} {
		t.Run(fmt.Sprint(i, tc.path), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.instead = func(rw http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != tc.path {
					return false
				}
				rw.Header().Set("Location", "/"+canary)
				rw.Header().Set("Content-Type", tc.kind)
				rw.WriteHeader(tc.status)
				_, _ = rw.Write([]byte(tc.body))
				return true
			}
			_, err := login(t, w.client(w.store(), nil))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			for _, s := range []string{canary, "the-code", "code_verifier", "client_name"} {
				if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), s) {
					t.Errorf("the error shows %q: %v", s, err)
				}
			}
		})
	}
}

// An answer that breaks off is no answer, though what came of it is a JSON object.
func TestAnswersThatBreakOffAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.instead = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/token" {
			return false
		}
		rw.Header().Set("Content-Length", "1000")
		_, _ = rw.Write([]byte(`{"access_token":"canary","token_type":"bearer"}`))
		return true
	}
	if _, err := login(t, w.client(w.store(), nil)); egress.CodeOf(err) != egress.CodeBroken || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v", err)
	}
}

// The Content-Type of an answer does not decide how it is read, and a member of another type than it has by its
// specification is left out.
func TestAnswersAreReadAsJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.metadata = func(m map[string]any) { m["jwks_uri"], m["scopes_supported"] = 5, "notes:read" }
	w.instead = func(rw http.ResponseWriter, r *http.Request) bool {
		rw.Header().Set("Content-Type", "text/plain")
		if r.URL.Path == "/token" {
			rw.WriteHeader(200)
			_, _ = rw.Write([]byte(`{"access_token":"token-1","token_type":"bearer","expires_in":"3600","scope":"a b"}`))
			return true
		}
		return false
	}
	got, err := login(t, w.client(w.store(), nil))
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got.Scopes) != "[a b]" || got.Expires.IsZero() || got.Renews {
		t.Errorf("granted %+v", got)
	}
}

// A request to an authorization server carries the secret of its client in one place, and none if the registration says so.
func TestSecretsAreSentOnce(t *testing.T) {
	t.Parallel()
	for method, form := range map[string]string{authNone: "", authBasic: "", authPost: "issued"} {
		w := newWorld(t)
		w.metadata = func(m map[string]any) { m["token_endpoint_auth_methods_supported"] = []string{method} }
		w.instead = func(rw http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/register" {
				return false
			}
			writeJSON(rw, http.StatusCreated, map[string]any{"client_id": "registered", "client_secret": "issued", "client_secret_expires_at": 0})
			return true
		}
		if _, err := login(t, w.client(nil, nil)); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		_, password, _ := (&http.Request{Header: w.headers[0]}).BasicAuth()
		if got := w.forms[0].Get("client_secret"); got != form || (password == "issued") != (method == authBasic) {
			t.Errorf("%s: form %q, header %q", method, got, password)
		}
	}
}

// A token endpoint that the configuration names is under the same rules as one from metadata.
func TestT9_RequestsGoThroughTheGuard(t *testing.T) {
	t.Parallel()
	reached := false
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	t.Cleanup(inner.Close)
	w := newWorld(t)
	c := w.client(nil, func(c *Config) {
		c.Grant, c.ClientID, c.Secret, c.TokenEndpoint = ClientCredentials, "machine", secret.New("s"), strings.Replace(inner.URL, "127.0.0.1", "127.0.0.2", 1)
	})
	if _, err := call(t, c, w.mcp.URL+w.path); err == nil || !strings.Contains(err.Error(), "address_refused") || reached {
		t.Errorf("got %v, reached %v", err, reached)
	}
}

package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe/secret"
)

func TestLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.metadata = func(m map[string]any) { m["scopes_supported"] = []string{"notes:read", "offline_access"} }
	c := w.client(w.store(), nil)
	if _, err := call(t, c, w.mcp.URL+w.path); !needsLogin(err) {
		t.Fatalf("before a login: %v", err)
	}
	if wanted, err := c.Wanted(); !wanted || err != nil {
		t.Errorf("wanted %v, %v", wanted, err)
	}
	got, err := login(t, c)
	if err != nil {
		t.Fatal(err)
	}
	if got.Issuer != w.as.URL || !got.Renews || time.Until(got.Expires) < 50*time.Minute || fmt.Sprint(got.Scopes) != "[notes:read offline_access]" {
		t.Errorf("granted %+v", got)
	}
	for name, want := range map[string]string{
		"response_type": "code", "client_id": "registered", "code_challenge_method": "S256", "tenant": "a",
		"resource": w.mcp.URL + "/mcp", "scope": "notes:read offline_access", "prompt": "consent",
	} {
		if got := w.authz.Get(name); got != want {
			t.Errorf("the authorization request has %s %q, want %q", name, got, want)
		}
	}
	back, err := url.Parse(w.authz.Get("redirect_uri"))
	if err != nil || back.Hostname() != "127.0.0.1" || len(w.authz.Get("code_challenge")) != 43 || len(w.authz.Get("state")) < 20 {
		t.Errorf("the authorization request: %v", w.authz)
	}
	form := w.forms[0]
	if form.Get("resource") != w.mcp.URL+"/mcp" || form.Get("client_id") != "registered" || form.Get("redirect_uri") != w.authz.Get("redirect_uri") {
		t.Errorf("the token request: %v", form)
	}
	reg := w.clients[0]
	if reg["application_type"] != "native" || fmt.Sprint(reg["grant_types"]) != "[authorization_code refresh_token]" || reg["token_endpoint_auth_method"] != "none" {
		t.Errorf("the registration: %v", reg)
	}
	if text, err := call(t, c, w.mcp.URL+w.path); text != "served hello" || err != nil {
		t.Errorf("after the login: %q, %v", text, err)
	}
	if wanted, _ := c.Wanted(); wanted {
		t.Error("a login is wanted still")
	}
}

// Nothing of what goes wrong at a login leads to a token, and none of it stops the right answer.
func TestT7_AnswersToALoginAreChecked(t *testing.T) {
	t.Parallel()
	announce := func(m map[string]any) { m["authorization_response_iss_parameter_supported"] = true }
	for _, tc := range []struct {
		name     string
		metadata func(*world, map[string]any)
		answer   func(*world, url.Values)
		want     string // "" a token
	}{
		{"issuer named", nil, func(w *world, q url.Values) { q.Set("iss", w.as.URL) }, ""},
		{"issuer named and promised", func(_ *world, m map[string]any) { announce(m) }, func(w *world, q url.Values) { q.Set("iss", w.as.URL) }, ""},
		{"issuer promised and missing", func(_ *world, m map[string]any) { announce(m) }, nil, "does not name its authorization server"},
		{"another issuer", func(_ *world, m map[string]any) { announce(m) }, func(_ *world, q url.Values) { q.Set("iss", "https://evil.example") }, "another authorization server"},
		{"another issuer, not promised", nil, func(_ *world, q url.Values) { q.Set("iss", "https://evil.example") }, "another authorization server"},
		{"issuer with a slash more", nil, func(w *world, q url.Values) { q.Set("iss", w.as.URL+"/") }, "another authorization server"},
		{"issuer twice", nil, func(w *world, q url.Values) { q["iss"] = []string{w.as.URL, "https://evil.example"} }, "something twice"},
		{"code twice", nil, func(_ *world, q url.Values) { q.Add("code", "b") }, "something twice"},
		{"no code", nil, func(_ *world, q url.Values) { q.Del("code") }, "no code"},
		{"refused", nil, func(_ *world, q url.Values) {
			q.Set("error", "access_denied")
			q.Set("error_description", "shown nowhere")
		}, "refuses the login: access_denied"},
		{"odd error", nil, func(_ *world, q url.Values) { q.Set("error", "\x1b[31m") }, "refuses the login"},
		{"error of another server", nil, func(_ *world, q url.Values) { q.Set("error", "access_denied"); q.Set("iss", "https://evil.example") }, "another authorization server"},
		{"no PKCE", func(_ *world, m map[string]any) { delete(m, "code_challenge_methods_supported") }, nil, "PKCE"},
		{"plain PKCE", func(_ *world, m map[string]any) { m["code_challenge_methods_supported"] = []string{"plain"} }, nil, "PKCE"},
		{"metadata of another issuer", func(_ *world, m map[string]any) { m["issuer"] = "https://evil.example" }, nil, "another issuer"},
		{"no registration", func(_ *world, m map[string]any) { delete(m, "registration_endpoint") }, nil, "client_id"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if tc.metadata != nil {
				w.metadata = func(m map[string]any) { tc.metadata(w, m) }
			}
			if tc.answer != nil {
				w.answer = func(q url.Values) { tc.answer(w, q) }
			}
			c := w.client(nil, nil)
			_, err := login(t, c)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if err != nil && (strings.Contains(err.Error(), "nowhere") || strings.ContainsRune(err.Error(), 0x1b)) {
				t.Errorf("the error shows what the server said: %q", err)
			}
			if tc.want != "" && w.seen("POST /token") > 0 {
				t.Error("the code was sent to the token endpoint")
			}
		})
	}
}

// A page that guesses the port of a login can neither answer nor end it.
func TestT7_ForeignAnswersAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(nil, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := c.Login(ctx, func(address string) error {
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		back, state := u.Query().Get("redirect_uri"), u.Query().Get("state")
		for _, tc := range []struct{ method, query, path, host string }{
			{"GET", "code=a&state=guessed", "", ""}, {"GET", "code=a", "", ""}, {"GET", "code=a&state=" + state, "/other", ""},
			{"POST", "code=a&state=" + state, "", ""}, {"GET", "code=a&state=" + state, "", "evil.example"}, {"GET", "%zz", "", ""},
		} {
			to, err := url.Parse(back)
			if err != nil {
				return err
			}
			to.RawQuery = tc.query
			if tc.path != "" {
				to.Path = tc.path
			}
			req, err := http.NewRequestWithContext(ctx, tc.method, to.String(), nil)
			if err != nil {
				return err
			}
			req.Host, req.Close = tc.host, true
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return err
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusBadRequest {
				t.Errorf("%+v: HTTP %d", tc, resp.StatusCode)
			}
		}
		return openURL(t)(address)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestLoginEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client(nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := c.Login(ctx, func(string) error { cancel(); return nil })
	if err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("got %v", err)
	}
	refused := errors.New("no browser")
	if _, err := c.Login(t.Context(), func(string) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}

func TestRegistrations(t *testing.T) {
	t.Parallel()
	const document = "https://client.example/lathe.json"
	for _, tc := range []struct {
		name     string
		metadata func(m map[string]any)
		conf     func(*Config)
		id       string
		header   bool // the client is in the header of the token request
		secret   string
		fails    string
	}{
		{name: "by itself", id: "registered"},
		{name: "by document", metadata: func(m map[string]any) { m["client_id_metadata_document_supported"] = true }, conf: func(c *Config) { c.MetadataURL = document }, id: document},
		{name: "no documents read", conf: func(c *Config) { c.MetadataURL = document }, id: "registered"},
		{name: "by hand, public", conf: func(c *Config) { c.ClientID = "mine" }, id: "mine"},
		{name: "by hand, basic", metadata: func(m map[string]any) {
			m["token_endpoint_auth_methods_supported"] = []string{"client_secret_post", "client_secret_basic"}
		},
			conf: func(c *Config) { c.ClientID, c.Secret = "mine", secret.New("s%:") }, id: "mine", header: true},
		{name: "by hand, post", metadata: func(m map[string]any) { m["token_endpoint_auth_methods_supported"] = []string{"client_secret_post"} },
			conf: func(c *Config) { c.ClientID, c.Secret = "mine", secret.New("s%:") }, id: "mine", secret: "s%:"},
		{name: "by hand, neither", metadata: func(m map[string]any) { m["token_endpoint_auth_methods_supported"] = []string{"tls_client_auth"} },
			conf: func(c *Config) { c.ClientID, c.Secret = "mine", secret.New("s%:") }, fails: "no client secret"},
		{name: "another issuer is configured", conf: func(c *Config) { c.Issuer = "https://as.example" }, fails: "oauth.issuer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.metadata = tc.metadata
			_, err := login(t, w.client(nil, tc.conf))
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			form, header := w.forms[0], w.headers[0]
			user, password, basic := (&http.Request{Header: header}).BasicAuth()
			if basic != tc.header || basic && (user != "mine" || password != "s%25%3A") {
				t.Errorf("basic %v %q %q", basic, user, password)
			}
			if w.authz.Get("client_id") != tc.id || !basic && form.Get("client_id") != tc.id || form.Get("client_secret") != tc.secret {
				t.Errorf("client %q, form %v", w.authz.Get("client_id"), form)
			}
		})
	}
}

// A second login at the same authorization server keeps the registration and what was granted; one
// at another has neither.
func TestSecondLogin(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	at := w
	w.resource = func(m map[string]any) { m["authorization_servers"] = []string{at.as.URL} }
	c := w.client(w.store(), nil)
	if _, err := call(t, c, w.mcp.URL+w.path); !needsLogin(err) {
		t.Fatal(err)
	}
	if _, err := login(t, c); err != nil {
		t.Fatal(err)
	}
	w.guard = func(rw http.ResponseWriter, _ *http.Request) bool {
		rw.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="notes:write"`)
		rw.WriteHeader(http.StatusForbidden)
		return false
	}
	if _, err := call(t, c, w.mcp.URL+w.path); !needsLogin(err) || !strings.Contains(err.Error(), "notes:write") {
		t.Fatalf("got %v", err)
	}
	if _, err := login(t, c); err != nil {
		t.Fatal(err)
	}
	if got := sorted(strings.Fields(w.authz.Get("scope"))); !slices.Equal(got, []string{"notes:read", "notes:write"}) || len(w.clients) != 1 {
		t.Errorf("scopes %v, %d registrations", got, len(w.clients))
	}
	// Now the server asks for what was granted: another login would be for nothing.
	if _, err := call(t, c, w.mcp.URL+w.path); err == nil || needsLogin(err) || !strings.Contains(err.Error(), "that its token has") {
		t.Errorf("got %v", err)
	}
	at = other
	other.mcp, w.guard = w.mcp, nil
	if _, err := login(t, c); err != nil {
		t.Fatal(err)
	}
	if len(other.clients) != 1 || strings.Contains(other.authz.Get("scope"), "write") {
		t.Errorf("%d registrations at the other, scopes %q", len(other.clients), other.authz.Get("scope"))
	}
}

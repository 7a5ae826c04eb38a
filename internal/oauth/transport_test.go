package oauth

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe/secret"
)

// loggedIn returns a client with a token.
func loggedIn(t *testing.T, w *world, store *Store) *Client {
	t.Helper()
	c := w.client(store, nil)
	if _, err := login(t, c); err != nil {
		t.Fatal(err)
	}
	return c
}

// A token goes to the server it was got for: not to another origin, nor to another server that has
// taken its name in the configuration.
func TestT8_TokensGoToTheirServerAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := w.store()
	c := loggedIn(t, w, store)
	var got http.Header
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Clone() }))
	t.Cleanup(other.Close)
	if _, err := call(t, c, other.URL+"/mcp"); err != nil {
		t.Fatal(err)
	}
	if got.Get("Authorization") != "" {
		t.Error("the token went to another origin")
	}
	moved := w.client(store, func(c *Config) { c.Server = other.URL + "/mcp" })
	if _, err := call(t, moved, other.URL+"/mcp"); err != nil {
		t.Fatal(err)
	}
	if got.Get("Authorization") != "" {
		t.Error("the token went to the server that has its name now")
	}
	renamed := w.client(store, func(c *Config) { c.Name = "other" })
	if _, err := call(t, renamed, w.mcp.URL+w.path); !needsLogin(err) {
		t.Errorf("another name: %v", err)
	}
}

func TestTokensAreRenewed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := w.store()
	c := loggedIn(t, w, store)
	w.revoke("token-1")
	if text, err := call(t, c, w.mcp.URL+w.path); text != "served hello" || err != nil {
		t.Fatalf("%q, %v", text, err)
	}
	form := w.forms[1]
	if form.Get("grant_type") != "refresh_token" || form.Get("resource") != w.mcp.URL+"/mcp" || form.Get("client_id") != "registered" {
		t.Errorf("the request: %v", form)
	}
	// Another client on the same file uses what the first has got, and renews it when it is old.
	late := w.client(store, nil)
	late.now = func() time.Time { return time.Now().Add(time.Hour) }
	if text, err := call(t, late, w.mcp.URL+w.path); text != "served hello" || err != nil || len(w.forms) != 3 {
		t.Errorf("%q, %v, %d token requests", text, err, len(w.forms))
	}
	// The first still has the old one in memory, whose refresh token is gone: it finds the new one.
	w.revoke("token-2")
	if text, err := call(t, c, w.mcp.URL+w.path); text != "served hello" || err != nil || len(w.forms) != 3 {
		t.Errorf("%q, %v, %d token requests", text, err, len(w.forms))
	}
}

func TestManyRequestsRenewOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := w.store()
	loggedIn(t, w, store)
	w.revoke("token-1")
	a, b := w.client(store, nil), w.client(store, nil)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if text, err := call(t, []*Client{a, b}[i%2], w.mcp.URL+w.path); text != "served hello" || err != nil {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
	all.Wait()
	if len(w.forms) != 2 {
		t.Errorf("%d token requests, want the login's and one more", len(w.forms))
	}
}

func TestRefusedRenewalAsksForALogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := loggedIn(t, w, w.store())
	w.mu.Lock()
	w.refresh = "revoked"
	w.mu.Unlock()
	w.revoke("token-1")
	_, err := call(t, c, w.mcp.URL+w.path)
	if !needsLogin(err) || strings.Contains(err.Error(), "refresh-1") || strings.Contains(err.Error(), "token-1") {
		t.Errorf("got %v", err)
	}
	if _, err := call(t, c, w.mcp.URL+w.path); !needsLogin(err) || len(w.forms) != 2 {
		t.Errorf("got %v, %d token requests", err, len(w.forms))
	}
}

// An authorization server that does not answer is no reason to throw a login away.
func TestFailedRenewalKeepsTheLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := w.store()
	c := loggedIn(t, w, store)
	w.token = func(url.Values, http.Header) (int, map[string]any) { return http.StatusServiceUnavailable, nil }
	w.revoke("token-1")
	if _, err := call(t, c, w.mcp.URL+w.path); err == nil || needsLogin(err) {
		t.Errorf("got %v", err)
	}
	w.token = nil
	if text, err := call(t, c, w.mcp.URL+w.path); text != "served hello" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// Whether a token is new or renewed: a server that refuses each is asked a few times and no more.
func TestRefusalsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := loggedIn(t, w, w.store())
	n := 0
	w.guard = func(rw http.ResponseWriter, _ *http.Request) bool {
		n++
		rw.Header().Set("WWW-Authenticate", `Bearer`)
		rw.WriteHeader(http.StatusUnauthorized)
		return false
	}
	if _, err := call(t, c, w.mcp.URL+w.path); !needsLogin(err) || n != 2 {
		t.Errorf("got %v after %d requests", err, n)
	}
}

// A challenge of another authentication scheme is returned to the caller.
func TestOtherRefusalsAreNotOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, tc := range []struct {
		status int
		field  string
	}{{401, `Basic realm="x"`}, {403, ""}, {403, `Bearer error="invalid_token"`}, {403, `Bearer error="insufficient_scope"`}, {404, "Bearer"}} {
		w.guard = func(rw http.ResponseWriter, _ *http.Request) bool {
			if tc.field != "" {
				rw.Header().Set("WWW-Authenticate", tc.field)
			}
			rw.WriteHeader(tc.status)
			return false
		}
		if _, err := call(t, w.client(nil, nil), w.mcp.URL+w.path); err == nil || !strings.HasPrefix(err.Error(), http.StatusText(tc.status)) && !strings.Contains(err.Error(), http.StatusText(tc.status)) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}

func TestLogout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := w.store()
	c := loggedIn(t, w, store)
	if len(c.Secrets()) != 2 {
		t.Errorf("%d secrets", len(c.Secrets()))
	}
	if err := c.Logout(); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, c, w.mcp.URL+w.path); !needsLogin(err) || len(c.Secrets()) != 0 {
		t.Errorf("got %v", err)
	}
}

// What a login in another process has brought in the meantime is not written over.
func TestALoginMeanwhileCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := w.store()
	c := loggedIn(t, w, store)
	w.revoke("token-1")
	w.token = func(url.Values, http.Header) (int, map[string]any) {
		if err := store.change("notes", func(stored *entry) *entry {
			e := *stored
			e.AccessToken, e.RefreshToken = "token-by-login", "refresh-by-login"
			return &e
		}); err != nil {
			t.Error(err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.live["token-by-login"] = true
		return http.StatusBadRequest, map[string]any{"error": "invalid_grant"}
	}
	if text, err := call(t, c, w.mcp.URL+w.path); text != "served hello" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if e, err := store.get("notes"); e.AccessToken != "token-by-login" || e.RefreshToken != "refresh-by-login" || err != nil {
		t.Errorf("the store has %+v, %v", e.Scopes, err)
	}
}

// Tokens that were got for one identity are not sent for another, though the entry of the store has its name.
func TestT8_TokensAreForOneIdentity(t *testing.T) {
	t.Parallel()
	for _, grant := range []Grant{AuthorizationCode, JWTBearer} {
		w := newWorld(t)
		store := w.store()
		as := func(identity string) *Client {
			return w.client(store, func(c *Config) {
				c.Identity = identity
				if c.Grant = grant; grant == JWTBearer {
					c.Assertion = secret.New("jwt-of-" + identity)
				}
			})
		}
		admin := as("admin")
		if grant == AuthorizationCode {
			if _, err := login(t, admin); err != nil {
				t.Fatal(err)
			}
		}
		if text, err := call(t, admin, w.mcp.URL+w.path); text != "served hello" || err != nil {
			t.Fatalf("%s: %q, %v", grant, text, err)
		}
		got, before := len(w.forms), w.seen("POST /mcp")
		if text, err := call(t, as("admin"), w.mcp.URL+w.path); text != "served hello" || err != nil || len(w.forms) != got || w.seen("POST /mcp") != before+1 {
			t.Errorf("%s: the same identity: %q, %v, %d token requests", grant, text, err, len(w.forms)-got)
		}
		text, err := call(t, as("user"), w.mcp.URL+w.path)
		switch grant {
		case AuthorizationCode:
			if !needsLogin(err) {
				t.Errorf("another identity: %q, %v", text, err)
			}
		default:
			if err != nil || len(w.forms) != got+1 || w.forms[got].Get("assertion") != "jwt-of-user" {
				t.Errorf("another identity: %q, %v, %d token requests", text, err, len(w.forms)-got)
			}
		}
	}
}

package oauth

import (
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
)

// A server that takes only tokens bound to a key (DPoP) gets none, and the error names the reason.
func TestT8_BoundTokensAreRefusedByName(t *testing.T) {
	t.Parallel()
	const reason = "bound to a key (DPoP), which this client does not support"
	t.Run("by a challenge", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.guard = func(rw http.ResponseWriter, _ *http.Request) bool {
			rw.Header().Set("WWW-Authenticate", `DPoP scope="notes:read"`)
			rw.WriteHeader(http.StatusUnauthorized)
			return false
		}
		if _, err := call(t, w.client(nil, nil), w.mcp.URL+w.path); err == nil || needsLogin(err) || !strings.Contains(err.Error(), reason) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("by metadata", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.resource = func(m map[string]any) { m["dpop_bound_access_tokens_required"] = true }
		if _, err := login(t, w.client(nil, nil)); err == nil || !strings.Contains(err.Error(), reason) || w.seen("POST /token") > 0 {
			t.Errorf("got %v, %d token requests", err, w.seen("POST /token"))
		}
	})
	t.Run("by the type of the token", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.token = func(url.Values, http.Header) (int, map[string]any) {
			return http.StatusOK, map[string]any{"access_token": "a", "token_type": "DPoP"}
		}
		if _, err := login(t, w.client(nil, nil)); err == nil || !strings.Contains(err.Error(), "of a type") {
			t.Errorf("got %v", err)
		}
	})
}

// A server that offers both kinds of token gets one that is not bound.
func TestServersThatOfferBoundTokensGetOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := loggedIn(t, w, w.store())
	w.revoke("token-1")
	offers := true
	w.guard = func(rw http.ResponseWriter, _ *http.Request) bool {
		if offers {
			offers = false
			rw.Header().Add("WWW-Authenticate", `DPoP algs="ES256"`)
			rw.Header().Add("WWW-Authenticate", `Bearer error="invalid_token"`)
			rw.WriteHeader(http.StatusUnauthorized)
		}
		return !offers && rw.Header().Get("WWW-Authenticate") == ""
	}
	if text, err := call(t, c, w.mcp.URL+w.path); text != "served hello" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// A bound token that a former version stored is not sent without its proof: a login replaces it.
func TestT8_StoredBoundTokensAreNotSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := w.store()
	w.live["token-bound"] = true
	text := `{"version":1,"servers":{"notes":{"url":"` + w.mcp.URL + w.path + `","client":{"id":"c","method":"none"},` +
		`"access_token":"token-bound","refresh_token":"refresh-bound","bound":true,"key":"a2V5"}}}`
	if err := os.WriteFile(store.file.Path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := w.client(store, nil)
	if ready, err := c.Ready(); ready || err != nil {
		t.Errorf("ready %v, %v", ready, err)
	}
	if _, err := call(t, c, w.mcp.URL+w.path); !needsLogin(err) || w.seen("POST /token") > 0 {
		t.Errorf("got %v, %d token requests", err, w.seen("POST /token"))
	}
	if _, err := login(t, c); err != nil {
		t.Fatal(err)
	}
	if text, err := call(t, c, w.mcp.URL+w.path); text != "served hello" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if b, err := os.ReadFile(store.file.Path); err != nil || strings.Contains(string(b), "bound") {
		t.Errorf("the file still has the bound token: %v", err)
	}
}

package oauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// A proof is what a server reads of one.
type proof struct {
	Typ, Alg string
	JWK      struct{ Kty, Crv, X, Y, D string }
	Jti      string
	Htm      string
	Htu      string
	Ath      string
	Nonce    string
}

func readProof(t *testing.T, text string) proof {
	t.Helper()
	var p proof
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		t.Errorf("a proof of %d parts", len(parts))
		return p
	}
	number := func(s string) *big.Int {
		b, err := base64.RawURLEncoding.DecodeString(s)
		if err != nil || len(b) != 32 {
			t.Errorf("a coordinate of %d bytes, %v", len(b), err)
		}
		return new(big.Int).SetBytes(b)
	}
	for _, part := range parts[:2] {
		b, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil || json.Unmarshal(b, &p) != nil {
			t.Errorf("a proof that cannot be read: %v", err)
		}
	}
	sig, err := base64.RawURLEncoding.DecodeString(parts[2])
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	key := &ecdsa.PublicKey{Curve: elliptic.P256(), X: number(p.JWK.X), Y: number(p.JWK.Y)} //nolint:staticcheck // what a server is given are coordinates
	if err != nil || p.Typ != "dpop+jwt" || p.Alg != "ES256" || p.JWK.D != "" || !verifyEC(key, digest[:], sig) {
		t.Errorf("a proof that is not good: %+v, %v", p, err)
	}
	return p
}

// bind has the world give and want tokens that are bound to a key, with a nonce on each side.
func (w *world) bind() (proofs func() []proof) {
	var mu sync.Mutex
	var seen []proof
	w.metadata = func(m map[string]any) { m["dpop_signing_alg_values_supported"] = []string{"ES256"} }
	w.token = func(form url.Values, h http.Header) (int, map[string]any) {
		p := readProof(w.t, h.Get("DPoP"))
		mu.Lock()
		seen = append(seen, p)
		mu.Unlock()
		if p.Ath != "" || p.Htm != http.MethodPost || p.Htu != w.as.URL+"/token" {
			w.t.Errorf("the proof at the token endpoint: %+v", p)
		}
		if p.Nonce != "as-nonce" {
			return http.StatusBadRequest, map[string]any{"error": useNonce}
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		m := w.issue()
		m["token_type"] = "DPoP"
		return http.StatusOK, m
	}
	w.guard = func(rw http.ResponseWriter, r *http.Request) bool {
		token, bound := strings.CutPrefix(r.Header.Get("Authorization"), "DPoP ")
		w.mu.Lock()
		live := w.live[token]
		w.mu.Unlock()
		if !bound || !live {
			rw.Header().Set("WWW-Authenticate", "DPoP scope=\"notes:read\"")
			rw.WriteHeader(http.StatusUnauthorized)
			return false
		}
		p := readProof(w.t, r.Header.Get("DPoP"))
		mu.Lock()
		seen = append(seen, p)
		mu.Unlock()
		sum := sha256.Sum256([]byte(token))
		if p.Ath != base64.RawURLEncoding.EncodeToString(sum[:]) || p.Htm != http.MethodPost || p.Htu != w.mcp.URL+w.path {
			w.t.Errorf("the proof at the server: %+v", p)
		}
		if p.Nonce != "rs-nonce" {
			rw.Header().Set("WWW-Authenticate", `DPoP error="use_dpop_nonce"`)
			rw.Header().Set(dpopNonce, "rs-nonce")
			rw.WriteHeader(http.StatusUnauthorized)
			return false
		}
		r.Header.Set("Authorization", "Bearer "+token)
		return true
	}
	return func() []proof {
		mu.Lock()
		defer mu.Unlock()
		return append([]proof(nil), seen...)
	}
}

func TestT8_BoundTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	proofs := w.bind()
	store := w.store()
	c := w.client(store, nil)
	if _, err := call(t, c, w.mcp.URL+w.path); !needsLogin(err) {
		t.Fatalf("before a login: %v", err)
	}
	if _, err := login(t, c); err != nil {
		t.Fatal(err)
	}
	late := w.client(store, nil) // reads the key from the store
	for _, c := range []*Client{c, late} {
		if text, err := call(t, c, w.mcp.URL+w.path+"?q=1"); text != "served hello" || err != nil {
			t.Fatalf("%q, %v", text, err)
		}
	}
	w.revoke("token-1")
	if text, err := call(t, c, w.mcp.URL+w.path); text != "served hello" || err != nil {
		t.Errorf("after it was renewed: %q, %v", text, err)
	}
	all, ids := proofs(), map[string]bool{}
	for _, p := range all {
		if ids[p.Jti] || p.JWK != all[0].JWK {
			t.Errorf("a proof is used twice, or of another key: %+v", p)
		}
		ids[p.Jti] = true
	}
	if len(all) < 7 {
		t.Errorf("%d proofs", len(all))
	}
}

func TestTokensThatAreNotBoundAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.resource = func(m map[string]any) { m["dpop_bound_access_tokens_required"] = true }
	if _, err := login(t, w.client(nil, nil)); err == nil || !strings.Contains(err.Error(), "bound to a key") {
		t.Errorf("got %v", err)
	}
	w.bind()
	w.token = func(url.Values, http.Header) (int, map[string]any) {
		return http.StatusOK, map[string]any{"access_token": "a", "token_type": "Bearer"}
	}
	if _, err := login(t, w.client(nil, nil)); err == nil || !strings.Contains(err.Error(), "of a type") {
		t.Errorf("got %v", err)
	}
}

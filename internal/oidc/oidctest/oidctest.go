// Package oidctest provides an OpenID Connect issuer on a loopback address for tests.
package oidctest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// An Issuer publishes keys and signs tokens with them. Its methods may be called from several goroutines at once.
type Issuer struct {
	URL string
	t   testing.TB

	mu      sync.Mutex
	keys    []signer
	made    int
	down    int // status code of all responses; 0: normal responses
	fetches int
	handle  map[string]http.HandlerFunc
}

type signer struct {
	id      string
	alg     jose.SignatureAlgorithm
	private crypto.Signer
}

// New starts an issuer with one key for ES256. The issuer stops at the end of the test.
func New(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{t: t, handle: map[string]http.HandlerFunc{}}
	i.Rotate()
	srv := httptest.NewServer(http.HandlerFunc(i.serve))
	t.Cleanup(srv.Close)
	i.URL = srv.URL
	return i
}

// Rotate replaces the keys of the issuer by a new one for ES256 and returns the id of the new key.
func (i *Issuer) Rotate() (id string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	return i.Use(jose.ES256, private)
}

// RotateEd25519 replaces the keys of the issuer by a new one for EdDSA and returns the id of the new key.
func (i *Issuer) RotateEd25519() (id string) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	return i.Use(jose.EdDSA, private)
}

// Use replaces the keys of the issuer by a private key and returns the id of that key.
func (i *Issuer) Use(alg jose.SignatureAlgorithm, private crypto.Signer) (id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.made++
	id = fmt.Sprintf("key-%d", i.made)
	i.keys = []signer{{id, alg, private}}
	return id
}

// Down makes the issuer answer every request with the status code; 0 restores normal responses.
func (i *Issuer) Down(status int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = status
}

// Fetches returns the number of requests for the keys, and of requests that were refused after Down.
func (i *Issuer) Fetches() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fetches
}

// Handle adds a handler for a path.
func (i *Issuer) Handle(path string, h http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handle[path] = h
}

func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	h := i.handle[r.URL.Path]
	i.mu.Unlock()
	if h != nil {
		h(w, r)
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.down != 0 {
		i.fetches++
		w.WriteHeader(i.down)
		return
	}
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		i.write(w, map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token"})
	case "/keys":
		i.fetches++
		set := jose.JSONWebKeySet{}
		for _, k := range i.keys {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.private.Public(), KeyID: k.id, Algorithm: string(k.alg), Use: "sig"})
		}
		i.write(w, set)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (i *Issuer) write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		i.t.Error(err)
	}
}

// Sign returns a token with the claims, signed with the key of the issuer.
func (i *Issuer) Sign(claims map[string]any) string {
	i.mu.Lock()
	k := i.keys[0]
	i.mu.Unlock()
	return SignWith(i.t, k.alg, k.private, k.id, claims)
}

// SignWith returns a token that is signed with any key. The header has no key id if id is "".
func SignWith(t testing.TB, alg jose.SignatureAlgorithm, key any, id string, claims map[string]any) string {
	t.Helper()
	opts := &jose.SignerOptions{}
	if id != "" {
		opts = opts.WithHeader("kid", id)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, opts)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := s.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

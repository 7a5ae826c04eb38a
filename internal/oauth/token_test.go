package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/lathe-run/lathe/secret"
)

func TestMachinesGetTokensByThemselves(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		methods []string
		conf    func(*world, *Config)
		forms   []map[string]string // of the token requests
		basic   bool
	}{
		{"client credentials", []string{"client_secret_basic"}, func(_ *world, c *Config) {
			c.Grant, c.ClientID, c.Secret = ClientCredentials, "machine", secret.New("s")
		}, []map[string]string{{"grant_type": "client_credentials", "scope": "notes:read", "client_secret": ""}}, true},
		{"client credentials in the form", []string{"client_secret_post"}, func(_ *world, c *Config) {
			c.Grant, c.ClientID, c.Secret, c.Scopes = ClientCredentials, "machine", secret.New("s"), []string{"all"}
		}, []map[string]string{{"grant_type": "client_credentials", "scope": "all", "client_id": "machine", "client_secret": "s"}}, false},
		{"client credentials without scopes", []string{"client_secret_post"}, func(_ *world, c *Config) {
			c.Grant, c.ClientID, c.Secret, c.Scopes = ClientCredentials, "machine", secret.New("s"), []string{}
		}, []map[string]string{{"grant_type": "client_credentials", "scope": ""}}, false},
		{"an assertion", []string{"none"}, func(_ *world, c *Config) {
			c.Grant, c.ClientID, c.Assertion = JWTBearer, "workload", secret.New("jwt")
		}, []map[string]string{{"grant_type": grantJWT, "assertion": "jwt", "client_id": "workload"}}, false},
		{"an identity token", []string{"client_secret_basic"}, func(w *world, c *Config) {
			c.Grant, c.ClientID, c.Secret = CrossApp, "app", secret.New("s")
			c.Provider = Provider{TokenEndpoint: w.as.URL + "/token", ClientID: "idp-client", IDToken: secret.New("id-token")}
		}, []map[string]string{
			{"grant_type": oauthex.GrantTypeTokenExchange, "subject_token": "id-token", "requested_token_type": oauthex.TokenTypeIDJAG, "client_id": "idp-client"},
			{"grant_type": grantJWT, "assertion": "jag", "client_id": ""},
		}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.metadata = func(m map[string]any) {
				m["token_endpoint_auth_methods_supported"] = tc.methods
				delete(m, "code_challenge_methods_supported")
			}
			w.token = func(form url.Values, _ http.Header) (int, map[string]any) {
				if form.Get("grant_type") == oauthex.GrantTypeTokenExchange {
					if form.Get("audience") != w.as.URL {
						t.Errorf("audience %q", form.Get("audience"))
					}
					return 200, map[string]any{"access_token": "jag", "issued_token_type": oauthex.TokenTypeIDJAG, "token_type": "N_A"}
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				return 200, w.issue()
			}
			c := w.client(w.store(), func(c *Config) { tc.conf(w, c) })
			for range 2 { // the second uses the token of the first
				if text, err := call(t, c, w.mcp.URL+w.path); text != "served hello" || err != nil {
					t.Fatalf("%q, %v", text, err)
				}
			}
			if len(w.forms) != len(tc.forms) {
				t.Fatalf("token requests: %v", w.forms)
			}
			for i, want := range tc.forms {
				for name, value := range want {
					if got := w.forms[i].Get(name); got != value {
						t.Errorf("request %d: %s is %q, want %q", i, name, got, value)
					}
				}
				if w.forms[i].Get("resource") != w.mcp.URL+"/mcp" {
					t.Errorf("request %d: resource %q", i, w.forms[i].Get("resource"))
				}
			}
			if _, _, basic := (&http.Request{Header: w.headers[len(w.headers)-1]}).BasicAuth(); basic != tc.basic {
				t.Errorf("basic %v", basic)
			}
			w.revoke("token-1")
			if text, err := call(t, c, w.mcp.URL+w.path); text != "served hello" || err != nil {
				t.Errorf("after the token was revoked: %q, %v", text, err)
			}
			if _, err := login(t, c); err == nil {
				t.Error("a person could log in")
			}
		})
	}
}

func TestMachinesWidenTheirTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.metadata = func(m map[string]any) { delete(m, "token_endpoint_auth_methods_supported") }
	w.token = func(form url.Values, _ http.Header) (int, map[string]any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return 200, w.issue()
	}
	wide := "notes:write"
	w.guard = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "" || strings.Contains(w.forms[len(w.forms)-1].Get("scope"), wide) && wide != "more" {
			return true
		}
		rw.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+wide+`"`)
		rw.WriteHeader(http.StatusForbidden)
		return false
	}
	c := w.client(nil, func(c *Config) { c.Grant, c.ClientID, c.Secret = ClientCredentials, "machine", secret.New("s") })
	if text, err := call(t, c, w.mcp.URL+w.path); text != "served hello" || err != nil {
		t.Fatalf("%q, %v", text, err)
	}
	if got := w.forms[1].Get("scope"); got != "notes:write notes:read" {
		t.Errorf("the second token has %q", got)
	}
	wide = "more"
	if _, err := call(t, c, w.mcp.URL+w.path); err == nil || !strings.Contains(err.Error(), "that its token has") || len(w.forms) != 3 {
		t.Errorf("got %v after %d token requests", err, len(w.forms))
	}
}

func TestT8_AssertionsAreForOneServer(t *testing.T) {
	t.Parallel()
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p521, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		alg string
		key crypto.Signer
		ok  func(text string, sig []byte) bool
	}{
		{"ES256", p256, func(text string, sig []byte) bool {
			d := sha256.Sum256([]byte(text))
			return verifyEC(&p256.PublicKey, d[:], sig)
		}},
		{"ES512", p521, func(text string, sig []byte) bool {
			d := sha512.Sum512([]byte(text))
			return verifyEC(&p521.PublicKey, d[:], sig)
		}},
		{"RS256", rsaKey, func(text string, sig []byte) bool {
			d := sha256.Sum256([]byte(text))
			return rsa.VerifyPKCS1v15(&rsaKey.PublicKey, crypto.SHA256, d[:], sig) == nil
		}},
		{"EdDSA", ed, func(text string, sig []byte) bool {
			return ed25519.Verify(ed.Public().(ed25519.PublicKey), []byte(text), sig)
		}},
	} {
		w := newWorld(t)
		w.metadata = func(m map[string]any) {
			m["token_endpoint_auth_methods_supported"] = []string{"private_key_jwt"}
			m["token_endpoint_auth_signing_alg_values_supported"] = []string{tc.alg}
		}
		der, err := x509.MarshalPKCS8PrivateKey(tc.key)
		if err != nil {
			t.Fatal(err)
		}
		text := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
		c := w.client(nil, func(c *Config) { c.Grant, c.ClientID, c.PrivateKey = ClientCredentials, "machine", secret.New(text) })
		if got, err := call(t, c, w.mcp.URL+w.path); got != "served hello" || err != nil {
			t.Fatalf("%s: %q, %v", tc.alg, got, err)
		}
		parts := strings.Split(w.forms[0].Get("client_assertion"), ".")
		if len(parts) != 3 {
			t.Fatalf("%s: %d parts", tc.alg, len(parts))
		}
		var head struct{ Alg string }
		var claims struct {
			Iss, Sub, Aud, Jti string
			Iat, Exp           int64
		}
		for i, v := range []any{&head, &claims} {
			b, err := base64.RawURLEncoding.DecodeString(parts[i])
			if err != nil || json.Unmarshal(b, v) != nil {
				t.Fatalf("%s: part %d: %v", tc.alg, i, err)
			}
		}
		sig, err := base64.RawURLEncoding.DecodeString(parts[2])
		if err != nil || !tc.ok(parts[0]+"."+parts[1], sig) {
			t.Errorf("%s: the signature is not good: %v", tc.alg, err)
		}
		if head.Alg != tc.alg || claims.Iss != "machine" || claims.Sub != "machine" || claims.Aud != w.as.URL || claims.Jti == "" || claims.Exp-claims.Iat != 60 {
			t.Errorf("%s: %+v %+v", tc.alg, head, claims)
		}
	}
}

func verifyEC(key *ecdsa.PublicKey, digest, sig []byte) bool {
	half := len(sig) / 2
	return ecdsa.Verify(key, digest, new(big.Int).SetBytes(sig[:half]), new(big.Int).SetBytes(sig[half:]))
}

func TestOddTokensAreRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		m    map[string]any
		want string
	}{
		{map[string]any{"access_token": "a", "token_type": "mac"}, "type"},
		{map[string]any{"access_token": "a"}, "type"},
		{map[string]any{"token_type": "bearer"}, "no token"},
		{map[string]any{"access_token": "a\r\nX: y", "token_type": "bearer"}, "no token"},
		{map[string]any{"access_token": strings.Repeat("a", maxTokenBytes+1), "token_type": "bearer"}, "no token"},
		{map[string]any{"access_token": 7, "token_type": "bearer"}, "no token"},
	} {
		w := newWorld(t)
		w.token = func(url.Values, http.Header) (int, map[string]any) { return 200, tc.m }
		if _, err := login(t, w.client(nil, nil)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %q", err, tc.want)
		}
	}
}

// Nothing that is secret stands in an error, nor in what fmt makes of a client.
func TestT21_TokensDoNotPrint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := w.store()
	c := w.client(store, func(c *Config) { c.ClientID, c.Secret = "mine", secret.New("client-secret-1") })
	w.metadata = func(m map[string]any) { delete(m, "token_endpoint_auth_methods_supported") }
	if _, err := login(t, c); err != nil {
		t.Fatal(err)
	}
	w.token = func(form url.Values, _ http.Header) (int, map[string]any) {
		return 400, map[string]any{"error": "oops " + form.Get("refresh_token"), "error_description": form.Get("refresh_token")}
	}
	w.revoke("token-1")
	_, err := call(t, c, w.mcp.URL+w.path)
	for _, s := range []string{"token-1", "refresh-1", "client-secret-1", "the-code"} {
		if strings.Contains(fmt.Sprint(err), s) {
			t.Errorf("the error shows %q: %v", s, err)
		}
		if strings.Contains(fmt.Sprintf("%v %+v", c.Secrets(), c.conf), s) {
			t.Errorf("a secret prints: %q", s)
		}
	}
}

func TestT21_StoreIsPrivate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := w.store()
	c := loggedIn(t, w, store)
	info, err := os.Stat(store.file.Path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	fresh := func() error {
		_, err := call(t, w.client(NewStore(store.file.Path), nil), w.mcp.URL+w.path)
		return err
	}
	if err := fresh(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(store.file.Path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := fresh(); err == nil || !strings.Contains(err.Error(), "chmod 600") || !errors.As(err, new(*StoreError)) {
		t.Errorf("a file that others may read: %v", err)
	}
	if err := c.Logout(); !errors.As(err, new(*StoreError)) {
		t.Error("a file that others may read is written")
	}
	if err := os.Chmod(store.file.Path, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`{`, `{"version":2}`, `[]`, `{"version":1,"version":1}`, ""} {
		if err := os.WriteFile(store.file.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := fresh(); err == nil || !strings.Contains(err.Error(), "log in again") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The assertion and the identity token are read for each request, because they may be replaced in between.
func TestIdentitiesAreRead(t *testing.T) {
	t.Parallel()
	for grant, field := range map[Grant]string{JWTBearer: "assertion", CrossApp: "subject_token"} {
		w := newWorld(t)
		w.metadata = func(m map[string]any) { delete(m, "token_endpoint_auth_methods_supported") }
		w.token = func(form url.Values, _ http.Header) (int, map[string]any) {
			if form.Get("grant_type") == oauthex.GrantTypeTokenExchange {
				return 200, map[string]any{"access_token": "jag", "issued_token_type": oauthex.TokenTypeIDJAG, "token_type": "N_A"}
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			return 200, w.issue()
		}
		now, gone := "first", false
		c := w.client(w.store(), func(c *Config) {
			c.Grant, c.ClientID, c.Assertion = grant, "workload", secret.New("first")
			c.Provider = Provider{TokenEndpoint: w.as.URL + "/token", IDToken: secret.New("first")}
			c.Fresh = func() (assertion, idToken secret.Secret, err error) {
				if gone {
					return assertion, idToken, errors.New("canary: no such file")
				}
				return secret.New(now), secret.New(now), nil
			}
		})
		for _, now = range []string{"first", "second"} {
			at := len(w.forms)
			if text, err := call(t, c, w.mcp.URL+w.path); text != "served hello" || err != nil {
				t.Fatalf("%s: %q, %v", grant, text, err)
			}
			if got := w.forms[at].Get(field); got != now {
				t.Errorf("%s: %s is %q, want %q", grant, field, got, now)
			}
			w.revoke("token-1")
		}
		w.revoke("token-2")
		gone = true
		if _, err := call(t, c, w.mcp.URL+w.path); err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("%s: %v", grant, err)
		}
	}
}

package oidc_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/lathe-run/lathe/internal/oidc"
	"github.com/lathe-run/lathe/internal/oidc/oidctest"
)

// A clock is one that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

const start = 1_800_000_000

func setUp(t *testing.T, change func(*oidc.Options)) (*oidctest.Issuer, *oidc.Provider, *clock) {
	t.Helper()
	issuer, c := oidctest.New(t), &clock{at: time.Unix(start, 0)}
	opts := &oidc.Options{Issuer: issuer.URL, Audience: []string{"lathe", "other-name"}, Skew: 30 * time.Second, Now: c.now}
	if change != nil {
		change(opts)
	}
	p, err := oidc.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return issuer, p, c
}

// claims are those of a valid token, with changes; nil removes one.
func claims(i *oidctest.Issuer, changes map[string]any) map[string]any {
	all := map[string]any{"iss": i.URL, "sub": "ann", "aud": "lathe", "exp": start + 3600, "iat": start}
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

func TestVerifyChecksEachClaim(t *testing.T) {
	t.Parallel()
	issuer, p, _ := setUp(t, nil)
	for name, c := range map[string]struct {
		changes map[string]any
		want    oidc.Kind
	}{
		"valid":                        {nil, ""},
		"one audience of several":      {map[string]any{"aud": []string{"x", "other-name"}}, ""},
		"fractions of a second":        {map[string]any{"exp": start + 0.5}, ""},
		"expired within the skew":      {map[string]any{"exp": start - 29}, ""},
		"valid soon, within the skew":  {map[string]any{"nbf": start + 29}, ""},
		"an end that is never":         {map[string]any{"exp": 1e300}, ""},
		"expired":                      {map[string]any{"exp": start - 30}, oidc.Expired},
		"expired at the beginning":     {map[string]any{"exp": -5}, oidc.Expired},
		"not valid yet":                {map[string]any{"nbf": start + 31}, oidc.NotYetValid},
		"no end":                       {map[string]any{"exp": nil}, oidc.Malformed},
		"an end that is text":          {map[string]any{"exp": "2030-01-01"}, oidc.Malformed},
		"a beginning that is a list":   {map[string]any{"nbf": []int{1}}, oidc.Malformed},
		"another audience":             {map[string]any{"aud": "lathe2"}, oidc.Audience},
		"no audience":                  {map[string]any{"aud": nil}, oidc.Audience},
		"an audience that is null":     {map[string]any{"aud": []any{nil, "lathe"}}, oidc.Audience},
		"another issuer":               {map[string]any{"iss": "https://evil.test"}, oidc.Issuer},
		"an issuer with a slash more":  {map[string]any{"iss": issuer.URL + "/"}, oidc.Issuer},
		"no issuer":                    {map[string]any{"iss": nil}, oidc.Issuer},
		"an issuer in another case":    {map[string]any{"iss": nil, "ISS": issuer.URL}, oidc.Issuer},
		"no subject":                   {map[string]any{"sub": nil}, oidc.Subject},
		"a subject in another case":    {map[string]any{"sub": nil, "Sub": "ann"}, oidc.Subject},
		"a number for a subject":       {map[string]any{"sub": 7}, oidc.Subject},
		"a long subject":               {map[string]any{"sub": strings.Repeat("a", 256)}, oidc.Subject},
		"a subject of 255 characters":  {map[string]any{"sub": strings.Repeat("a", 255)}, ""},
		"a subject with a line break":  {map[string]any{"sub": "ann\nbob"}, oidc.Subject},
		"a subject with letters to be": {map[string]any{"sub": "аnn"}, oidc.Subject}, // its first letter is Cyrillic
	} {
		tok, err := p.Verify(t.Context(), issuer.Sign(claims(issuer, c.changes)))
		if oidc.KindOf(err) != c.want || (err == nil) != (c.want == "") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err == nil && (tok.Issuer != issuer.URL || tok.Subject == "") {
			t.Errorf("%s: %+v", name, tok)
		}
		if err != nil && strings.Contains(err.Error(), "ann") {
			t.Errorf("%s: the error has the subject in it: %v", name, err)
		}
	}
}

func jwk(t *testing.T, key crypto.PublicKey) string {
	t.Helper()
	b, err := json.Marshal(jose.JSONWebKey{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A token that is signed with HMAC under a public key of the issuer is refused, whichever form of the key is the secret.
func TestVerifyRefusesHMACUnderAPublicKey(t *testing.T) {
	t.Parallel()
	issuer, p, _ := setUp(t, nil)
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	id := issuer.Use(jose.RS256, private)
	der, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range [][]byte{der, x509.MarshalPKCS1PublicKey(&private.PublicKey), []byte(jwk(t, &private.PublicKey))} {
		for _, alg := range []jose.SignatureAlgorithm{jose.HS256, jose.HS512} {
			if _, err := p.Verify(t.Context(), oidctest.SignWith(t, alg, secret, id, claims(issuer, nil))); oidc.KindOf(err) != oidc.Algorithm {
				t.Errorf("%s: %v", alg, err)
			}
		}
	}
	if _, err := p.Verify(t.Context(), issuer.Sign(claims(issuer, nil))); err != nil {
		t.Error("RS256:", err)
	}
}

func TestVerifyAcceptsTheAllowedAlgorithmsAlone(t *testing.T) {
	t.Parallel()
	issuer, p, c := setUp(t, func(o *oidc.Options) { o.Algorithms = []string{"EdDSA"} })
	issuer.RotateEd25519()
	if _, err := p.Verify(t.Context(), issuer.Sign(claims(issuer, nil))); err != nil {
		t.Error("EdDSA:", err)
	}
	issuer.Rotate()
	if _, err := p.Verify(t.Context(), issuer.Sign(claims(issuer, nil))); oidc.KindOf(err) != oidc.Algorithm {
		t.Error("ES256:", err)
	}
	c.add(time.Minute)
	if err := p.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "publishes no key for EdDSA") {
		t.Error("keys of another algorithm:", err)
	}
}

// A key that the issuer has made after the keys were fetched is found, at most every 10 s; one that it has removed is not
// used when the keys are fetched again.
func TestVerifyFollowsRotation(t *testing.T) {
	t.Parallel()
	issuer, p, c := setUp(t, nil)
	first := issuer.Sign(claims(issuer, nil))
	for range 3 {
		if _, err := p.Verify(t.Context(), first); err != nil {
			t.Fatal(err)
		}
	}
	if n := issuer.Fetches(); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
	issuer.Rotate()
	second := issuer.Sign(claims(issuer, nil))
	for range 5 {
		if _, err := p.Verify(t.Context(), second); oidc.KindOf(err) != oidc.UnknownKey {
			t.Fatal("within 10 s of the last fetch:", err)
		}
	}
	if n := issuer.Fetches(); n != 1 {
		t.Errorf("the keys were fetched %d times within 10 s", n)
	}
	c.add(10 * time.Second)
	if _, err := p.Verify(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if n := issuer.Fetches(); n != 2 {
		t.Errorf("the keys were fetched %d times, want 2", n)
	}
	if _, err := p.Verify(t.Context(), first); oidc.KindOf(err) != oidc.UnknownKey {
		t.Error("a key that was removed:", err)
	}
	c.add(time.Hour)
	issuer.Rotate()
	if _, err := p.Verify(t.Context(), issuer.Sign(claims(issuer, map[string]any{"exp": start + 9000}))); err != nil {
		t.Error("after an hour:", err)
	}
}

// Tokens of other issuers and with unknown keys cannot make the server flood the issuer.
func TestUnknownKeysAreFetchedOnceForMany(t *testing.T) {
	t.Parallel()
	issuer, p, _ := setUp(t, nil)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	foreign := issuer.Sign(claims(issuer, map[string]any{"iss": "https://evil.test"}))
	if _, err := p.Verify(t.Context(), foreign); oidc.KindOf(err) != oidc.Issuer || issuer.Fetches() != 0 {
		t.Errorf("a token of another issuer: %v, %d fetches", err, issuer.Fetches())
	}
	var all sync.WaitGroup
	for n := range 50 {
		forged := oidctest.SignWith(t, jose.ES256, private, fmt.Sprintf("made-up-%d", n), claims(issuer, nil))
		all.Go(func() {
			if _, err := p.Verify(t.Context(), forged); oidc.KindOf(err) != oidc.UnknownKey {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := issuer.Fetches(); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

// An issuer that is down at the start makes tokens unverifiable, not invalid; one that goes down later leaves its keys
// usable for a day.
func TestVerifyWhileTheIssuerIsDown(t *testing.T) {
	t.Parallel()
	issuer, p, c := setUp(t, nil)
	token := issuer.Sign(claims(issuer, map[string]any{"exp": start + 1e6}))
	issuer.Down(http.StatusBadGateway)
	for range 3 {
		_, err := p.Verify(t.Context(), token)
		if oidc.KindOf(err) != oidc.Unavailable || !strings.Contains(err.Error(), "502") {
			t.Fatal(err)
		}
	}
	if n := issuer.Fetches(); n != 1 {
		t.Errorf("%d attempts within 10 s", n)
	}
	issuer.Down(0)
	c.add(10 * time.Second)
	if _, err := p.Verify(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	issuer.Down(http.StatusInternalServerError)
	fetched := issuer.Fetches()
	for range 23 {
		c.add(time.Hour)
		for range 3 {
			if _, err := p.Verify(t.Context(), token); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "500") { // of the fetch in the background
			t.Fatal(err)
		}
	}
	if n := issuer.Fetches() - fetched; n != 23 {
		t.Errorf("%d attempts in 23 hours with requests, want 23", n)
	}
	c.add(time.Hour)
	if _, err := p.Verify(t.Context(), token); oidc.KindOf(err) != oidc.Unavailable || !strings.Contains(err.Error(), "24h") {
		t.Error("after a day:", err)
	}
	issuer.Down(0)
	c.add(time.Minute)
	if _, err := p.Verify(t.Context(), token); err != nil {
		t.Error("back again:", err)
	}
}

func TestFetchRefusesDocuments(t *testing.T) {
	t.Parallel()
	const discovery, keys = "/.well-known/openid-configuration", "/keys"
	for name, c := range map[string]struct {
		path, body, want string
	}{
		"another issuer's":      {discovery, `{"issuer":"https://evil.test","jwks_uri":"https://evil.test/keys"}`, "another issuer"},
		"keys by http":          {discovery, `{"issuer":"ISSUER","jwks_uri":"http://keys.example.com/keys"}`, "neither https nor on this machine"},
		"no address":            {discovery, `{"issuer":"ISSUER"}`, "no jwks_uri"},
		"the issuer twice":      {discovery, `{"issuer":"ISSUER","issuer":"ISSUER","jwks_uri":"ISSUER/keys"}`, "not a JSON object"},
		"no JSON":               {discovery, `<html>`, "not a JSON object"},
		"no keys":               {keys, `{"keys":[]}`, "publishes no key"},
		"keys that are no list": {keys, `{"keys":{}}`, "not a JWKS"},
		"symmetric keys":        {keys, `{"keys":[{"kty":"oct","k":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY","kid":"key-1"}]}`, "publishes no key"},
		"too many keys":         {keys, `{"keys":[` + strings.Repeat(`{},`, 64) + `{}]}`, "more than 64"},
		"a long document":       {keys, `{"keys":"` + strings.Repeat("x", 1<<20) + `"}`, "larger than"},
	} {
		issuer, p, _ := setUp(t, nil)
		issuer.Handle(c.path, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(strings.ReplaceAll(c.body, "ISSUER", issuer.URL)))
		})
		if err := p.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	issuer, p, _ := setUp(t, nil)
	issuer.Handle(keys, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, issuer.URL+"/elsewhere", http.StatusFound)
	})
	if err := p.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "status 302") {
		t.Error("a redirect:", err)
	}
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err == nil {
		issuer, p, _ := setUp(t, nil)
		issuer.Use(jose.RS256, weak)
		if err := p.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "publishes no key") {
			t.Error("a short RSA key:", err)
		}
	}
}

func TestNewRefusesOptions(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*oidc.Options){
		"neither https":       func(o *oidc.Options) { o.Issuer = "http://login.example.com" },
		"not a whole address": func(o *oidc.Options) { o.Issuer = "login.example.com" },
		"query":               func(o *oidc.Options) { o.Issuer = "https://login.example.com?x=1" },
		"fragment":            func(o *oidc.Options) { o.Issuer = "https://login.example.com#x" },
		"no audience":         func(o *oidc.Options) { o.Audience = nil },
		"address of the keys": func(o *oidc.Options) { o.KeysURL = "ftp://x" },
		`algorithm "HS256"`:   func(o *oidc.Options) { o.Algorithms = []string{"HS256"} },
		`algorithm "none"`:    func(o *oidc.Options) { o.Algorithms = []string{"RS256", "none"} },
		"no algorithm":        func(o *oidc.Options) { o.Algorithms = []string{} },
		"clock skew is not":   func(o *oidc.Options) { o.Skew = time.Hour },
	} {
		opts := &oidc.Options{Issuer: "https://login.example.com", Audience: []string{"lathe"}}
		change(opts)
		if _, err := oidc.New(opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestTokensAnswerForTheirClaims(t *testing.T) {
	t.Parallel()
	issuer, p, _ := setUp(t, nil)
	tok, err := p.Verify(t.Context(), issuer.Sign(claims(issuer, map[string]any{"groups": []string{"dev", "ops"}, "team": "red", "level": 7, "on": true,
		"https://example.com/role": "boss", "realm_access": map[string]any{"roles": []string{"admin"}}, "mixed": []any{"a", 1}, "none": nil})))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"groups": "[dev ops]", "team": "[red]", "https://example.com/role": "[boss]", "realm_access.roles": "[admin]",
		"mixed": "[]", "level": "[]", "missing": "[]", "team.x": "[]", "realm_access.roles.x": "[]", "Groups": "[]"} {
		if got := fmt.Sprint(tok.Texts(name)); got != want {
			t.Errorf("texts of %s: %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]string{"team": "red true", "level": "7 true", "on": "true true", "groups": " false", "realm_access": " false", "missing": " false"} {
		text, ok := tok.Text(name)
		if got := fmt.Sprintf("%s %t", text, ok); got != want {
			t.Errorf("text of %s: %q, want %q", name, got, want)
		}
	}
}

func FuzzVerify(f *testing.F) {
	p, err := oidc.New(&oidc.Options{Issuer: "http://127.0.0.1:1", Audience: []string{"lathe"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJ4In0.AAAA")
	f.Fuzz(func(t *testing.T, token string) {
		_, err := p.Verify(t.Context(), token)
		var refused *oidc.Error
		if !errors.As(err, &refused) || refused.Kind == "" {
			t.Errorf("%q: %v", token, err)
		}
	})
}

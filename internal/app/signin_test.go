package app_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/oidc/oidctest"
)

// A signInTrial is a server whose users sign in with an issuer.
type signInTrial struct {
	*testing.T
	issuer *oidctest.Issuer
	client *oidctest.Client
	app    *app.App
	url    string
}

func serveSignIn(t *testing.T, secret string) *signInTrial {
	t.Helper()
	x := &signInTrial{T: t, issuer: oidctest.New(t)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { x.app.Handler().ServeHTTP(w, r) }))
	t.Cleanup(srv.Close)
	x.url = srv.URL
	x.client = &oidctest.Client{ID: "console", Secret: secret, Redirect: srv.URL + "/api/session/oidc/callback",
		Claims: map[string]any{"sub": "ann", "realm": map[string]any{"groups": []string{"engineering"}}, "team": "red"}}
	x.issuer.SignIn(x.client)
	more := "    client_id: console\n    scopes: [groups]\n"
	if secret != "" {
		path := filepath.Join(t.TempDir(), "client.secret")
		if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
		more += "    client_secret: ${file:" + path + "}\n"
	}
	x.app = open(t, identityFile(x.issuer, more), nil)
	return x
}

// browser returns a client with cookies. Without follow it does not follow redirects.
func (x *signInTrial) browser(follow bool) *http.Client {
	x.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		x.Fatal(err)
	}
	b := &http.Client{Jar: jar}
	if !follow {
		b.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return b
}

func (x *signInTrial) get(b *http.Client, address string) (*http.Response, string) {
	x.Helper()
	r, err := http.NewRequestWithContext(x.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		x.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", "cross-site") // as browsers say it when another page leads here
	if strings.HasPrefix(address, x.url) && !strings.Contains(address, "/oidc") {
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	resp, err := b.Do(r)
	if err != nil {
		x.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		x.Fatal(err)
	}
	return resp, string(body)
}

// A user signs in with the identity provider, and has the rights of the profile until they sign out; with and without a secret of the
// client.
func TestUsersSignInWithTheIssuer(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"", "a-secret-of-the-client:%"} {
		x := serveSignIn(t, secret)
		b := x.browser(true)
		if _, body := x.get(b, x.url+"/api/session"); !strings.Contains(body, `"sign_in_url":"/api/session/oidc","issuer":"`+x.issuer.URL+`"`) {
			t.Errorf("before: %s", body)
		}
		if resp, body := x.get(b, x.url+"/api/session/oidc"); resp.StatusCode != 200 || resp.Request.URL.String() != x.url+"/" {
			t.Fatalf("signing in led to %s: %d %s", resp.Request.URL, resp.StatusCode, body)
		}
		if _, body := x.get(b, x.url+"/api/session"); !strings.Contains(body, `"signed_in":true`) || !strings.Contains(body, `"name":"`+x.issuer.URL+`#ann"`) || !strings.Contains(body, `"role":"user"`) || strings.Contains(body, "sign_in_url") {
			t.Errorf("after: %s", body)
		}
		if resp, body := x.get(b, x.url+"/v1/models"); resp.StatusCode != 200 || !strings.Contains(body, "sim/demo") || strings.Contains(body, "sim/careful") {
			t.Errorf("its models: %d %s", resp.StatusCode, body)
		}
		at, err := url.Parse(x.url + "/api/session/oidc/callback")
		if err != nil {
			t.Fatal(err)
		}
		for _, ck := range b.Jar.Cookies(at) {
			if strings.HasPrefix(ck.Name, "lathe_signin") {
				t.Errorf("the cookie of the sign-in is still there")
			}
		}
	}
}

// What an attacker can change on the way is refused, and begins no session.
func TestSignInsThatAreRefused(t *testing.T) {
	t.Parallel()
	x := serveSignIn(t, "")
	// begin begins a sign-in and returns the address that the issuer would send the browser to.
	begin := func(b *http.Client) *url.URL {
		t.Helper()
		resp, body := x.get(b, x.url+"/api/session/oidc")
		if resp.StatusCode != http.StatusSeeOther {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		if ck := resp.Cookies(); len(ck) != 1 || !ck[0].HttpOnly || ck[0].SameSite != http.SameSiteLaxMode || ck[0].Path != "/api/session/oidc" || ck[0].MaxAge != 600 {
			t.Errorf("the cookie is %v", ck)
		}
		resp, body = x.get(b, resp.Header.Get("Location"))
		u, err := resp.Location()
		if err != nil {
			t.Fatal(err, body)
		}
		return u
	}
	with := func(u *url.URL, name, value string) *url.URL {
		changed, q := *u, u.Query()
		q.Set(name, value)
		changed.RawQuery = q.Encode()
		return &changed
	}
	refused := func(name string, b *http.Client, u *url.URL, status int, want string) {
		t.Helper()
		resp, body := x.get(b, u.String())
		if resp.StatusCode != status || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s, want %d with %s", name, resp.StatusCode, body, status, want)
		}
		for _, ck := range resp.Cookies() {
			if strings.HasPrefix(ck.Name, "lathe_session") && ck.Value != "" {
				t.Errorf("%s: a session has begun", name)
			}
		}
	}
	b := x.browser(false)
	refused("another state", b, with(begin(b), "state", strings.Repeat("x", 43)), 401, "invalid_link")
	refused("the browser of someone else", x.browser(false), begin(x.browser(false)), 401, "invalid_link")
	refused("another code", b, with(begin(b), "code", "made-up"), 401, "refuses the code")
	refused("another issuer", b, with(begin(b), "iss", "https://evil.test"), 401, "another issuer")
	refused("an error of the issuer", b, with(begin(b), "error", "access_denied"), 401, "refused it")
	refused("no code", b, with(begin(b), "code", ""), 400, "no code")
	used := begin(b)
	if resp, body := x.get(b, used.String()); resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	refused("a second time", b, used, 401, "invalid_link")
	victim := x.browser(false)
	mine := begin(victim)
	refused("a code of another sign-in", victim, with(mine, "code", begin(x.browser(false)).Query().Get("code")), 401, "refuses the code")
	for name, c := range map[string]struct {
		claims map[string]any
		status int
		want   string
	}{
		"a token of another sign-in": {map[string]any{"nonce": strings.Repeat("x", 43)}, 401, "another sign-in"},
		"a token without a nonce":    {map[string]any{"nonce": nil}, 401, "another sign-in"},
		"a token for the API":        {map[string]any{"aud": "lathe"}, 401, "another audience"},
		"a token for another party":  {map[string]any{"azp": "other"}, 401, "another client"},
		"an old token":               {map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}, 401, "expired"},
		"a user without a profile":   {map[string]any{"realm": map[string]any{"groups": "staff"}}, 403, "unknown_profile"},
		"a token of another issuer":  {map[string]any{"iss": "https://evil.test"}, 401, "another issuer"},
	} {
		was := x.client.Claims
		x.client.Claims = map[string]any{}
		for n, v := range was {
			x.client.Claims[n] = v
		}
		for n, v := range c.claims {
			x.client.Claims[n] = v
		}
		refused(name, b, begin(b), c.status, c.want)
		x.client.Claims = was
	}
	x.client.Redirect = "https://evil.test/"
	if resp, _ := x.get(b, x.url+"/api/session/oidc"); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("%d", resp.StatusCode)
	} else if resp, _ = x.get(b, resp.Header.Get("Location")); resp.StatusCode != 400 {
		t.Errorf("the issuer took another redirect URI: %d", resp.StatusCode)
	}
}

// Without a client of the issuer there is no sign-in, and an issuer that is down is said to be.
func TestSignInWithoutAnIssuer(t *testing.T) {
	t.Parallel()
	i := oidctest.New(t)
	without := open(t, identityFile(i, ""), nil)
	if status, body := askApp(t, without, "GET", "/api/session/oidc", "", ""); status != 404 || !strings.Contains(body, "serve.oidc.client_id") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := askApp(t, without, "GET", "/api/session/oidc/callback?code=a&state=b", "", ""); status != 404 {
		t.Errorf("%d %s", status, body)
	}
	i.Down(500)
	down := open(t, identityFile(i, "    client_id: console\n"), nil)
	for range 3 {
		if status, body := askApp(t, down, "GET", "/api/session/oidc", "", ""); status != 503 || !strings.Contains(body, "issuer_unavailable") {
			t.Errorf("%d %s", status, body)
		}
	}
}

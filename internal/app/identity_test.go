package app_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/oidc/oidctest"
)

// tokens are those of the test issuer, which are valid for an hour.
func tokenOf(i *oidctest.Issuer, subject string, more map[string]any) string {
	claims := map[string]any{"iss": i.URL, "sub": subject, "aud": "lathe", "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range more {
		claims[name] = value
	}
	return i.Sign(claims)
}

// otherKey is the key of which identityFile has the hash.
const otherKey = "lathe_0123456789"

var hashed = func() string {
	sum := sha256.Sum256([]byte(otherKey))
	return hex.EncodeToString(sum[:])
}()

// identityFile is a configuration whose callers an issuer identifies.
func identityFile(i *oidctest.Issuer, more string) string {
	return "serve:\n  oidc:\n    issuer: " + i.URL + "\n    audience: [lathe]\n    profile_claim: realm.groups\n    profiles: [\"cn=admins,ou=x=boss\", engineering=dev]\n    labels: {team: team}\n" + more +
		"keys:\n  boss: {admin: true}\n  dev: {models: [sim/demo], tools: [calculator]}\n  other: {models: [], sha256: " + hashed + "}\n"
}

// askApp makes a request of the application and returns the status and the answer.
func askApp(t *testing.T, a *app.App, method, path, token, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	w := httptest.NewRecorder()
	a.Handler().ServeHTTP(w, r)
	b, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(b)
}

// With serve.oidc, the holders of an issuer's tokens have the rights of the key that their claims name.
func TestCallersWithTokensOfAnIssuer(t *testing.T) {
	t.Parallel()
	i := oidctest.New(t)
	a := open(t, identityFile(i, ""), nil)
	groups := func(names ...string) map[string]any {
		return map[string]any{"realm": map[string]any{"groups": names}, "team": "red"}
	}
	for name, c := range map[string]struct {
		method, path, body, token string
		status                    int
		want                      string
	}{
		"an engineer":               {"GET", "/v1/models", "", tokenOf(i, "ann", groups("staff", "engineering")), 200, "sim/demo"},
		"an admin, who is first":    {"GET", "/api/config", "", tokenOf(i, "bob", groups("engineering", "cn=admins,ou=x")), 200, "serve.oidc.issuer"},
		"no admin":                  {"GET", "/api/config", "", tokenOf(i, "ann", groups("engineering")), 403, "admin_required"},
		"another group":             {"GET", "/v1/models", "", tokenOf(i, "carl", groups("staff")), 403, "unknown_profile"},
		"no group":                  {"GET", "/v1/models", "", tokenOf(i, "carl", nil), 403, "unknown_profile"},
		"another audience":          {"GET", "/v1/models", "", tokenOf(i, "ann", map[string]any{"aud": "other"}), 401, "another audience"},
		"an old token":              {"GET", "/v1/models", "", tokenOf(i, "ann", map[string]any{"exp": 1000}), 401, "expired"},
		"a long label":              {"GET", "/v1/models", "", tokenOf(i, "ann", map[string]any{"realm": map[string]any{"groups": "engineering"}, "team": strings.Repeat("x", 2000)}), 401, "labels"},
		"an engineer on MCP":        {"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, tokenOf(i, "ann", groups("engineering")), 200, "serverInfo"},
		"another group on MCP":      {"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, tokenOf(i, "carl", groups("staff")), 403, "unknown_profile"},
		"a run with its own labels": {"POST", "/api/runs", `{"model":"sim/demo","prompt":"What is 7 + 35?"}`, tokenOf(i, "ann", groups("engineering")), 201, "run_"},
	} {
		if status, text := askApp(t, a, c.method, c.path, c.token, c.body); status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %.300s, want %d %s", name, status, text, c.status, c.want)
		}
	}
	if status, text := askApp(t, a, "GET", "/api/runs", tokenOf(i, "ann", groups("engineering")), ""); status != 200 || !strings.Contains(text, i.URL+"#ann") {
		t.Errorf("the runs of the caller: %d %s", status, text)
	}
	public := strings.Replace(identityFile(i, ""), "serve:\n", "serve:\n  public_url: https://lathe.example.com\n", 1)
	if err := a.Reload(load(t, public)); err != nil {
		t.Fatal(err)
	}
	if status, text := askApp(t, a, "GET", "/.well-known/oauth-protected-resource/mcp", "", ""); status != 200 || !strings.Contains(text, `"resource":"https://lathe.example.com/mcp","authorization_servers":["`+i.URL+`"]`) {
		t.Errorf("the metadata of /mcp: %d %s", status, text)
	}
	// A reload keeps the issuer's keys.
	fetched := i.Fetches()
	i.Down(http.StatusBadGateway)
	if err := a.Reload(load(t, identityFile(i, "    default_profile: other\n"))); err != nil {
		t.Fatal(err)
	}
	reserved := strings.Replace(identityFile(i, ""), "{team: team}", "{lathe_request_sha256: team}", 1)
	if err := a.Reload(load(t, reserved)); err == nil || !strings.Contains(err.Error(), "serve.oidc.labels: the gateway sets the label") {
		t.Errorf("a reload with a label of the gateway: %v", err)
	}
	if status, text := askApp(t, a, "GET", "/v1/models", tokenOf(i, "carl", groups("staff")), ""); status != 200 || strings.Contains(text, "sim/demo") {
		t.Errorf("with a profile for all others: %d %s", status, text)
	}
	if n := i.Fetches(); n != fetched {
		t.Errorf("the keys were fetched %d times after a reload", n-fetched)
	}
}

// A session does not outlive the settings that gave it its rights.
func TestSessionEndsWithTheMappingOfItsProfile(t *testing.T) {
	t.Parallel()
	i := oidctest.New(t)
	before := identityFile(i, "")
	admin := tokenOf(i, "bob", map[string]any{"realm": map[string]any{"groups": []string{"cn=admins,ou=x"}}})
	for name, after := range map[string]string{
		"nothing":      before,
		"the mapping":  strings.Replace(before, "cn=admins", "cn=owners", 1),
		"the claim":    strings.Replace(before, "realm.groups", "groups", 1),
		"the audience": strings.Replace(before, "[lathe]", "[other]", 1),
		"algorithms":   identityFile(i, "    algorithms: [EdDSA]\n"),
		"the default":  identityFile(i, "    default_profile: dev\n"),
		"the labels":   strings.Replace(before, "{team: team}", "{team: group}", 1),
	} {
		if name != "nothing" && after == before {
			t.Fatalf("%s: the configuration has not changed", name)
		}
		a := open(t, before, nil)
		r := httptest.NewRequest(http.MethodPost, "http://localhost/api/session", strings.NewReader(`{"key":"`+admin+`"}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		a.Handler().ServeHTTP(w, r)
		cookies := w.Result().Cookies()
		if w.Code != http.StatusOK || len(cookies) != 1 {
			t.Fatalf("%s: sign in: %d %s", name, w.Code, w.Body)
		}
		status := func() int {
			r := httptest.NewRequest(http.MethodGet, "http://localhost/api/config", nil)
			r.AddCookie(cookies[0])
			w := httptest.NewRecorder()
			a.Handler().ServeHTTP(w, r)
			return w.Code
		}
		if got := status(); got != http.StatusOK {
			t.Fatalf("%s: signed in: %d", name, got)
		}
		if err := a.Reload(load(t, after)); err != nil {
			t.Fatal(err)
		}
		want := http.StatusUnauthorized
		if name == "nothing" {
			want = http.StatusOK
		}
		if got := status(); got != want {
			t.Errorf("after a reload that changes %s: %d, want %d", name, got, want)
		}
	}
}

// lines is a log that several goroutines write.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// While the issuer cannot be reached, the application starts, says so, and serves callers with keys.
func TestAppStartsWithoutItsIssuer(t *testing.T) {
	t.Parallel()
	i := oidctest.New(t)
	i.Down(http.StatusServiceUnavailable)
	var log lines
	a := open(t, identityFile(i, ""), &app.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for deadline := time.Now().Add(time.Minute); !strings.Contains(log.String(), "the keys of the issuer cannot be fetched"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the log has %s", log.String())
		}
	}
	status, text := askApp(t, a, "GET", "/v1/models", tokenOf(i, "ann", nil), "")
	if status != 503 || !strings.Contains(text, "issuer_unavailable") || strings.Contains(text, i.URL) {
		t.Errorf("%d %s", status, text)
	}
	for key, want := range map[string]int{otherKey: 200, otherKey + "x": 401, hashed: 401} {
		if status, text := askApp(t, a, "GET", "/v1/models", key, ""); status != want {
			t.Errorf("%s: %d %s", key, status, text)
		}
	}
}

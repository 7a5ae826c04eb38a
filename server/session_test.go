package server_test

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
)

type sessionAnswer struct {
	SignedIn     bool   `json:"signed_in"`
	KeysRequired bool   `json:"keys_required"`
	Name         string `json:"name"`
	Role         string `json:"role"`
	CSRF         string `json:"csrf_token"`
}

// A browser keeps the cookies that a server sets, and sends no key.
type browser struct {
	*fixture
	cookie *http.Cookie
	csrf   string
}

func newBrowser(f *fixture) *browser {
	f.key = ""
	return &browser{fixture: f}
}

func (b *browser) do(method, path, body string, header ...string) (*http.Response, string) {
	b.t.Helper()
	if b.cookie != nil {
		header = append([]string{"Cookie", b.cookie.Name + "=" + b.cookie.Value, "Sec-Fetch-Site", "same-origin"}, header...)
	}
	if method != http.MethodGet && b.csrf != "" {
		header = append([]string{"X-Lathe-Csrf", b.csrf}, header...)
	}
	resp, text := b.fixture.do(method, path, body, header...)
	for _, ck := range resp.Cookies() {
		b.cookie = ck
	}
	return resp, text
}

// signIn signs in with a key, or fails the test.
func (b *browser) signIn(body string) *sessionAnswer {
	b.t.Helper()
	resp, text := b.do("POST", "/api/session", body)
	var got sessionAnswer
	if err := json.Unmarshal([]byte(text), &got); err != nil || resp.StatusCode != 200 || got.CSRF == "" || b.cookie == nil {
		b.t.Fatalf("sign in: %d %s", resp.StatusCode, text)
	}
	b.csrf = got.CSRF
	return &got
}

func keyed(s *setting, keys ...server.Key) *setting {
	if s == nil {
		s = &setting{}
	}
	s.opts = func(o *server.Options) { o.Setup.Keys = keys }
	return s
}

func TestSessionStandsForItsKey(t *testing.T) {
	t.Parallel()
	ann := key("ann")
	ann.Tools = []string{"calculator"}
	b := newBrowser(serve(t, keyed(nil, ann, key("bob"))))
	if _, text := b.do("GET", "/api/session", ""); text != `{"signed_in":false,"keys_required":true}`+"\n" {
		t.Errorf("before: %s", text)
	}
	got := b.signIn(`{"key":"` + text("ann") + `"}`)
	if got.Name != "ann" || got.Role != "user" || !got.SignedIn {
		t.Errorf("the session is %+v", got)
	}
	if ck := b.cookie; !ck.HttpOnly || ck.SameSite != http.SameSiteStrictMode || ck.Secure || ck.Path != "/" || len(ck.Value) < 40 {
		t.Errorf("the cookie is %+v", ck)
	}
	if resp, text := b.do("GET", "/api/tools", ""); resp.StatusCode != 200 || !strings.Contains(text, "calculator") || strings.Contains(text, "get_current_time") {
		t.Errorf("tools: %d %s", resp.StatusCode, text)
	}
	if resp, text := b.do("POST", "/v1/chat/completions", ask("sim/demo", "What is 7 + 35?", "")); resp.StatusCode != 200 {
		t.Errorf("chat: %d %s", resp.StatusCode, text)
	}
	csrf := b.csrf
	for _, wrong := range []string{"", "x", csrf[1:]} {
		b.csrf = wrong
		if resp, text := b.do("POST", "/api/tools/calculator/call", `{"arguments":{"expression":"1"}}`); resp.StatusCode != 403 || !strings.Contains(text, "csrf_token_required") {
			t.Errorf("with the token %q: %d %s", wrong, resp.StatusCode, text)
		}
	}
	b.csrf = csrf
	if resp, text := b.do("POST", "/api/tools/calculator/call", `{"arguments":{"expression":"1"}}`); resp.StatusCode != 200 {
		t.Errorf("call: %d %s", resp.StatusCode, text)
	}
	if resp, text := b.do("POST", "/api/tools/calculator/call", `{}`, "Sec-Fetch-Site", "same-site"); resp.StatusCode != 403 {
		t.Errorf("of another port of the host: %d %s", resp.StatusCode, text)
	}
	// The cookie is for the console: not for metrics, and not in place of a key that is wrong.
	for _, path := range []string{"/metrics", "/v1beta/models"} {
		if resp, _ := b.do("GET", path, ""); resp.StatusCode != 401 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	if resp, _ := b.do("GET", "/api/tools", "", "Authorization", "Bearer "+text("other")); resp.StatusCode != 401 {
		t.Errorf("with a wrong key: %d", resp.StatusCode)
	}
	if resp, text := b.do("POST", "/api/session/links", ""); resp.StatusCode != 403 {
		t.Errorf("a session makes a link: %d %s", resp.StatusCode, text)
	}
	was := b.cookie
	if resp, text := b.do("DELETE", "/api/session", ""); resp.StatusCode != 204 || b.cookie.MaxAge >= 0 {
		t.Errorf("sign out: %d %s", resp.StatusCode, text)
	}
	b.cookie = was
	if resp, text := b.do("GET", "/api/tools", ""); resp.StatusCode != 401 || !strings.Contains(text, "session_expired") {
		t.Errorf("after: %d %s", resp.StatusCode, text)
	}
}

func TestSignInRefusesWhatIsNoKey(t *testing.T) {
	t.Parallel()
	b := newBrowser(serve(t, keyed(nil, key("ann"))))
	for body, want := range map[string]struct {
		status int
		code   string
	}{
		`{"key":"` + text("bob") + `"}`:    {401, "invalid_api_key"},
		`{"link_token":"x"}`:               {401, "invalid_link"},
		`{}`:                               {400, "invalid_request"},
		`{"key":"a","link_token":"b"}`:     {400, "invalid_request"},
		`{"key":"a","other":1}`:            {400, "other"},
		`{"key":`:                          {400, "invalid_json"},
		strings.Repeat(" ", 33<<10) + `{}`: {413, "request_too_large"},
	} {
		resp, text := b.do("POST", "/api/session", body)
		if resp.StatusCode != want.status || !strings.Contains(text, want.code) || b.cookie != nil {
			t.Errorf("%.40s: %d %s, want %d %s", body, resp.StatusCode, text, want.status, want.code)
		}
	}
	if resp, text := b.do("POST", "/api/session", `{"key":"`+text("ann")+`"}`, "Origin", "https://evil.test"); resp.StatusCode != 403 {
		t.Errorf("of another origin: %d %s", resp.StatusCode, text)
	}
	open := newBrowser(serve(t, nil))
	if resp, text := open.do("POST", "/api/session", `{"key":"x"}`); resp.StatusCode != 409 || !strings.Contains(text, "no_keys") {
		t.Errorf("without keys: %d %s", resp.StatusCode, text)
	}
	if _, text := open.do("GET", "/api/session", ""); !strings.Contains(text, `"signed_in":true,"keys_required":false,"role":"admin"`) {
		t.Errorf("without keys: %s", text)
	}
}

// Over TLS, which a browser behind a proxy reports by its origin, the cookie is Secure.
// No caller signs in with a short key, also if the configuration has its hash.
func TestSignInRefusesShortKeysWithAHash(t *testing.T) {
	t.Parallel()
	for _, short := range []string{"\n", " ", "0123456789abcde"} {
		b := newBrowser(serve(t, keyed(nil, server.Key{Name: "ann", Hash: sha256.Sum256([]byte(short)), Admin: true})))
		given, err := json.Marshal(map[string]string{"key": short})
		if err != nil {
			t.Fatal(err)
		}
		if resp, text := b.do("POST", "/api/session", string(given)); resp.StatusCode != 401 || !strings.Contains(text, "invalid_api_key") || b.cookie != nil {
			t.Errorf("%q: %d %s", short, resp.StatusCode, text)
		}
	}
}

func TestSessionCookieIsSecureOverTLS(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{opts: func(o *server.Options) {
		o.Setup.Keys, o.Setup.Hosts = []server.Key{key("ann")}, []string{"lathe.example.com"}
	}})
	r := httptest.NewRequest("POST", "/api/session", strings.NewReader(`{"key":"`+text("ann")+`"}`))
	r.Host = "lathe.example.com"
	r.Header.Set("Origin", "https://lathe.example.com")
	w := httptest.NewRecorder()
	f.gateway.ServeHTTP(w, r)
	if ck := w.Result().Cookies(); len(ck) != 1 || !ck[0].Secure || ck[0].Name != "lathe_session" {
		t.Errorf("%d %s: %v", w.Code, w.Body, ck)
	}
}

func TestSessionEndsWithTimeAndWithItsKey(t *testing.T) {
	t.Parallel()
	clock := newHandClock()
	b := newBrowser(serve(t, keyed(&setting{now: clock.now}, key("ann"), key("bob"))))
	b.signIn(`{"key":"` + text("ann") + `"}`)
	status := func() int {
		resp, _ := b.do("GET", "/api/tools", "")
		return resp.StatusCode
	}
	clock.add(12*time.Hour - time.Second)
	if got := status(); got != 200 {
		t.Errorf("just before the end: %d", got)
	}
	clock.add(time.Second)
	if got := status(); got != 401 {
		t.Errorf("after its time: %d", got)
	}
	b.cookie, b.csrf = nil, ""
	b.signIn(`{"key":"` + text("ann") + `"}`)
	changed := key("ann")
	changed.Secret = secret.New(text("anna"))
	for name, keys := range map[string][]server.Key{"another secret": {changed}, "no such key": {key("bob")}} {
		if _, err := b.gateway.Reload(&server.Setup{Models: b.models, Tools: b.tools, Keys: keys}); err != nil {
			t.Fatal(err)
		}
		if got := status(); got != 401 {
			t.Errorf("%s: %d", name, got)
		}
	}
	// What its key may do is what the configuration says now.
	if _, err := b.gateway.Reload(&server.Setup{Models: b.models, Tools: b.tools, Keys: []server.Key{key("ann")}}); err != nil {
		t.Fatal(err)
	}
	b.cookie, b.csrf = nil, ""
	b.signIn(`{"key":"` + text("ann") + `"}`)
	narrow := key("ann")
	narrow.Tools = []string{}
	if _, err := b.gateway.Reload(&server.Setup{Models: b.models, Tools: b.tools, Keys: []server.Key{narrow}}); err != nil {
		t.Fatal(err)
	}
	if _, text := b.do("GET", "/api/tools", ""); strings.Contains(text, "calculator") {
		t.Errorf("after a reload: %s", text)
	}
}

func TestKeyHasABoundedNumberOfSessions(t *testing.T) {
	t.Parallel()
	clock := newHandClock()
	f := serve(t, keyed(&setting{now: clock.now}, key("ann"), key("bob")))
	other := newBrowser(f)
	other.signIn(`{"key":"` + text("bob") + `"}`)
	first := newBrowser(f)
	first.signIn(`{"key":"` + text("ann") + `"}`)
	for range 32 {
		clock.add(time.Second)
		newBrowser(f).signIn(`{"key":"` + text("ann") + `"}`)
	}
	if resp, _ := first.do("GET", "/api/tools", ""); resp.StatusCode != 401 {
		t.Errorf("the oldest session: %d", resp.StatusCode)
	}
	if resp, _ := other.do("GET", "/api/tools", ""); resp.StatusCode != 200 {
		t.Errorf("the session of another key: %d", resp.StatusCode)
	}
}

func TestSignInLinkIsUsedOnce(t *testing.T) {
	t.Parallel()
	clock := newHandClock()
	f := serve(t, keyed(&setting{now: clock.now}, key("ann")))
	link := func() string {
		resp, body := f.do("POST", "/api/session/links", "", "Authorization", "Bearer "+text("ann"))
		var got struct{ Fragment string }
		if err := json.Unmarshal([]byte(body), &got); err != nil || resp.StatusCode != 201 {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		return `{"link_token":"` + strings.TrimPrefix(got.Fragment, "signin=") + `"}`
	}
	b, body := newBrowser(f), link()
	if got := b.signIn(body); got.Name != "ann" {
		t.Errorf("%+v", got)
	}
	for name, body := range map[string]string{"again": body, "late": func() string { l := link(); clock.add(10 * time.Minute); return l }()} {
		if resp, text := newBrowser(f).do("POST", "/api/session", body); resp.StatusCode != 401 {
			t.Errorf("%s: %d %s", name, resp.StatusCode, text)
		}
	}
	fragment, _, err := f.gateway.SignInLink("ann")
	if err != nil {
		t.Fatal(err)
	}
	newBrowser(f).signIn(`{"link_token":"` + strings.TrimPrefix(fragment, "signin=") + `"}`)
	if _, _, err := f.gateway.SignInLink("bob"); err == nil {
		t.Error("a link for a key that is not there")
	}
}

// A server that holds as many sessions as it may refuses to begin one and sets no cookie, until one has ended. Who has a
// session may sign in again.
func TestSignInRefusesMoreSessionsThanTheServerHolds(t *testing.T) {
	t.Parallel()
	clock := newHandClock()
	f := serve(t, keyed(&setting{now: clock.now}, key("ann")))
	ann := `{"key":"` + text("ann") + `"}`
	has := newBrowser(f)
	has.signIn(ann)
	f.gateway.FillSessions()
	refused := func(what string, resp *http.Response, body string) {
		t.Helper()
		if resp.StatusCode != 503 || !strings.Contains(body, `"code":"too_many_sessions"`) || resp.Header.Get("Retry-After") != "60" || len(resp.Cookies()) > 0 {
			t.Errorf("%s: %d %s, %v", what, resp.StatusCode, body, resp.Header)
		}
	}
	later := newBrowser(f)
	resp, body := later.do("POST", "/api/session", ann)
	refused("a session", resp, body)
	resp, body = f.do("POST", "/api/session/links", "", "Authorization", "Bearer "+text("ann"))
	refused("a link", resp, body)
	if _, _, err := f.gateway.SignInLink("ann"); err == nil || !strings.Contains(err.Error(), "10000 sign-in links") {
		t.Errorf("a link of the process: %v", err)
	}
	has.signIn(ann) // in place of the session that it has
	if resp, body := has.do("DELETE", "/api/session", ""); resp.StatusCode != 204 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	later.signIn(ann)
	if resp, body := later.do("GET", "/api/tools", ""); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	resp, body = newBrowser(f).do("POST", "/api/session", ann)
	refused("one more", resp, body)
	clock.add(13 * time.Hour) // all have expired
	newBrowser(f).signIn(ann)
}

// A console with a listener of its own is not on that of the API, and takes neither MCP clients nor workers.
func TestConsoleHasAListenerOfItsOwn(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{opts: func(o *server.Options) {
		o.Setup.Keys, o.SeparateConsole = []server.Key{key("ann")}, true
		o.MCP = http.NotFoundHandler()
	}})
	console := httptest.NewServer(f.gateway.Console())
	defer console.Close()
	status := func(url string) int {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if page, own, session := status(f.url+"/"), status(console.URL+"/"), status(f.url+"/api/session"); page != 404 || own != 200 || session != 404 {
		t.Errorf("the page of the API %d, of the console %d; sessions of the API %d", page, own, session)
	}
	api := f.url
	b := newBrowser(f)
	f.url = console.URL
	b.signIn(`{"key":"` + text("ann") + `"}`)
	for path, want := range map[string]int{"/api/tools": 200, "/v1/models": 200, "/mcp": 405, "/metrics": 405} {
		if resp, text := b.do("GET", path, ""); resp.StatusCode != want {
			t.Errorf("%s of the console: %d %s, want %d", path, resp.StatusCode, text, want)
		}
	}
	f.url = api
	if resp, _ := b.do("GET", "/api/tools", ""); resp.StatusCode != 401 {
		t.Errorf("a session on the API: %d", resp.StatusCode)
	}
}

func TestAdminKeySeesTheRunsOfAll(t *testing.T) {
	t.Parallel()
	root := key("root")
	root.Admin = true
	f := serve(t, keyed(nil, key("ann"), root))
	as := func(name string) []string { return []string{"Authorization", "Bearer " + text(name)} }
	resp, body := f.do("POST", "/api/runs", `{"model":"sim/demo","messages":[{"role":"user","content":"hello"}]}`, as("ann")...)
	if resp.StatusCode != 201 && resp.StatusCode != 202 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	var run struct {
		ID string `json:"run_id"`
	}
	if err := json.Unmarshal([]byte(body), &run); err != nil || run.ID == "" {
		t.Fatalf("%v %s", err, body)
	}
	if resp, body := f.do("GET", "/api/runs/"+run.ID+"/events", "", as("ann")...); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	for path, has := range map[string]string{"/api/runs": run.ID, "/api/runs/" + run.ID: run.ID, "/api/runs/" + run.ID + "/export": run.ID} {
		if resp, body := f.do("GET", path, "", as("root")...); resp.StatusCode != 200 || !strings.Contains(body, has) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	if resp, body := f.do("DELETE", "/api/runs/"+run.ID, "", as("root")...); resp.StatusCode != 204 {
		t.Errorf("delete: %d %s", resp.StatusCode, body)
	}
}

package mcptool

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/oauth"
	"github.com/lathe-run/lathe/secret"
)

// tokens is a transport that returns the error in refuse, as if it had no token.
type tokens struct {
	refuse atomic.Pointer[oauth.Error] // nil: everything goes through
}

func (t *tokens) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := t.refuse.Load(); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	return http.DefaultTransport.RoundTrip(req)
}

var needsLogin = &oauth.Error{Err: &oauth.LoginError{Name: "web", Why: "the server wants a token"}}

// That a server wants a login is known at once, stands in its status, and is over when there is a token.
func TestServerThatWantsALogin(t *testing.T) {
	t.Parallel()
	raw := &rpcServer{call: func(w http.ResponseWriter, id string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"ok"}]}}`, id)
	}}
	server := httptest.NewServer(raw)
	defer server.Close()
	login := &tokens{}
	login.refuse.Store(needsLogin)
	conf := httpConf(server.URL)
	conf.Client = &http.Client{Transport: login}
	r := newRig(t, &Options{BackoffMin: time.Millisecond, BackoffMax: 10 * time.Millisecond, LoginCommand: func(s string) string { return "log in to " + s }}, conf)
	defer r.group.Close()
	st := r.group.Status()[0]
	if st.State == StateReady || st.Problem != ProblemLogin || !strings.Contains(st.LastError, "a login is needed") {
		t.Errorf("got %+v", st)
	}
	login.refuse.Store(nil)
	r.until("ready", func(st Status) bool { return st.State == StateReady })
	if got := r.call("web__do", map[string]int{}); got.Content != "ok" {
		t.Errorf("got %+v", got)
	}
	// A call that needs a wider token says so. It was not made, the connection stays, and what it does plays no part.
	login.refuse.Store(needsLogin)
	got := r.call("web__do", map[string]int{})
	wantCode(t, got, lathe.CodeUnavailable)
	if !strings.Contains(got.Content, "log in to web") {
		t.Errorf("got %s", got.Content)
	}
	if st := r.group.Status()[0]; st.State != StateReady || st.Problem != ProblemLogin || st.Starts != 1 {
		t.Errorf("got %+v", st)
	}
	login.refuse.Store(&oauth.Error{Err: errors.New("refused")})
	wantCode(t, r.call("web__do", map[string]int{}), lathe.CodeUnavailable)
	if st := r.group.Status()[0]; st.Problem != ProblemCredentials {
		t.Errorf("got %+v", st)
	}
	login.refuse.Store(nil)
	if got := r.call("web__do", map[string]int{}); got.Content != "ok" {
		t.Errorf("got %+v", got)
	}
	if st := r.group.Status()[0]; st.Problem != "" || st.LastError != "" || st.Starts != 1 {
		t.Errorf("got %+v", st)
	}
}

// A server's error text that contains the token is shown without the token.
func TestT21_TokensAreKeptOutOfTexts(t *testing.T) {
	t.Parallel()
	login := &tokens{}
	login.refuse.Store(&oauth.Error{Err: errors.New("bad canary-token")})
	conf := httpConf("http://127.0.0.1:1/")
	conf.Client = &http.Client{Transport: login}
	conf.Tokens = func() []secret.Secret { return []secret.Secret{secret.New("canary-token")} }
	r := newRig(t, nil, conf)
	defer r.group.Close()
	if st := r.group.Status()[0]; strings.Contains(st.LastError, "canary") {
		t.Errorf("got %+v", st)
	}
}

// A server that says again what it was sent does not show the token to a model.
func TestT8_T21_EchoedTokensAreTakenOut(t *testing.T) {
	t.Parallel()
	say := `"result":{"content":[{"type":"text","text":"you sent canary-token, canary-token"}]}`
	raw := &rpcServer{call: func(w http.ResponseWriter, id string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, id, say)
	}}
	server := httptest.NewServer(raw)
	defer server.Close()
	conf := httpConf(server.URL)
	conf.Tokens = func() []secret.Secret {
		return []secret.Secret{secret.New("canary-token"), secret.New("you"), secret.New("\"content\"")}
	}
	r := newRig(t, nil, conf)
	defer r.group.Close()
	if got := r.call("web__do", map[string]int{}); got.Content != "you sent [redacted], [redacted]" {
		t.Errorf("got %+v", got)
	}
	raw.mu.Lock()
	say = `"error":{"code":-32000,"message":"canary-token is bad"}`
	raw.mu.Unlock()
	if got := r.call("web__do", map[string]int{}); !strings.Contains(got.Content, "[redacted] is bad") {
		t.Errorf("got %+v", got)
	}
}

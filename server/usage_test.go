package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe/server"
)

// A key with requests_per_minute reads its limit, what is left of it, and when it has all of it again, on every wire and also in
// a refusal; a key without a limit reads nothing.
func TestRateOfAKeyIsShown(t *testing.T) {
	t.Parallel()
	now := newHandClock()
	limited := key("limited")
	limited.RequestsPerMinute = 6
	f := serve(t, &setting{opts: func(o *server.Options) {
		o.Setup.Keys = []server.Key{limited, key("other")}
		o.Now = now.now
	}})
	rate := func(h http.Header) string {
		return strings.Join([]string{h.Get("x-ratelimit-limit-requests"), h.Get("x-ratelimit-remaining-requests"), h.Get("x-ratelimit-reset-requests")}, " ")
	}
	for _, c := range []struct {
		after  time.Duration
		path   string
		status int
		want   string
	}{
		{0, "/v1/models", 200, "6 5 10s"},
		{0, "/api/tools", 200, "6 4 20s"},
		{5 * time.Second, "/v1beta/models", 200, "6 3 25s"},
		{0, "/v1/models/none", 404, "6 2 35s"},
		{0, "/v1/models", 200, "6 1 45s"},
		{0, "/v1/models", 200, "6 0 55s"},
		{250 * time.Millisecond, "/v1/models", 429, "6 0 54.75s"},
		{4750 * time.Millisecond, "/v1/models", 200, "6 0 1m0s"},
		{time.Hour, "/v1/models", 200, "6 5 10s"},
	} {
		now.add(c.after)
		if resp, body := f.do("GET", c.path, ""); resp.StatusCode != c.status || rate(resp.Header) != c.want {
			t.Errorf("%s after %v: %d with the rate %q, want %d with %q: %s", c.path, c.after, resp.StatusCode, rate(resp.Header), c.status, c.want, body)
		}
	}
	if resp, body := f.do("GET", "/v1/models", "", "Authorization", "Bearer "+text("other")); resp.StatusCode != 200 || rate(resp.Header) != "  " {
		t.Errorf("a key without a limit: %d with the rate %q: %s", resp.StatusCode, rate(resp.Header), body)
	}
	if resp, body := f.do("GET", "/v1/models", "", "Authorization", "Bearer "+text("nobody")); resp.StatusCode != 401 || rate(resp.Header) != "  " {
		t.Errorf("an unknown key: %d with the rate %q: %s", resp.StatusCode, rate(resp.Header), body)
	}
	if resp, _ := f.do("GET", "/livez", ""); rate(resp.Header) != "  " {
		t.Errorf("a probe has the rate %q", rate(resp.Header))
	}
}

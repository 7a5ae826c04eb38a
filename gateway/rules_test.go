package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/gateway"
	"github.com/lathe-run/lathe/internal/secret"
)

const (
	annKey = "0123456789abcdef-ann"
	bobKey = "0123456789abcdef-bob"
)

// guardedRoutes are routes of each kind that are served under a key.
var guardedRoutes = []struct{ method, path, body string }{
	{"GET", "/v1/models", ""},
	{"POST", "/v1/chat/completions", `{"model":"sim/demo","messages":[{"role":"user","content":"hello"}]}`},
	{"POST", "/api/tools/calculator/call", `{"arguments":{"expression":"1"}}`},
	{"GET", "/api/runs", ""},
	{"GET", "/api/runs/run_x/events", ""},
	{"GET", "/api/approvals", ""},
	{"GET", "/metrics", ""},
	{"POST", "/mcp", `{}`},
	{"GET", "/mcp", ""},
	{"DELETE", "/mcp", ""},
}

// Every route obeys the same rules: key, scheme, Host, Origin, rate, concurrency, and a line in the log.
func TestEveryRouteObeysTheSameRules(t *testing.T) {
	t.Parallel()
	for _, route := range guardedRoutes {
		t.Run(route.method+" "+route.path, func(t *testing.T) {
			t.Parallel()
			var log lockedBuffer
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			f := serve(t, &setting{now: func() time.Time { return now }, opts: func(o *gateway.Options) {
				o.MCP = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") })
				o.Log = slog.New(slog.NewTextHandler(&log, nil))
				o.Setup.Hosts = []string{"lathe.example.com"}
				o.Setup.Keys = []gateway.Key{{Name: "ann", Secret: secret.New(annKey), RequestsPerMinute: 3}, {Name: "bob", Secret: secret.New(bobKey)}}
			}})
			ask := func(header ...string) (int, string) {
				r, err := http.NewRequestWithContext(t.Context(), route.method, f.url+route.path, strings.NewReader(route.body))
				if err != nil {
					t.Fatal(err)
				}
				for i := 0; i < len(header); i += 2 {
					if r.Header.Set(header[i], header[i+1]); header[i] == "Host" {
						r.Host = header[i+1]
					}
				}
				res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				b, _ := io.ReadAll(res.Body)
				return res.StatusCode, string(b)
			}
			for name, c := range map[string]struct {
				header []string
				status int
				code   string
			}{
				"no key":          {nil, 401, "missing_api_key"},
				"another key":     {[]string{"Authorization", "Bearer nobody"}, 401, "invalid_api_key"},
				"another scheme":  {[]string{"Authorization", "Basic " + bobKey}, 401, "missing_api_key"},
				"a strange host":  {[]string{"Authorization", "Bearer " + bobKey, "Host", "evil.test"}, 403, "unknown_host"},
				"another origin":  {[]string{"Authorization", "Bearer " + bobKey, "Origin", "http://127.0.0.1:9999"}, 403, "unknown_origin"},
				"the null origin": {[]string{"Authorization", "Bearer " + bobKey, "Origin", "null"}, 403, "unknown_origin"},
			} {
				if route.method == "GET" && strings.HasSuffix(name, "origin") {
					continue // what changes nothing is answered, and a page of another origin cannot read it
				}
				if status, body := ask(c.header...); status != c.status || !strings.Contains(body, c.code) {
					t.Errorf("%s: status %d: %s, want %d and %s", name, status, body, c.status, c.code)
				}
			}
			for _, scheme := range []string{"Bearer", "bearer", "BEARER"} {
				if status, body := ask("Authorization", scheme+" "+annKey, "X-Request-Id", "mark"); status == 401 || status == 403 || status == 429 {
					t.Errorf("%s: status %d: %s", scheme, status, body)
				}
			}
			if status, body := ask("Authorization", "Bearer "+annKey); status != 429 || !strings.Contains(body, "rate_limit_exceeded") {
				t.Errorf("the fourth request in a minute: status %d: %s", status, body)
			}
			if n := strings.Count(log.String(), "request_id=mark"); n != 3 {
				t.Errorf("%d lines in the log for 3 requests:\n%s", n, log.String())
			}
			if strings.Contains(log.String(), annKey) {
				t.Error("the log has a key")
			}
		})
	}
}

// A batch of MCP counts as many requests as it has messages.
func TestBatchesCountEachRequest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var got []string
	f := serve(t, &setting{now: func() time.Time { return now }, opts: func(o *gateway.Options) {
		o.MCP = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			wait, ok := gateway.Charge(r.Context(), 3)
			got = append(got, fmt.Sprint(ok, wait > 0))
		})
		o.Setup.Keys = []gateway.Key{{Name: "ann", Secret: secret.New(annKey), RequestsPerMinute: 6}}
	}})
	f.client.Transport = &http.Transport{} // MCP is not in openapi.json
	for range 3 {
		f.do("POST", "/mcp", `{}`, "Authorization", "Bearer "+annKey)
	}
	if want := "true false false true"; strings.Join(got[:2], " ") != want {
		t.Errorf("charged %q, want %q", got, want)
	}
	if _, ok := gateway.Charge(context.Background(), 100); !ok {
		t.Error("what is in no request is charged")
	}
}

// One key cannot take the places of the others, and watchers take none of the places of requests.
func TestOneKeyCannotTakeAllPlaces(t *testing.T) {
	t.Parallel()
	entered, release := make(chan string, 64), make(chan struct{})
	f := serve(t, &setting{opts: func(o *gateway.Options) {
		o.Limits.MaxConcurrent, o.Limits.MaxWatchers = 8, 8
		o.MCP = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			entered <- r.Method
			select {
			case <-release:
			case <-r.Context().Done():
			}
		})
		o.Setup.Keys = []gateway.Key{{Name: "ann", Secret: secret.New(annKey)}, {Name: "bob", Secret: secret.New(bobKey)}}
	}})
	f.client.Transport = &http.Transport{} // MCP is not in openapi.json
	defer close(release)
	hold := func(method, key string) {
		ctx, cancel := context.WithCancel(context.Background())
		t.Cleanup(cancel)
		r, err := http.NewRequestWithContext(ctx, method, f.url+"/mcp", http.NoBody)
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Authorization", "Bearer "+key)
		go func() {
			if res, err := (&http.Transport{}).RoundTrip(r); err == nil {
				res.Body.Close()
			}
		}()
		<-entered
	}
	status := func(method, path, key string) int {
		resp, _ := f.do(method, path, "", "Authorization", "Bearer "+key)
		return resp.StatusCode
	}
	for _, method := range []string{"POST", "GET"} { // requests, then watchers
		for range 2 { // a quarter of 8
			hold(method, bobKey)
		}
		if got := status(method, "/mcp", bobKey); got != 429 {
			t.Errorf("%s beyond the share of a key: status %d, want 429", method, got)
		}
	}
	for path, want := range map[string]int{"/v1/models": 200, "/metrics": 200} {
		if got := status("GET", path, annKey); got != want {
			t.Errorf("%s of another key: status %d, want %d", path, got, want)
		}
	}
	if got := status("GET", "/metrics", bobKey); got != 200 {
		t.Errorf("/metrics of a key without places: status %d", got)
	}
}

// With one key the pool is its own; when it is full, metrics and health are served all the same.
func TestMetricsAndHealthNeedNoPlace(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}, 8), make(chan struct{})
	f := serve(t, &setting{opts: func(o *gateway.Options) {
		o.Limits.MaxConcurrent = 2
		o.MCP = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			entered <- struct{}{}
			<-release
		})
	}})
	f.client.Transport = &http.Transport{} // MCP is not in openapi.json
	done := make(chan struct{}, 2)
	for range 2 {
		go func() {
			f.do("POST", "/mcp", "{}")
			done <- struct{}{}
		}()
		<-entered
	}
	for path, want := range map[string]int{"/v1/models": 503, "/metrics": 200, "/livez": 200, "/readyz": 200} {
		if resp, _ := f.do("GET", path, ""); resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, resp.StatusCode, want)
		}
	}
	close(release)
	for range 2 {
		<-done
	}
}

// A store that cannot be written is a server that is not ready, and the cause is named.
func TestReadyzSaysThatTheStoreCannotBeWritten(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	var err error
	f := serve(t, &setting{opts: func(o *gateway.Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		o.Ready = func(context.Context) error { return err }
	}})
	for _, c := range []struct {
		err    error
		status int
		text   string
	}{
		{nil, 200, "ok"},
		{&lathe.Error{Code: lathe.CodeUnavailable, Err: fmt.Errorf("%w: /secret/path", lathe.ErrStoreReplaced)}, 503, "removed or replaced"},
		{&lathe.Error{Code: lathe.CodeUnavailable, Err: lathe.ErrStoreFull}, 503, "full"},
		{io.ErrUnexpectedEOF, 503, "cannot be written"},
		{nil, 200, "ok"},
	} {
		err = c.err
		resp, body := f.do("GET", "/readyz", "")
		if resp.StatusCode != c.status || !strings.Contains(body, c.text) || strings.Contains(body, "/secret") {
			t.Errorf("%v: status %d: %s", c.err, resp.StatusCode, body)
		}
	}
	if n := strings.Count(log.String(), "not ready"); n != 1 {
		t.Errorf("%d lines in the log:\n%s", n, log.String())
	}
}

// Connections between two requests are bounded: the one that has been idle longest is closed.
func TestIdleConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{opts: func(o *gateway.Options) { o.Limits.MaxIdle = 2 }})
	addr := strings.TrimPrefix(f.url, "http://")
	var conns []net.Conn
	for range 3 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		conns = append(conns, conn)
	}
	if _, err := conns[0].Read(make([]byte, 1)); err != io.EOF { // it waits until the server closes it
		t.Errorf("the longest idle connection: %v", err)
	}
	_, _ = io.WriteString(conns[2], "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if res, err := http.ReadResponse(bufio.NewReader(conns[2]), nil); err != nil || res.StatusCode != 200 {
		t.Errorf("the latest connection: %v, %v", res, err)
	}
}

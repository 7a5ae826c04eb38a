package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/gateway/mcp"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

const (
	annKey   = "0123456789abcdef-ann"
	bobKey   = "0123456789abcdef-bob"
	poolKey  = "0123456789abcdef-pool"
	peersKey = "0123456789abcdef-peers"
	maxBody  = 10_000
)

// A front is a server with all its routes: with MCP, workers and a cluster.
type front struct {
	*fixture
	log    lockedBuffer
	now    time.Time
	routes []server.RouteRow
}

func newFront(t *testing.T, change func(*server.Options)) *front {
	t.Helper()
	f := &front{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	set, err := tool.NewSet()
	if err != nil {
		t.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Effects{}})
	if err != nil {
		t.Fatal(err)
	}
	tools := mcp.New(runner, &mcp.Options{MaxMessageBytes: maxBody,
		HTTP: mcp.HTTPOptions{Admitted: true, Charge: server.Charge}})
	t.Cleanup(tools.Close)
	queue := store.NewMemory(nil)
	workers, err := server.NewWorkers(&server.WorkerOptions{Queue: queue, Registry: roster{queue}, Pools: []server.WorkerPool{{Name: "pool", Token: secret.New(poolKey)}}})
	if err != nil {
		t.Fatal(err)
	}
	f.fixture = serve(t, &setting{now: func() time.Time { return f.now }, opts: func(o *server.Options) {
		o.MCP, o.Workers = tools.Handler(), workers
		o.Cluster.Key = secret.New(peersKey)
		o.Log = slog.New(slog.NewTextHandler(&f.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Limits.MaxBody = maxBody
		o.Setup.Hosts = []string{"lathe.example.com"}
		o.Setup.Keys = []server.Key{{Name: "ann", Secret: secret.New(annKey), RequestsPerMinute: 3, Concurrency: 1}, {Name: "bob", Secret: secret.New(bobKey), Metrics: true}, {Name: "dev"}}
		o.Setup.Identity = &idp{others: "dev"}
		if change != nil {
			change(o)
		}
	}})
	f.routes = f.gateway.Routes()
	return f
}

// ask makes one request of a route on a connection of its own, and returns the status, the answer and its header.
func (f *front) ask(rt *server.RouteRow, body string, header ...string) (int, string, http.Header) {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), rt.Method, f.url+rt.Path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if r.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	leave := time.AfterFunc(time.Minute, cancel)
	defer leave.Stop()
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r.WithContext(ctx))
	leave.Reset(5 * time.Second) // streams of events are left
	if err != nil {
		f.t.Fatal(rt.Name, err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(res.Body, 100_000))
	status := res.StatusCode
	if strings.HasPrefix(rt.Path, "/v1/messages") {
		if status == 529 { // Anthropic's word for 503
			status = 503
		}
		b = fmt.Appendf(b, "%q", res.Header.Get("X-Lathe-Error-Code"))
	}
	return status, string(b), res.Header
}

// credential is a valid Authorization header for the route.
func credential(rt *server.RouteRow, scheme, key string) []string {
	switch {
	case rt.Worker:
		key = poolKey
	case rt.Cluster:
		key = peersKey
	case rt.Anyone:
		return nil
	}
	return []string{"Authorization", scheme + " " + key}
}

// Every route of the table obeys every rule of the middleware. A route that is added is in the table, and so in this test.
func TestEveryRouteObeysEveryRule(t *testing.T) {
	testdata.WithoutRace(t)
	t.Parallel()
	f := newFront(t, nil)
	if len(f.routes) < 30 {
		t.Fatalf("the table has %d routes", len(f.routes))
	}
	refused := func(t *testing.T, rt *server.RouteRow, what string, status int, code string, body string, header ...string) {
		t.Helper()
		got, text, _ := f.ask(rt, body, header...)
		if rt.Worker {
			code = "" // its errors are plain text
		}
		if got != status || rt.Method != "HEAD" && !strings.Contains(text, code) {
			t.Errorf("%s: status %d: %.300s, want %d and %s", what, got, text, status, code)
		}
	}
	for i := range f.routes {
		rt := &f.routes[i]
		name := rt.Name
		if name == "" {
			name = "no route"
		}
		t.Run(name, func(t *testing.T) {
			own := credential(rt, "Bearer", bobKey)
			with := func(more ...string) []string { return append(append([]string{}, own...), more...) }

			// The credential: none, an unknown one, another scheme, and the credentials of other kinds of routes.
			if !rt.Anyone {
				for _, h := range [][]string{nil, {"Authorization", "Bearer 0123456789abcdef-nobody"}, {"Authorization", "Basic " + bobKey}, {"Authorization", "Bearer "}} {
					refused(t, rt, fmt.Sprint("with ", h), 401, "_key", "", h...)
				}
				for _, key := range []string{bobKey, poolKey, peersKey} {
					if h := []string{"Authorization", "Bearer " + key}; h[1] != own[1] {
						refused(t, rt, "with the credential of another kind of route", 401, "_key", "", h...)
					}
				}
				for _, scheme := range []string{"bearer", "BEARER"} {
					if got, text, _ := f.ask(rt, "", credential(rt, scheme, bobKey)...); got == 401 {
						t.Errorf("with the scheme %s: %d %s", scheme, got, text)
					}
				}
			}

			// The token of an identity provider.
			if rt.Key {
				refused(t, rt, "with a forged token", 401, "invalid_token", "", bearer(signed("forged"))...)
				refused(t, rt, "with the token of a caller without a profile", 403, "unknown_profile", "", bearer(signed("guest"))...)
				refused(t, rt, "with a token whose issuer is away", 503, "issuer_unavailable", "", bearer(signed("offline"))...)
				id := "token." + fmt.Sprint(i)
				if got, text, _ := f.ask(rt, "", append(bearer(signed("carl")), "X-Request-Id", id)...); got == 401 || got == 403 && !strings.Contains(text, "admin_required") {
					t.Errorf("with a token: %d %s", got, text)
				}
				if line := f.line("request_id=" + id); !strings.Contains(line, " key=dev ") || !strings.Contains(line, "principal="+issuer+"#carl") {
					t.Errorf("the log has %q", line)
				}
			} else if !rt.Anyone {
				refused(t, rt, "with a token", 401, "_key", "", bearer(signed("carl"))...)
			}

			// The host name and the origin. Programs find the server under any name, and are no pages.
			if rt.Machines {
				if got, text, _ := f.ask(rt, "", with("Host", "peer-1.internal")...); got == 403 {
					t.Errorf("under another host name: %d %s", got, text)
				}
				refused(t, rt, "with an origin", 403, "unknown_origin", "", with("Origin", f.url)...)
			} else {
				refused(t, rt, "under another host name", 403, "unknown_host", "", with("Host", "evil.test")...)
				if rt.Method != http.MethodGet && rt.Method != http.MethodHead { // a page cannot read the answer to a GET
					refused(t, rt, "of another origin", 403, "unknown_origin", "", with("Origin", "https://evil.test")...)
					refused(t, rt, "of the null origin", 403, "unknown_origin", "", with("Origin", "null")...)
				}
			}

			// The body.
			if rt.Body || rt.Message {
				long := strings.Repeat(" ", maxBody+1)
				refused(t, rt, "with a long body", 413, "large", long, with("Content-Type", "application/json")...)
				refused(t, rt, "with a body of an unknown encoding", 415, "", "{}", with("Content-Encoding", "br")...)
			}
			if rt.Body {
				refused(t, rt, "with a compressed body that is too long", 413, "request_too_large", packed(t, "gzip", long(maxBody+1)), with("Content-Encoding", "gzip")...)
				if got, text, _ := f.ask(rt, packed(t, "zstd", "{}"), with("Content-Encoding", "zstd")...); got == 415 || strings.Contains(text, "invalid_body") {
					t.Errorf("with a compressed body: %d %s", got, text)
				}
			}
			if rt.Message {
				refused(t, rt, "with a compressed message", 415, "encoded", packed(t, "gzip", "{}"), with("Content-Encoding", "gzip")...)
			}

			// The query.
			if rt.Key && strings.HasPrefix(rt.Path, "/api/") {
				other := *rt
				other.Path += "?no_such_filter=1"
				refused(t, &other, "with an unknown query parameter", 400, "no_such_filter", "", own...)
			}

			// The id of the request, and its line in the log.
			id := "mark." + fmt.Sprint(i)
			_, _, h := f.ask(rt, "", with("X-Request-Id", id)...)
			if h.Get("X-Request-Id") != id || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("the header is %v", h)
			}
			route := rt.Name
			switch {
			case rt.Probe:
				route = "probe"
			case route == "":
				route = "none"
			}
			line := f.line("request_id=" + id)
			if !strings.Contains(line, "route="+route+" ") && !strings.Contains(line, fmt.Sprintf("route=%q ", route)) {
				t.Errorf("the log has %q", line)
			}
			for want, is := range map[string]bool{"key=bob": rt.Key, `key="workers pool"`: rt.Worker, `key="cluster peers"`: rt.Cluster, `key=""`: rt.Anyone} {
				if is && !strings.Contains(line, want) {
					t.Errorf("the log has %q, want %s", line, want)
				}
			}
		})
	}
	resp, metrics := f.do("GET", "/metrics", "", "Authorization", "Bearer "+bobKey)
	for i := range f.routes {
		name := f.routes[i].Name
		if name == "" {
			name = "none"
		}
		if !strings.Contains(metrics, fmt.Sprintf("lathe_http_requests_total{route=%q,status=", name)) {
			t.Errorf("%d: the metrics do not count %s", resp.StatusCode, name)
		}
	}
	for _, key := range []string{annKey, bobKey, poolKey, peersKey, signed("carl"), signed("forged")} {
		if strings.Contains(f.log.String(), key) {
			t.Error("the log has a credential")
		}
	}
}

func long(n int) string { return strings.Repeat(" ", n) }

// line returns the only line of the log that has the text. It is written after the answer.
func (f *front) line(text string) string {
	f.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var found []string
		for line := range strings.Lines(f.log.String()) {
			if strings.Contains(line, text) && strings.Contains(line, "msg=request") {
				found = append(found, line)
			}
		}
		if len(found) > 0 {
			if len(found) > 1 {
				f.t.Errorf("%d lines have %s", len(found), text)
			}
			return found[0]
		}
	}
	return ""
}

// The rate and the concurrency of a key hold on every route that requires a key.
func TestEveryRouteCountsForTheLimitsOfItsKey(t *testing.T) {
	t.Parallel()
	testdata.WithoutRace(t)
	f := newFront(t, nil)
	for i := range f.routes {
		rt := &f.routes[i]
		if !rt.Key {
			continue
		}
		f.now = f.now.Add(time.Hour)
		ann := credential(rt, "Bearer", annKey)
		for n := range 3 {
			if got, text, _ := f.ask(rt, "", ann...); got == 429 {
				t.Errorf("%s: request %d of a minute: %s", rt.Name, n+1, text)
			}
		}
		if got, text, h := f.ask(rt, "", ann...); got != 429 || !strings.Contains(text, "rate_limit_exceeded") || h.Get("Retry-After") == "" {
			t.Errorf("%s: the fourth request of a minute: %d %s", rt.Name, got, text)
		}
	}
	f.now = f.now.Add(time.Hour)
	release := f.occupy(annKey)
	defer release()
	for i := range f.routes {
		rt := &f.routes[i]
		if got, text, _ := f.ask(rt, "", credential(rt, "Bearer", annKey)...); (got == 429) != (rt.Key && !rt.Socket) {
			t.Errorf("%s beside a request of the same key: %d %s", rt.Name, got, text)
		}
	}
}

// occupy begins a request of the key whose body does not arrive. It has its place until release is called.
func (f *front) occupy(key string) (release func()) {
	f.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
	if err != nil {
		f.t.Fatal(err)
	}
	u, _ := url.Parse(f.url)
	_, err = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n", u.Host, key)
	if err != nil {
		f.t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100") { // its body is being read
		f.t.Fatal(line, err)
	}
	return func() { _ = conn.Close() }
}

// The bound on requests at once holds on every route, except for streams, metrics and what has bounds of its own.
func TestEveryRouteTakesAPlace(t *testing.T) {
	t.Parallel()
	testdata.WithoutRace(t)
	f := newFront(t, func(o *server.Options) { o.Limits.MaxConcurrent = 1 })
	release := f.occupy(bobKey)
	defer release()
	for i := range f.routes {
		rt := &f.routes[i]
		want := rt.Pooled && !rt.Watcher
		if got, text, _ := f.ask(rt, "", credential(rt, "Bearer", bobKey)...); (got == 503 && strings.Contains(text, "serve.max_concurrent")) != want {
			t.Errorf("%s: %d %s, want refused %t", rt.Name, got, text, want)
		}
	}
}

// While the server drains, the routes that start a run are refused before their body is read, and no others.
func TestDrainRefusesRoutesThatStartRuns(t *testing.T) {
	t.Parallel()
	f := newFront(t, nil)
	f.gateway.Unready()
	started := 0
	for i := range f.routes {
		rt := &f.routes[i]
		got, text, _ := f.ask(rt, "", credential(rt, "Bearer", bobKey)...)
		if (got == 503 && strings.Contains(text, `"draining"`)) != rt.StartsRun {
			t.Errorf("%s: %d %s", rt.Name, got, text)
		}
		if rt.StartsRun {
			started++
		}
	}
	if started != 10 {
		t.Errorf("%d routes start runs", started)
	}
}

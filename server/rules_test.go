package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
)

// A batch of MCP counts as many requests as it has messages.
func TestBatchesCountEachRequest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var got []string
	f := serve(t, &setting{now: func() time.Time { return now }, opts: func(o *server.Options) {
		o.MCP = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			wait, ok := server.Charge(r.Context(), 3)
			got = append(got, fmt.Sprint(ok, wait > 0))
		})
		o.Setup.Keys = []server.Key{{Name: "ann", Secret: secret.New(annKey), RequestsPerMinute: 6}}
	}})
	f.client.Transport = &http.Transport{} // the handler stands in for one of MCP
	for range 3 {
		f.do("POST", "/mcp", `{}`, "Authorization", "Bearer "+annKey)
	}
	if want := "true false false true"; strings.Join(got[:2], " ") != want {
		t.Errorf("charged %q, want %q", got, want)
	}
	if _, ok := server.Charge(context.Background(), 100); !ok {
		t.Error("what is in no request is charged")
	}
}

// One key cannot take the places of the others, and watchers take none of the places of requests.
func TestOneKeyCannotTakeAllPlaces(t *testing.T) {
	t.Parallel()
	entered, release := make(chan string, 64), make(chan struct{})
	f := serve(t, &setting{opts: func(o *server.Options) {
		o.Limits.MaxConcurrent, o.Limits.MaxWatchers = 8, 8
		o.MCP = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			entered <- r.Method
			select {
			case <-release:
			case <-r.Context().Done():
			}
		})
		o.Setup.Keys = []server.Key{{Name: "ann", Secret: secret.New(annKey), Metrics: true}, {Name: "bob", Secret: secret.New(bobKey), Metrics: true}}
	}})
	f.client.Transport = &http.Transport{} // the handler stands in for one of MCP
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
	f := serve(t, &setting{opts: func(o *server.Options) {
		o.Limits.MaxConcurrent = 2
		o.MCP = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			entered <- struct{}{}
			<-release
		})
	}})
	f.client.Transport = &http.Transport{} // the handler stands in for one of MCP
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
	f := serve(t, &setting{opts: func(o *server.Options) {
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
		if other, same := f.do("GET", "/healthz", ""); other.StatusCode != c.status || same != body {
			t.Errorf("%v: /healthz has status %d: %s", c.err, other.StatusCode, same)
		}
	}
	if n := strings.Count(log.String(), "not ready"); n != 1 {
		t.Errorf("%d lines in the log:\n%s", n, log.String())
	}
}

// Connections between two requests are bounded: one more has an idle one closed, and the others stay open. Which one the
// server sees as idle first depends on its goroutines.
func TestIdleConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{opts: func(o *server.Options) { o.Limits.MaxIdle = 2 }})
	addr := strings.TrimPrefix(f.url, "http://")
	closed := make(chan int, 3)
	var conns []net.Conn
	for i := range 3 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
		in := bufio.NewReader(conn)
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		conns = append(conns, conn)
		go func() {
			if _, err := in.Peek(1); err == io.EOF {
				closed <- i
			}
		}()
	}
	first := <-closed
	select {
	case second := <-closed:
		t.Errorf("the connections %d and %d were closed", first, second)
	default:
	}
	other := conns[(first+1)%3]
	_ = other.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := other.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an idle connection within the bound: %v", err)
	}
}

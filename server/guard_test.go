package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
)

func quickKeepAlive(o *server.Options) { o.Limits.KeepAlive = time.Millisecond }

// With keys, on an address that others reach, any name is taken where no names are configured, and none
// where the list is empty.
func TestEmptyListOfHostsAdmitsNone(t *testing.T) {
	t.Parallel()
	for _, hosts := range [][]string{nil, {}} {
		f := serve(t, &setting{opts: func(o *server.Options) {
			o.Setup.Hosts = hosts
			o.Setup.Keys = []server.Key{{Name: "ann", Secret: secret.New("0123456789abcdef")}}
		}})
		r := httptest.NewRequest("GET", "http://lathe.example.com/v1/models", http.NoBody)
		r.Header.Set("Authorization", "Bearer 0123456789abcdef")
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(203, 0, 113, 9), Port: 80})))
		w := httptest.NewRecorder()
		f.gateway.ServeHTTP(w, r)
		if want := map[bool]int{true: 200, false: 403}[hosts == nil]; w.Code != want {
			t.Errorf("hosts %#v: status %d, want %d", hosts, w.Code, want)
		}
	}
}

// A key whose lists are empty has no tools and no models.
func TestEmptyListsOfAKeyGrantNothing(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{opts: func(o *server.Options) {
		o.Setup.Keys = []server.Key{{Name: "ann", Secret: secret.New("0123456789abcdef"), Tools: []string{}, Models: []string{}}}
	}})
	for _, c := range []struct{ method, path, body, code string }{
		{"POST", "/v1/chat/completions", ask("sim/demo", "hello", ""), "model_forbidden"},
		{"POST", "/api/tools/calculator/call", `{"arguments":{"expression":"1"}}`, "tool_forbidden"},
	} {
		resp, body := f.do(c.method, c.path, c.body, "Authorization", "Bearer 0123456789abcdef")
		if resp.StatusCode != 403 || !strings.Contains(body, c.code) {
			t.Errorf("%s: status %d: %s", c.path, resp.StatusCode, body)
		}
	}
}

// The answer to a request whose key is wrong, or may not do what it asks for, has a header on every wire by which clients do not repeat
// it: Claude Code would for minutes.
func TestRefusedKeysAreNotRetried(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{opts: func(o *server.Options) {
		o.Setup.Keys = []server.Key{{Name: "ann", Secret: secret.New("0123456789abcdef"), Models: []string{}}}
	}})
	for name, c := range wireClients {
		before := c.codec.Vendor().KeyPrefix
		for status, key := range map[int]string{401: "another key", 403: "0123456789abcdef"} {
			for _, stream := range []bool{false, true} {
				a := c.send(t.Context(), f, stream, c.body(stream, nil, lathe.User("hi")), c.key, before+key)
				if a.status != status || a.header.Get("X-Should-Retry") != "false" {
					t.Errorf("%s: %d, X-Should-Retry %q: %s", name, a.status, a.header.Get("X-Should-Retry"), a.body)
				}
			}
		}
	}
}

func TestHostsAndOrigins(t *testing.T) { // T10, T26
	t.Parallel()
	f := serve(t, &setting{opts: func(o *server.Options) {
		o.Setup.Hosts = []string{"Lathe.example.com"}
		o.Setup.Origins = []string{"https://chat.example.com"}
	}})
	for name, c := range map[string]struct {
		header []string
		code   string // "": it is answered
	}{
		"an address":               {nil, ""},
		"localhost":                {[]string{"Host", "localhost:8700"}, ""},
		"a known name":             {[]string{"Host", "lathe.example.com"}, ""},
		"a known name with a dot":  {[]string{"Host", "lathe.example.com.:80"}, ""},
		"IPv6":                     {[]string{"Host", "[::1]:80"}, ""},
		"a name that was rebound":  {[]string{"Host", "evil.test"}, "unknown_host"},
		"a name with ours in it":   {[]string{"Host", "localhost.evil.test"}, "unknown_host"},
		"a known origin":           {[]string{"Origin", "https://chat.example.com", "Sec-Fetch-Site", "cross-site"}, ""},
		"another origin":           {[]string{"Origin", "https://evil.test", "Sec-Fetch-Site", "cross-site"}, "unknown_origin"},
		"another origin, no fetch": {[]string{"Origin", "https://evil.test"}, "unknown_origin"},
		"the null origin":          {[]string{"Origin", "null"}, "unknown_origin"},
		"its own page":             {[]string{"Sec-Fetch-Site", "same-origin"}, ""},
	} {
		resp, body := f.do("POST", "/v1/chat/completions", ask("sim/demo", "hello", ""), c.header...)
		if c.code != "" {
			checkError(t, name, resp, body, 403, c.code, "")
		} else if resp.StatusCode != 200 {
			t.Errorf("%s: status %d: %s", name, resp.StatusCode, body)
		}
		if got := resp.Header.Get("Access-Control-Allow-Origin"); (got != "") != (name == "a known origin") {
			t.Errorf("%s: Access-Control-Allow-Origin %q", name, got)
		}
	}
	resp, _ := f.do("OPTIONS", "/v1/chat/completions", "", "Origin", "https://chat.example.com", "Access-Control-Request-Method", "POST")
	if resp.StatusCode != 204 || resp.Header.Get("Access-Control-Allow-Origin") != "https://chat.example.com" {
		t.Errorf("preflight: %d %v", resp.StatusCode, resp.Header)
	}
	if got := resp.Header.Get("Access-Control-Allow-Methods"); got != "GET, POST, PATCH, DELETE" {
		t.Errorf("preflight allows the methods %s", got)
	}
	if resp, _ := f.do("PUT", "/api/sessions/s", ""); resp.StatusCode != 405 || resp.Header.Get("Allow") != "PATCH, DELETE" {
		t.Errorf("PUT of a session: %d, Allow %q", resp.StatusCode, resp.Header.Get("Allow"))
	}
	if got := resp.Header.Get("Access-Control-Allow-Headers"); strings.Contains(got, "x-stainless") {
		t.Errorf("preflight without names allows %s", got)
	}
	asked := "authorization,content-type,x-stainless-lang,x-stainless-retry-count,openai-organization,openai-project,user-agent,x-lathe-protocol,x-lathe-new-run,x-evil"
	resp, _ = f.do("OPTIONS", "/v1/chat/completions", "", "Origin", "https://chat.example.com", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", asked)
	allowed := strings.Split(strings.ToLower(resp.Header.Get("Access-Control-Allow-Headers")), ", ")
	for _, name := range strings.Split(asked, ",") {
		if slices.Contains(allowed, name) != (name != "x-evil") {
			t.Errorf("preflight for %s: %v", name, allowed)
		}
	}
	resp, _ = f.do("POST", "/v1/chat/completions", ask("sim/demo", "hello", ""), "Origin", "https://chat.example.com")
	for _, name := range []string{"X-Should-Retry", "X-Lathe-Passed", "X-Lathe-Ignored", "X-Lathe-Lost-Joins", "X-Lathe-Run-Id", "X-Request-Id"} {
		if !strings.Contains(resp.Header.Get("Access-Control-Expose-Headers"), name) {
			t.Errorf("%s is not exposed: %v", name, resp.Header)
		}
	}
	resp, _ = f.do("OPTIONS", "/v1/chat/completions", "", "Origin", "https://evil.test", "Access-Control-Request-Method", "POST")
	if resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("preflight of another origin: %v", resp.Header)
	}
}

func TestCheckAddr(t *testing.T) {
	t.Parallel()
	for addr, open := range map[string]bool{"127.0.0.1:80": true, "[::1]:80": true, "localhost:80": true, "127.9.9.9:0": true,
		":80": false, "0.0.0.0:80": false, "[::]:80": false, "192.168.0.1:80": false, "example.com:80": false, "nonsense": false} {
		if err := server.CheckAddr(addr, 0); (err == nil) != open {
			t.Errorf("%s without keys: %v", addr, err)
		}
		if err := server.CheckAddr(addr, 1); (err != nil) != (addr == "nonsense") {
			t.Errorf("%s with keys: %v", addr, err)
		}
	}
}

func packed(t *testing.T, encoding, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&b)
	if encoding == "zstd" {
		z, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		w = z
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestBodiesAboveTheirLimitAreRefused(t *testing.T) { // T15, T17
	t.Parallel()
	testdata.WithoutRace(t)
	const most = 100_000
	f := serve(t, &setting{opts: func(o *server.Options) { o.Limits.MaxBody = most }})
	body := ask("sim/demo", "hello", "")
	fill := func(n int) string { return body + strings.Repeat(" ", n-len(body)) }
	for name, c := range map[string]struct {
		body, encoding string
		status         int
		code           string
	}{
		"at the limit":          {fill(most), "", 200, ""},
		"one above":             {fill(most + 1), "", 413, "request_too_large"},
		"gzip":                  {packed(t, "gzip", body), "gzip", 200, ""},
		"zstd":                  {packed(t, "zstd", body), "zstd", 200, ""},
		"gzip at the limit":     {packed(t, "gzip", fill(most)), "gzip", 200, ""},
		"gzip one above":        {packed(t, "gzip", fill(most+1)), "gzip", 413, "request_too_large"},
		"zstd one above":        {packed(t, "zstd", fill(most+1)), "zstd", 413, "request_too_large"},
		"a bomb":                {packed(t, "gzip", strings.Repeat(" ", 5<<20)), "gzip", 413, "request_too_large"},
		"a zstd bomb":           {packed(t, "zstd", strings.Repeat(" ", 5<<20)), "zstd", 413, "request_too_large"},
		"no gzip":               {body, "gzip", 400, "invalid_body"},
		"half a gzip":           {packed(t, "gzip", body)[:30], "gzip", 400, "invalid_body"},
		"no zstd":               {body, "zstd", 400, "invalid_body"},
		"an unknown encoding":   {body, "br", 415, "unsupported_encoding"},
		"two encodings":         {body, "gzip, zstd", 415, "unsupported_encoding"},
		"no JSON":               {"{", "", 400, "invalid_request"},
		"nothing":               {"", "", 400, "invalid_request"},
		"an array":              {"[]", "", 400, "invalid_request"},
		"deep":                  {strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "", 400, "invalid_request"},
		"a member twice":        {`{"model":"a","model":"b"}`, "", 400, "invalid_request"},
		"two choices":           {ask("sim/demo", "x", `,"n":2`), "", 400, "invalid_request"},
		"the old function call": {ask("sim/demo", "x", `,"functions":[]`), "", 400, "invalid_request"},
	} {
		var header []string
		if c.encoding != "" {
			header = []string{"Content-Encoding", c.encoding}
		}
		resp, got := f.do("POST", "/v1/chat/completions", c.body, header...)
		if c.status == 200 {
			if resp.StatusCode != 200 {
				t.Errorf("%s: status %d: %s", name, resp.StatusCode, got)
			}
			continue
		}
		param := ""
		switch name {
		case "two choices":
			param = "n"
		case "the old function call":
			param = "functions"
		}
		checkError(t, name, resp, got, c.status, c.code, param)
	}
}

// A client that sends its head or its body byte by byte is cut off.
func TestSlowLoris(t *testing.T) { // T18
	t.Parallel()
	for name, c := range map[string]struct {
		sent   string
		limits server.Limits
	}{
		"head": {"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", server.Limits{HeaderTimeout: 50 * time.Millisecond}},
		"body": {"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{", server.Limits{BodyTimeout: 50 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, &setting{opts: func(o *server.Options) { o.Limits = c.limits }})
			conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_, _ = io.WriteString(conn, c.sent) // the server may have closed the connection before
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			answer, err := io.ReadAll(conn) // it ends because the server closes it
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal("the connection is still open")
			}
			if name == "body" && !strings.Contains(string(answer), " 408 ") {
				t.Errorf("answered %q (%v), want 408", answer, err)
			}
		})
	}
}

// A client that does not read is cut off, and its run ends.
func TestSlowReader(t *testing.T) { // T18
	t.Parallel()
	for name, limits := range map[string]server.Limits{
		"a write that takes too long": {WriteTimeout: 100 * time.Millisecond, MaxBuffer: 1 << 30},
		"too much that waits":         {WriteTimeout: time.Hour, MaxBuffer: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan struct{})
			model := endless{ended}
			f := serve(t, &setting{model: model, opts: func(o *server.Options) { o.Limits = limits }})
			conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			body := ask("sim/x", "x", `,"stream":true`)
			req, _ := http.NewRequest("POST", f.url+"/v1/chat/completions", strings.NewReader(body))
			if err := req.Write(conn); err != nil {
				t.Fatal(err)
			}
			<-ended // it would go on for ever
		})
	}
}

func TestRequestLogHoldsNoContent(t *testing.T) { // T21
	t.Parallel()
	var out lockedBuffer
	f := serve(t, &setting{opts: func(o *server.Options) {
		o.Setup.Keys = []server.Key{key("a")}
		o.Log = slog.New(slog.NewJSONHandler(&out, nil))
	}})
	const marker = "marker-of-the-content"
	f.complete(ask("sim/demo", marker, `,"user":"`+marker+`"`), "X-Request-Id", "req-of-mine")
	f.do("POST", "/v1/chat/completions", ask(marker, marker, `,"lathe":{"tools":["`+marker+`"]}`))
	f.do("GET", "/v1/"+marker+"?q="+marker, "")
	f.do("GET", "/api/tools", "", "Authorization", "Bearer "+marker, "X-Request-Id", "a "+marker)
	log := out.String()
	if strings.Contains(log, marker) || strings.Contains(log, text("a")) {
		t.Errorf("the log has content in it:\n%s", log)
	}
	for _, want := range []string{`"req-of-mine"`, `"key":"a"`, `"model":"sim/demo"`, `"run_id":"run_`, `"status":404`, `"status":401`, `"route":"POST /v1/chat/completions"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %s:\n%s", want, log)
		}
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestTooManyRequests(t *testing.T) { // T18
	t.Parallel()
	began, goOn := make(chan struct{}), make(chan struct{})
	model := &fake{turn: func(int, *lathe.Request) lathe.Message {
		began <- struct{}{}
		<-goOn
		return says(lathe.Text{Text: "ok"})
	}}
	f := serve(t, &setting{model: model, opts: func(o *server.Options) { o.Limits.MaxConcurrent = 1 }})
	var first sync.WaitGroup
	first.Go(func() { f.complete(ask("sim/x", "x", "")) })
	<-began
	resp, body := f.do("GET", "/v1/models", "")
	checkError(t, "one too many", resp, body, 503, "overloaded", "")
	if resp, _ := f.do("GET", "/livez", ""); resp.StatusCode != 200 {
		t.Errorf("/livez: %d", resp.StatusCode)
	}
	close(goOn)
	first.Wait()
}

func TestDrainWaitsForRequestsUntilItsTimeIsOver(t *testing.T) {
	t.Parallel()
	for _, inTime := range []bool{true, false} {
		began, goOn := make(chan struct{}), make(chan struct{})
		model := &fake{turn: func(int, *lathe.Request) lathe.Message { return says(lathe.Text{Text: "ok"}) }, wait: func(ctx context.Context) {
			close(began)
			select {
			case <-goOn:
			case <-ctx.Done():
			}
		}}
		f := serve(t, &setting{model: model, opts: quickKeepAlive})
		if resp, body := f.do("GET", "/readyz", ""); resp.StatusCode != 200 || body != "ok\n" {
			t.Errorf("/readyz: %d %s", resp.StatusCode, body)
		}
		resp, err := f.client.Post(f.url+"/v1/chat/completions", "application/json", strings.NewReader(ask("sim/x", "x", `,"stream":true`)))
		if err != nil {
			t.Fatal(err)
		}
		<-began
		f.gateway.Unready()
		if resp, _ := f.do("GET", "/readyz", ""); resp.StatusCode != 503 {
			t.Errorf("/readyz of a server that stops: %d", resp.StatusCode)
		}
		if resp, _ := f.do("GET", "/livez", ""); resp.StatusCode != 200 {
			t.Errorf("/livez of a server that stops: %d", resp.StatusCode)
		}
		refused, body := f.do("POST", "/v1/chat/completions", ask("sim/x", "x", ""))
		checkError(t, "a new run", refused, body, 503, "draining", "")
		if refused.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		ctx, cancel := context.WithCancel(t.Context())
		drained := make(chan struct{})
		go func() {
			f.gateway.Drain(ctx)
			close(drained)
		}()
		if inTime {
			close(goOn)
		} else {
			cancel()
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		<-drained
		cancel()
		s := readStream(t, string(text[bytes.Index(text, []byte("data:")):]))
		if inTime && (s.Content != "ok" || !s.done) || !inTime && s.errCode != "interrupted" {
			t.Errorf("in time %v: got %+v", inTime, s)
		}
	}
}

func TestReloadKeepsWhatIsAtWork(t *testing.T) {
	t.Parallel()
	began, goOn := make(chan struct{}), make(chan struct{})
	model := &fake{turn: func(int, *lathe.Request) lathe.Message {
		close(began)
		<-goOn
		return says(lathe.Text{Text: "ok"})
	}}
	f := serve(t, &setting{model: model})
	var first sync.WaitGroup
	first.Go(func() { f.complete(ask("sim/x", "x", "")) })
	<-began
	former, err := f.gateway.Reload(&server.Setup{Models: f.models, Tools: f.tools, Keys: []server.Key{key("new")}})
	if err != nil {
		t.Fatal(err)
	}
	if resp, _ := f.do("GET", "/v1/models", ""); resp.StatusCode != 401 {
		t.Errorf("after it: status %d, want 401", resp.StatusCode)
	}
	select {
	case <-former:
		t.Error("the former setup is at work, and was given up")
	default:
	}
	close(goOn)
	first.Wait()
	<-former
}

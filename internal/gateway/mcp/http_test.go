package mcp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/mcp"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
)

const (
	keyAnna = "anna-key-0123456789"
	keyBert = "bert-key-0123456789"
)

func twoKeys() func(*http.Request) (mcp.Caller, bool) {
	return mcp.Keys(
		mcp.Key{Secret: secret.New(keyAnna), Caller: mcp.Caller{Principal: "anna"}},
		mcp.Key{Secret: secret.New(keyBert), Caller: mcp.Caller{Principal: "bert", Allow: []string{"echo"}, Labels: map[string]string{"team": "b"}}})
}

// session opens a session and returns its id.
func session(t testing.TB, c *http.Client, url string, headers ...string) string {
	t.Helper()
	status, id, answer := post(t, c, url, hello, headers...)
	if status != http.StatusOK || id == "" {
		t.Fatalf("initialize: %d %q %s", status, id, answer)
	}
	if status, _, answer := post(t, c, url, ready, append(headers, "Mcp-Session-Id", id)...); status != http.StatusAccepted {
		t.Fatalf("initialized: %d %s", status, answer)
	}
	return id
}

func call(id int, name, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, name, args)
}

func modernCall(id int, name, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,%s}}`, id, name, args, meta)
}

func modern(method, name string) []string {
	h := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method}
	if name != "" {
		h = append(h, "Mcp-Name", name)
	}
	return h
}

func TestHTTPServesBothErasAtOneAddress(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil, reader("echo", echo))
	url, c := r.web(), client(t)
	id := session(t, c, url)
	status, _, answer := post(t, c, url, call(1, "echo", `{"a":1}`), "Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-11-25")
	if status != 200 || !strings.Contains(answer, `"structuredContent":{"a":1}`) || strings.Contains(answer, "resultType") {
		t.Errorf("2025-11-25: %d %s", status, answer)
	}
	status, sid, answer := post(t, c, url, modernCall(1, "echo", `{"a":1}`), modern("tools/call", "echo")...)
	if status != 200 || sid != "" || !strings.Contains(answer, `"structuredContent":{"a":1}`) || !strings.Contains(answer, `"resultType":"complete"`) {
		t.Errorf("2026-07-28: %d %q %s", status, sid, answer)
	}
	var got []string
	for _, e := range r.log.all() {
		if s, ok := e.Data.(*event.RunStarted); ok {
			got = append(got, s.Labels["entry"]+" "+s.Labels["transport"]+" "+s.Labels["protocol"])
		}
	}
	if diff := cmp.Diff([]string{"mcp http 2025-11-25", "mcp http 2026-07-28"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestHTTPRefusesBeforeItDecodes(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, &mcp.Options{MaxMessageBytes: 1000}, reader("echo", echo))
	url, c := r.web(), client(t)
	id := session(t, c, url)
	in := []string{"Mcp-Session-Id", id}
	tests := []struct {
		name, msg string
		headers   []string
		status    int
		want      string
	}{
		{"no JSON", `nope`, in, 400, "-32700"},
		{"empty", ``, in, 400, "-32700"},
		{"T11 duplicate", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1,"a":2}}}`, in, 400, `"id":1,"error":{"code":-32600`},
		{"T11 duplicate, modern", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1,"a":2},` + meta + `}}`, modern("tools/call", "echo"), 400, "duplicate_key"},
		{"batch", `[` + call(1, "echo", `{}`) + `]`, in, 400, "batches"},
		{"T15 too large", call(1, "echo", `{"a":"`+strings.Repeat("x", 1000)+`"}`), in, 413, "too large"},
		{"unknown method", `{"jsonrpc":"2.0","id":1,"method":"nope"}`, in, 200, "-32601"},
		{"unknown method, modern", `{"jsonrpc":"2.0","id":1,"method":"nope","params":{` + meta + `}}`, modern("nope", ""), 404, "-32601"},
		{"unknown notification", `{"jsonrpc":"2.0","method":"nope"}`, in, 202, ""},
		{"no session", call(1, "echo", `{}`), nil, 400, "no session"},
		{"not a session", call(1, "echo", `{}`), []string{"Mcp-Session-Id", "nope"}, 404, ""},
		{"T38 header without meta", call(1, "echo", `{}`), modern("tools/call", "echo"), 400, "-32602"},
		{"T38 meta without header", modernCall(1, "echo", `{}`), nil, 400, "-32020"},
		{"T38 header and meta differ", modernCall(1, "echo", `{}`), []string{"Mcp-Protocol-Version", "2026-08-01", "Mcp-Method", "tools/call", "Mcp-Name", "echo"}, 400, "-32020"},
		{"other name in the header", modernCall(1, "echo", `{}`), modern("tools/call", "other"), 400, "-32020"},
		{"T17 compressed", call(1, "echo", `{}`), append([]string{"Content-Encoding", "gzip"}, in...), 415, "encoded"},
		{"other media type", call(1, "echo", `{}`), append([]string{"Content-Type", "text/plain"}, in...), 415, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := tt.headers
			if tt.name == "other media type" { // the server reads the first value only
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(tt.msg))
				req.Header.Set("Content-Type", "text/plain")
				req.Header.Set("Accept", "application/json, text/event-stream")
				req.Header.Set("Mcp-Session-Id", id)
				res, err := c.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				if res.StatusCode != tt.status {
					t.Errorf("got %d", res.StatusCode)
				}
				return
			}
			status, _, answer := post(t, c, url, tt.msg, h...)
			if status != tt.status || !strings.Contains(answer, tt.want) {
				t.Errorf("got %d %s, want %d with %s", status, answer, tt.status, tt.want)
			}
		})
	}
	if n := len(r.log.all()); n != 0 {
		t.Errorf("%d events: a refused message reached the runner", n)
	}
}

// T10: a page that was made to point at this machine, or any other page, calls nothing.
func TestT10_DNSRebindingAndForeignPages(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil, reader("echo", echo))
	open := newRig(t, nil, &mcp.Options{HTTP: mcp.HTTPOptions{Hosts: []string{"tools.example.com"}, Origins: []string{"https://app.example.com"}}})
	anyHost := newRig(t, nil, &mcp.Options{HTTP: mcp.HTTPOptions{Hosts: []string{"*"}}})
	local, remote, every, c := r.web(), open.web(), anyHost.web(), client(t)
	tests := []struct {
		url     string
		headers []string
		ok      bool
	}{
		{local, nil, true},
		{local, []string{"Host", "localhost:1"}, true},
		{local, []string{"Host", "[::1]:1"}, true},
		{local, []string{"Host", "127.0.0.2"}, true},
		{local, []string{"Host", "evil.test"}, false},
		{local, []string{"Host", "localhost.evil.test"}, false},
		{local, []string{"Host", "127.0.0.1.evil.test"}, false},
		{local, []string{"Host", "localhost@evil.test"}, false},
		{local, []string{"Host", "0.0.0.0"}, false},
		{local, []string{"Origin", "http://localhost:3000"}, true},
		{local, []string{"Origin", "http://127.0.0.1:3000"}, true},
		{local, []string{"Origin", "http://evil.test"}, false},
		{local, []string{"Origin", "http://localhost.evil.test"}, false},
		{local, []string{"Origin", "null"}, false},
		{local, []string{"Origin", "file://"}, false},
		{local, []string{"Origin", "chrome-extension://abc"}, false},
		{local, []string{"Origin", "http://localhost:3000", "Origin", "http://evil.test"}, false},
		{local, []string{"Host", "evil.test", "Origin", "http://evil.test"}, false},
		{local, []string{"Sec-Fetch-Site", "cross-site"}, false},
		{local, []string{"Sec-Fetch-Site", "cross-site", "Origin", "http://localhost:3000"}, false},
		{local, []string{"Sec-Fetch-Site", "same-origin", "Origin", "http://localhost:3000"}, true},
		{remote, nil, false},
		{remote, []string{"Host", "tools.example.com"}, true},
		{remote, []string{"Host", "TOOLS.example.com:443"}, true},
		{remote, []string{"Host", "tools.example.com", "Origin", "https://app.example.com"}, true},
		{remote, []string{"Host", "tools.example.com", "Origin", "https://app.example.com", "Sec-Fetch-Site", "cross-site"}, true},
		{remote, []string{"Host", "tools.example.com", "Origin", "https://app.example.com.evil.test"}, false},
		{remote, []string{"Host", "tools.example.com", "Origin", "http://localhost:3000"}, false},
		{every, []string{"Host", "evil.test"}, true},
		{every, []string{"Host", "evil.test", "Origin", "http://localhost:3000"}, false},
	}
	for _, tt := range tests {
		status, _, answer := post(t, c, tt.url, hello, tt.headers...)
		if ok := status == http.StatusOK; ok != tt.ok || !ok && status != http.StatusForbidden {
			t.Errorf("%v: %d %s", tt.headers, status, answer)
		}
	}
}

// TestListsHaveCacheHints: what one caller may see is for no other and for no cache on the way, and is asked for again.
func TestListsHaveCacheHints(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil, reader("echo", echo))
	r.offer(&mcp.Catalog{Resources: []mcp.Resource{{Name: "style", URI: "t:style", Text: "be brief"}, {Name: "part", URI: "p:{x}", Text: "{x}"}},
		Prompts: []mcp.Prompt{{Name: "review", Messages: []mcp.PromptMessage{{Text: "Review this."}}}}})
	url, c := r.web(), client(t)
	for method, list := range map[string]string{"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates", "server/discover": "supportedVersions"} {
		_, _, answer := post(t, c, url, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+meta+`}}`, modern(method, "")...)
		if !strings.Contains(answer, `"`+list+`":[`) || !strings.Contains(answer, `"ttlMs":0`) || !strings.Contains(answer, `"cacheScope":"private"`) {
			t.Errorf("%s: %s", method, answer)
		}
	}
}

func TestHTTPKeys(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, &mcp.Options{HTTP: mcp.HTTPOptions{Identify: twoKeys()}}, reader("echo", echo), reader("other", echo))
	url, c := r.web(), client(t)
	for _, h := range [][]string{nil, {"Authorization", "Bearer nope"}, {"Authorization", "Bearer "}, {"Authorization", keyAnna}, {"Authorization", "Basic " + keyAnna},
		{"Authorization", "Bearer " + keyAnna + "x"}, {"Authorization", "Bearer " + keyAnna, "Authorization", "Bearer nope"}} {
		if status, _, answer := post(t, c, url, hello, h...); status != http.StatusUnauthorized || strings.Contains(answer, keyAnna) {
			t.Errorf("%v: %d %s", h, status, answer)
		}
	}
	tools := func(key string) string {
		h := append(modern("tools/list", ""), "Authorization", "Bearer "+key)
		_, _, answer := post(t, c, url, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+meta+`}}`, h...)
		return answer
	}
	if got := tools(keyAnna); !strings.Contains(got, `"name":"other"`) || !strings.Contains(got, `"cacheScope":"private"`) {
		t.Errorf("anna sees %s", got)
	}
	if got := tools(keyBert); strings.Contains(got, `"name":"other"`) || !strings.Contains(got, `"name":"echo"`) {
		t.Errorf("bert sees %s", got)
	}
	h := append(modern("tools/call", "other"), "Authorization", "bearer "+keyBert)
	if _, _, got := post(t, c, url, modernCall(1, "other", `{}`), h...); !strings.Contains(got, "unknown_tool") || strings.Contains(got, `"other"`) {
		t.Errorf("bert calls what is not his: %s", got)
	}
	for _, e := range r.log.all() {
		if s, ok := e.Data.(*event.RunStarted); ok {
			if s.Principal != "bert" || s.Labels["team"] != "b" {
				t.Errorf("the call is %q's, labels %v", s.Principal, s.Labels)
			}
		}
	}
}

// T25: a caller that knows the id of another caller's session cannot use that session.
func TestT25_SessionsBelongToTheirCaller(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, &mcp.Options{HTTP: mcp.HTTPOptions{Identify: twoKeys()}}, reader("echo", echo))
	url, c := r.web(), client(t)
	id := session(t, c, url, "Authorization", "Bearer "+keyAnna)
	asBert := []string{"Authorization", "Bearer " + keyBert, "Mcp-Session-Id", id}
	if status, _, answer := post(t, c, url, call(1, "echo", `{}`), asBert...); status != http.StatusNotFound {
		t.Errorf("bert calls in anna's session: %d %s", status, answer)
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		req, _ := http.NewRequestWithContext(t.Context(), method, url, nil)
		req.Header.Set("Authorization", "Bearer "+keyBert)
		req.Header.Set("Mcp-Session-Id", id)
		req.Header.Set("Accept", "text/event-stream")
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusNotFound {
			t.Errorf("bert's %s of anna's session: %d", method, res.StatusCode)
		}
	}
	if status, _, _ := post(t, c, url, call(1, "echo", `{}`), "Authorization", "Bearer "+keyAnna, "Mcp-Session-Id", id); status != http.StatusOK {
		t.Errorf("anna's own call: %d", status)
	}
	for _, e := range r.log.all() {
		if e.SessionID == id || e.SessionID == "" {
			t.Error("an event shows the session's id, which opens it")
		}
	}
}

// T8: what a client authenticates with goes no further.
func TestT8_NoTokenPassthrough(t *testing.T) {
	t.Parallel()
	var seen sync.Map
	p := policyFunc(func(c *lathe.CallInfo) lathe.Decision {
		seen.Store(fmt.Sprintf("%+v %+v %s", *c.Run, *c.Call, c.Args), true)
		return lathe.Allow
	})
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r := newRig(t, &tool.Options{Policy: p, Log: log}, &mcp.Options{Log: log, HTTP: mcp.HTTPOptions{Identify: twoKeys()}}, reader("echo", echo))
	url, c := r.web(), client(t)
	for _, h := range [][]string{{"Authorization", "Bearer " + keyAnna}, {"Authorization", "Bearer " + keyAnna + "wrong"}, {"Authorization", "Bearer " + keyAnna, "Host", "evil.test"}} {
		_, _, answer := post(t, c, url, modernCall(1, "echo", `{"word":"canary"}`), append(modern("tools/call", "echo"), h...)...)
		if strings.Contains(answer, keyAnna) {
			t.Errorf("answered %s", answer)
		}
	}
	found := 0
	seen.Range(func(k, _ any) bool {
		found++
		if strings.Contains(k.(string), keyAnna) {
			t.Errorf("the policy was told %s", k)
		}
		return true
	})
	if found != 1 {
		t.Errorf("%d calls", found)
	}
	for _, e := range r.log.all() {
		b, err := json.Marshal(e.Data)
		if err != nil || bytes.Contains(b, []byte(keyAnna)) || bytes.Contains(b, []byte("canary")) {
			t.Errorf("%v: %s", err, b)
		}
	}
	if s := logged.String(); strings.Contains(s, keyAnna) || strings.Contains(s, "canary") { // T21
		t.Errorf("logged %s", s)
	}
}

func TestHTTPBoundsSessions(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, &mcp.Options{MaxSessions: 2}, reader("echo", echo))
	url, c := r.web(), client(t)
	first := session(t, c, url)
	session(t, c, url)
	if _, id, answer := post(t, c, url, hello); !strings.Contains(answer, "too many sessions") || r.server.Sessions() != 2 {
		t.Errorf("a third session: %q %s, %d sessions", id, answer, r.server.Sessions())
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
	req.Header.Set("Mcp-Session-Id", first)
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: %d", res.StatusCode)
	}
	for r.server.Sessions() > 1 { // the end of a session is noted right after
		if t.Context().Err() != nil {
			t.Fatal("the session did not end")
		}
	}
	session(t, c, url)
}

func TestHTTPEndOfSessionEndsItsCalls(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan struct{})
	r := newRig(t, nil, nil, reader("stuck", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}))
	url, c := r.web(), client(t)
	id := session(t, c, url)
	done := make(chan string, 1)
	go func() {
		_, _, answer := post(t, c, url, call(1, "stuck", `{}`), "Mcp-Session-Id", id)
		done <- answer
	}()
	<-began
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
	req.Header.Set("Mcp-Session-Id", id)
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	<-ended
	<-done
}

// A client of 2026-07-28 that goes away cancels its call.
func TestHTTPGoneClientCancels(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan struct{})
	r := newRig(t, nil, nil, reader("stuck", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}))
	url, c := r.web(), client(t)
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(modernCall(1, "stuck", `{}`)))
	h := modern("tools/call", "stuck")
	for i := 0; i < len(h); i += 2 {
		req.Header.Set(h[i], h[i+1])
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	go func() {
		<-began
		cancel()
	}()
	if res, err := c.Do(req); err == nil {
		_ = res.Body.Close()
	}
	<-ended
}

func TestHTTPBoundsCalls(t *testing.T) {
	t.Parallel()
	began, release := make(chan struct{}), make(chan struct{})
	r := newRig(t, nil, &mcp.Options{MaxCalls: 1}, reader("slow", func(context.Context, json.RawMessage) (*lathe.Output, error) {
		began <- struct{}{}
		<-release
		return &lathe.Output{Data: json.RawMessage(`{}`)}, nil
	}))
	url, c := r.web(), client(t)
	done := make(chan string, 1)
	go func() {
		_, _, answer := post(t, c, url, modernCall(1, "slow", `{}`), modern("tools/call", "slow")...)
		done <- answer
	}()
	<-began
	if _, _, answer := post(t, c, url, modernCall(2, "slow", `{}`), modern("tools/call", "slow")...); !strings.Contains(answer, `"isError":true`) || !strings.Contains(answer, "rate_limited") {
		t.Errorf("a second call: %s", answer)
	}
	close(release)
	if answer := <-done; !strings.Contains(answer, `"structuredContent":{}`) {
		t.Errorf("the first call: %s", answer)
	}
}

func TestHTTPBoundsRequests(t *testing.T) {
	t.Parallel()
	began, release := make(chan struct{}), make(chan struct{})
	r := newRig(t, nil, &mcp.Options{HTTP: mcp.HTTPOptions{MaxRequests: 1}}, reader("slow", func(context.Context, json.RawMessage) (*lathe.Output, error) {
		close(began)
		<-release
		return &lathe.Output{Data: json.RawMessage(`{}`)}, nil
	}))
	url, c := r.web(), client(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		post(t, c, url, modernCall(1, "slow", `{}`), modern("tools/call", "slow")...)
	}()
	<-began
	if status, _, answer := post(t, c, url, hello); status != http.StatusServiceUnavailable {
		t.Errorf("got %d %s", status, answer)
	}
	close(release)
	<-done
}

func TestHTTPOtherMethods(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	url, c := r.web(), client(t)
	for _, method := range []string{"OPTIONS", "PUT", "PATCH", "HEAD"} {
		req, _ := http.NewRequestWithContext(t.Context(), method, url, nil)
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d %v", method, res.StatusCode, res.Header)
		}
	}
	r.server.Close()
	if status, _, answer := post(t, c, url, hello); status != http.StatusServiceUnavailable {
		t.Errorf("after Close: %d %s", status, answer)
	}
}

// T18: a body that does not come is not waited for.
func TestT18_SlowBody(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, &mcp.Options{HTTP: mcp.HTTPOptions{BodyTimeout: 50 * time.Millisecond}})
	url := strings.TrimSuffix(strings.TrimPrefix(r.web(), "http://"), "/mcp")
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", url)
	var got [512]byte
	n, err := conn.Read(got[:])
	if err != nil || !strings.Contains(string(got[:n]), "400 Bad Request") {
		t.Errorf("%v: %s", err, got[:n])
	}
}

// T17: a bomb is not even unpacked.
func TestT17_CompressedBody(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := z.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, nil, nil)
	if status, _, _ := post(t, client(t), r.web(), bomb.String(), "Content-Encoding", "gzip"); status != http.StatusUnsupportedMediaType {
		t.Errorf("got %d", status)
	}
}

// A session that sends nothing ends.
func TestHTTPIdleSessionsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, &mcp.Options{SessionIdle: time.Hour}, reader("echo", echo))
		send := func(msg, id string) *httptest.ResponseRecorder {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(msg))
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			if id != "" {
				req.Header.Set("Mcp-Session-Id", id)
			}
			rec := httptest.NewRecorder()
			r.server.Handler().ServeHTTP(rec, req)
			return rec
		}
		id := send(hello, "").Header().Get("Mcp-Session-Id")
		send(ready, id)
		<-time.After(40 * time.Minute)
		send(call(1, "echo", `{}`), id)
		<-time.After(40 * time.Minute)
		synctest.Wait()
		if r.server.Sessions() != 1 {
			t.Error("a session that is used ended")
		}
		<-time.After(21 * time.Minute)
		synctest.Wait()
		if r.server.Sessions() != 0 {
			t.Error("an idle session did not end")
		}
		if rec := send(call(2, "echo", `{}`), id); rec.Code != http.StatusNotFound {
			t.Errorf("an ended session answers %d", rec.Code)
		}
		r.server.Close()
	})
}

// policyFunc decides about calls, and offers every tool.
type policyFunc func(*lathe.CallInfo) lathe.Decision

func (f policyFunc) Tool(*lathe.RunInfo, *lathe.ToolSpec) lathe.Verdict {
	return lathe.Verdict{Decision: lathe.Allow, Rule: "test"}
}
func (f policyFunc) Step(*lathe.StepInfo) lathe.Verdict {
	return lathe.Verdict{Decision: lathe.Allow, Rule: "test"}
}
func (f policyFunc) Call(c *lathe.CallInfo) lathe.Verdict {
	return lathe.Verdict{Decision: f(c), Rule: "test"}
}

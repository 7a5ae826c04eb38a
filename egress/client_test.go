package egress

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// local returns a client that may reach the servers at those addresses, under the names that the
// resolver leads to loopback.
func local(t *testing.T, opts *Options, urls ...string) *Client {
	t.Helper()
	r := &Rules{Hosts: []string{"*"}, Schemes: []string{"http", "https"}, Private: []string{"127.0.0.1"}}
	for _, s := range urls {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		port, _ := portOf(u)
		r.Ports = append(r.Ports, port)
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	o.Resolver = everything{}
	c, err := New(r, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// everything resolves to loopback.
type everything struct{}

func (everything) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// seen is what a server got of one request.
type seen struct {
	method, path, body string
	header             http.Header
}

// chain serves the handlers and notes what they get.
func chain(t *testing.T, h http.HandlerFunc) (srv *httptest.Server, got func() []seen) {
	t.Helper()
	ch := make(chan seen, 64)
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		ch <- seen{r.Method, r.URL.Path, string(b), r.Header.Clone()}
		h(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv, func() (all []seen) {
		for {
			select {
			case s := <-ch:
				all = append(all, s)
			default:
				return all
			}
		}
	}
}

func named(t *testing.T, raw, host string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u.Scheme + "://" + host + ":" + u.Port()
}

// What the caller sends along stays with the first origin: scheme, host and port. Not even a name
// below it gets any of it, nor does the origin itself once the request has been elsewhere.
func TestT8_CredentialsStayWithTheirOrigin(t *testing.T) {
	t.Parallel()
	other, otherGot := chain(t, func(w http.ResponseWriter, r *http.Request) {
		if back := r.URL.Query().Get("back"); back != "" {
			http.Redirect(w, r, back, http.StatusFound)
		}
	})
	var to atomic.Value
	first, firstGot := chain(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/start" {
			http.Redirect(w, r, to.Load().(string), http.StatusFound)
		}
	})
	c := local(t, nil, first.URL, other.URL)
	do := func(target string) {
		t.Helper()
		to.Store(target)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, named(t, first.URL, "api.example")+"/start?key=canary", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range []string{"Authorization", "Cookie", "X-Api-Key", "Mcp-Session-Id", "X-Anything"} {
			req.Header.Set(h, "canary")
		}
		req.Header.Set("Accept", "application/json")
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	leaks := func(s seen) bool { return strings.Contains(fmt.Sprint(s.header), "canary") }
	for _, host := range []string{"other.example", "api.example", "sub.api.example"} { // another port, at least
		do(named(t, other.URL, host) + "/end")
		if got := otherGot(); len(got) != 1 || leaks(got[0]) || got[0].header.Get("Accept") != "application/json" {
			t.Errorf("%s got %v", host, got)
		}
		firstGot()
	}
	do(named(t, first.URL, "sub.api.example") + "/end") // another host, the same port
	if got := firstGot(); len(got) != 2 || !leaks(got[0]) || leaks(got[1]) {
		t.Errorf("a name below got %v", got)
	}
	do(named(t, first.URL, "api.example") + "/end")
	if got := firstGot(); len(got) != 2 || !leaks(got[1]) || got[1].header.Get("Referer") != "" {
		t.Errorf("the same origin got %v", got)
	}
	do(named(t, other.URL, "other.example") + "/?back=" + url.QueryEscape(named(t, first.URL, "api.example")+"/end"))
	if got := firstGot(); len(got) != 2 || leaks(got[1]) {
		t.Errorf("the origin got, by way of another, %v", got)
	}
}

func TestT9_RedirectsKeepMethodAndBody(t *testing.T) {
	t.Parallel()
	other, otherGot := chain(t, func(http.ResponseWriter, *http.Request) {})
	first, firstGot := chain(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			return
		}
		var status int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &status)
		to := "/end"
		if r.URL.Query().Has("abroad") {
			to = other.URL + "/end"
		}
		http.Redirect(w, r, to, status)
	})
	c := local(t, nil, first.URL, other.URL)
	for _, tt := range []struct {
		method string
		path   string
		code   Code
		end    string // method of the last request
	}{
		{"GET", "/301", "", "GET"}, {"GET", "/302", "", "GET"}, {"GET", "/303", "", "GET"}, {"GET", "/307", "", "GET"}, {"GET", "/308", "", "GET"},
		{"HEAD", "/302", "", "HEAD"},
		{"POST", "/301", CodeRedirectRefused, ""}, {"POST", "/302", CodeRedirectRefused, ""}, {"PUT", "/302", CodeRedirectRefused, ""}, {"DELETE", "/301", CodeRedirectRefused, ""},
		{"POST", "/303", "", "GET"}, {"POST", "/307", "", "POST"}, {"PUT", "/308", "", "PUT"},
		{"POST", "/307?abroad", CodeRedirectRefused, ""}, {"DELETE", "/308?abroad", CodeRedirectRefused, ""},
		{"POST", "/303?abroad", "", "GET"}, {"GET", "/307?abroad", "", "GET"},
	} {
		var body io.Reader
		if tt.method == "POST" || tt.method == "PUT" {
			body = strings.NewReader("the body")
		}
		req, err := http.NewRequestWithContext(t.Context(), tt.method, first.URL+tt.path, body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err == nil {
			err = resp.Body.Close()
		}
		got := append(firstGot(), otherGot()...)
		if CodeOf(err) != tt.code {
			t.Errorf("%s %s: got %v, want code %q", tt.method, tt.path, err, tt.code)
		}
		if tt.end == "" {
			if len(got) != 1 {
				t.Errorf("%s %s: went on to %v", tt.method, tt.path, got)
			}
			continue
		}
		last := got[len(got)-1]
		if len(got) != 2 || last.method != tt.end || (last.body != "") != (tt.end == "POST" || tt.end == "PUT") {
			t.Errorf("%s %s: ended with %v", tt.method, tt.path, got)
		}
	}
}

func TestT9_RedirectsDoNotLeaveTLS(t *testing.T) {
	t.Parallel()
	plain, plainGot := chain(t, func(http.ResponseWriter, *http.Request) {})
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, plain.URL, http.StatusFound) }))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	roots := secure.Client().Transport.(*http.Transport).TLSClientConfig
	c := local(t, &Options{TLS: roots}, plain.URL, secure.URL)
	if err := get(t, c, secure.URL); CodeOf(err) != CodeRedirectRefused || len(plainGot()) != 0 {
		t.Errorf("got %v, want %s", err, CodeRedirectRefused)
	}
	strict := local(t, &Options{TLS: &tls.Config{MinVersion: tls.VersionTLS12}}, secure.URL)
	err := get(t, strict, secure.URL)
	if e := Plain(err); e.Code != CodeTLS || !e.Unsent {
		t.Errorf("an unknown authority: got %v, want %s", err, CodeTLS)
	}
}

func TestT9_RedirectChains(t *testing.T) {
	t.Parallel()
	srv, got := chain(t, func(w http.ResponseWriter, r *http.Request) {
		var left int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &left)
		if left > 0 {
			http.Redirect(w, r, fmt.Sprintf("/%d", left-1), http.StatusFound)
		}
	})
	for _, tt := range []struct{ most, hops int }{{0, 4}, {0, 5}, {0, 6}, {2, 2}, {2, 3}, {-1, 0}, {-1, 1}} {
		allowed := map[int]int{0: 5, -1: 0}[tt.most]
		if tt.most > 0 {
			allowed = tt.most
		}
		c := local(t, &Options{MaxRedirects: tt.most}, srv.URL)
		err := get(t, c, fmt.Sprintf("%s/%d", srv.URL, tt.hops))
		if want := tt.hops <= allowed; want != (err == nil) || !want && CodeOf(err) != CodeRedirectLimit {
			t.Errorf("max %d, %d redirects: got %v", tt.most, tt.hops, err)
		}
		if n := len(got()); n != min(tt.hops, allowed)+1 {
			t.Errorf("max %d, %d redirects: %d requests", tt.most, tt.hops, n)
		}
	}
	for _, to := range []string{"http://169.254.169.254/latest", "file:///etc/passwd", "http://user:pw@127.0.0.1/", "http://0x7f.1/", "//[::1]/", "gopher://x/"} {
		redirect, _ := chain(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
		})
		err := get(t, local(t, nil, redirect.URL, "http://x:80"), redirect.URL)
		if e := Plain(err); err == nil || !e.Refused {
			t.Errorf("redirect to %s: got %v, want a refusal", to, err)
		}
	}
}

// No Host but that of the URL: the rules have looked at that one.
func TestT9_HostHeaderIsTheURLs(t *testing.T) {
	t.Parallel()
	srv, got := chain(t, func(http.ResponseWriter, *http.Request) {})
	c := local(t, nil, srv.URL)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "internal.example"
	if _, err := c.Do(req); CodeOf(err) != CodeHost || len(got()) != 0 {
		t.Errorf("got %v, want %s", err, CodeHost)
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rules Rules
		url   string
		want  Code
	}{
		{Rules{}, "https://example.com/", CodeHost},
		{Rules{Hosts: []string{"example.com"}}, "https://example.com/", ""},
		{Rules{Hosts: []string{"example.com"}}, "https://EXAMPLE.com:443/", ""},
		{Rules{Hosts: []string{"Example.com"}}, "https://example.com/", ""},
		{Rules{Hosts: []string{"example.com"}}, "http://example.com/", CodeScheme},
		{Rules{Hosts: []string{"example.com"}, Schemes: []string{"http"}}, "http://example.com/", ""},
		{Rules{Hosts: []string{"example.com"}}, "https://example.com:8443/", CodePort},
		{Rules{Hosts: []string{"example.com"}, Ports: []int{8443}}, "https://example.com:8443/", ""},
		{Rules{Hosts: []string{"example.com"}, Ports: []int{8443}}, "https://example.com/", CodePort},
		{Rules{Hosts: []string{"example.com"}}, "https://sub.example.com/", CodeHost},
		{Rules{Hosts: []string{"*.example.com"}}, "https://a.b.example.com/", ""},
		{Rules{Hosts: []string{"*.example.com"}}, "https://example.com/", CodeHost},
		{Rules{Hosts: []string{"*.example.com"}}, "https://badexample.com/", CodeHost},
		{Rules{Hosts: []string{"*.example.com"}}, "https://example.com.evil.test/", CodeHost},
		{Rules{Hosts: []string{"10.0.0.7"}}, "https://10.0.0.7/", CodeAddress},
		{Rules{Hosts: []string{"10.0.0.7"}, Private: []string{"10.0.0.0/24"}}, "https://10.0.0.7/", ""},
		{Rules{Hosts: []string{"*"}}, "https://example.com./", CodeURL},
		{Rules{Hosts: []string{"*"}}, "https://example.com:/", CodeURL},
		{Rules{Hosts: []string{"*"}}, "https://example.com:0/", CodeURL},
		{Rules{Hosts: []string{"*"}}, "https://user@example.com/", CodeURL},
		{Rules{Hosts: []string{"*"}}, "https://017700000001/", CodeURL},
		{Rules{Hosts: []string{"*"}}, "https://0177.0.0.1/", CodeURL},
		{Rules{Hosts: []string{"*"}}, "https://127.1/", CodeURL},
		{Rules{Hosts: []string{"*"}}, "https://0x7f000001/", CodeURL},
		{Rules{Hosts: []string{"*"}}, "https://[::ffff:8.8.8.8]/", CodeURL},
		{Rules{Hosts: []string{"*"}}, "https://[fe80::1%25eth0]/", CodeURL},
		{Rules{Hosts: []string{"*"}}, "https://exämple.com/", CodeURL},
		{Rules{Hosts: []string{"*"}}, "https:opaque", CodeURL},
		{Rules{Hosts: []string{"*"}}, "https:///path", CodeURL},
		{Rules{Hosts: []string{"localhost"}}, "https://localhost/", CodeAddress},
		{Rules{Hosts: []string{"localhost"}, Private: []string{"localhost"}}, "https://localhost/", ""},
		{Rules{Hosts: []string{"*"}, Private: []string{"localhost"}}, "https://x.localhost/", CodeAddress},
	} {
		c, err := New(&tt.rules, nil)
		if err != nil {
			t.Fatalf("%+v: %v", tt.rules, err)
		}
		if got := CodeOf(c.Check(tt.url)); got != tt.want {
			t.Errorf("%+v, %s: got %q, want %q", tt.rules, tt.url, got, tt.want)
		}
	}
	for _, bad := range []Rules{
		{Hosts: []string{""}}, {Hosts: []string{"*."}}, {Hosts: []string{"a*.example.com"}}, {Hosts: []string{"*example.com"}}, {Hosts: []string{"*.10.0.0.1"}},
		{Hosts: []string{"https://example.com"}}, {Hosts: []string{"0x7f.1"}}, {Schemes: []string{"ftp"}}, {Private: []string{"10.0.0.1/8"}},
		{Private: []string{"10.0.0.0/33"}}, {Private: []string{"*"}},
	} {
		if _, err := New(&bad, nil); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
	c, err := New(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := get(t, c, "https://example.com/"); CodeOf(err) != CodeHost {
		t.Errorf("no rules: got %v, want %s", err, CodeHost)
	}
}

func packed(t *testing.T, b []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestT17_BodiesAreBounded(t *testing.T) {
	t.Parallel()
	const limit = 5 << 18 // above ratioFloor
	text := bytes.Repeat([]byte("every answer has an end. "), limit/25+1)[:limit]
	noise := make([]byte, limit)
	for i, x := 0, uint32(1); i < limit; i++ {
		x = x*1664525 + 1013904223
		noise[i] = byte('a' + x>>28)
	}
	send := map[string]func(w http.ResponseWriter){}
	plain := func(b []byte, length bool) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			if length {
				w.Header().Set("Content-Length", strconv.Itoa(len(b)))
			}
			_, _ = w.Write(b)
		}
	}
	encoded := func(encoding string, b []byte) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", encoding)
			_, _ = w.Write(b)
		}
	}
	send["/at"], send["/at-chunked"] = plain(text, true), plain(text, false)
	send["/over"], send["/over-chunked"] = plain(append(slices.Clone(text), 'x'), true), plain(append(slices.Clone(text), 'x'), false)
	send["/gzip-at"], send["/gzip-over"] = encoded("gzip", packed(t, noise)), encoded("gzip", packed(t, append(slices.Clone(noise), 'x')))
	send["/bomb"] = encoded("gzip", packed(t, make([]byte, 4<<20)))
	send["/ratio"] = encoded("gzip", packed(t, make([]byte, limit)))
	send["/twice"] = encoded("gzip, gzip", packed(t, packed(t, text)))
	send["/br"] = encoded("br", text)
	send["/not-gzip"] = encoded("gzip", text)
	send["/empty"] = encoded("gzip", nil)
	send["/endless"] = encoded("gzip", bytes.Repeat(packed(t, nil), 200_000)) // nothing, again and again
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { send[r.URL.Path](w) }))
	defer srv.Close()
	c := local(t, &Options{MaxBodyBytes: limit}, srv.URL)
	want := map[string]struct {
		n    int
		code Code
	}{
		"/at": {limit, ""}, "/at-chunked": {limit, ""}, "/over": {0, CodeBodyTooLarge}, "/over-chunked": {limit, CodeBodyTooLarge},
		"/gzip-at": {limit, ""}, "/gzip-over": {limit, CodeBodyTooLarge}, "/bomb": {-1, CodeCompressionRatio}, "/ratio": {-1, CodeCompressionRatio},
		"/twice": {0, CodeEncodingRefused}, "/br": {0, CodeEncodingRefused}, "/not-gzip": {0, CodeBroken}, "/empty": {0, ""}, "/endless": {0, CodeBodyTooLarge},
	}
	for path := range send {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		resp, err := c.Do(req)
		if err == nil {
			var b []byte
			b, err = io.ReadAll(resp.Body)
			n = len(b)
			_ = resp.Body.Close()
		}
		w, ok := want[path]
		if !ok || CodeOf(err) != w.code || w.code == "" && err != nil || w.n >= 0 && n != w.n || n > limit {
			t.Errorf("%s: got %d bytes and %v, want %d and %q", path, n, err, w.n, w.code)
		}
	}
}

func TestHeadersAreBounded(t *testing.T) {
	t.Parallel()
	srv, _ := chain(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Big", strings.Repeat("x", len(r.URL.Path)*1000))
	})
	c := local(t, nil, srv.URL)
	if err := get(t, c, srv.URL+"/"+strings.Repeat("x", 50)); err != nil {
		t.Errorf("50 KB of headers: %v", err)
	}
	if err := get(t, c, srv.URL+"/"+strings.Repeat("x", 80)); CodeOf(err) != CodeBroken {
		t.Errorf("80 KB of headers: got %v, want %s", err, CodeBroken)
	}
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	srv, _ := chain(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			w.(http.Flusher).Flush()
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	if err := get(t, local(t, &Options{HeaderTimeout: 20 * time.Millisecond}, srv.URL), srv.URL); CodeOf(err) != CodeTimeout || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no header: got %v, want %s", err, CodeTimeout)
	}
	c := local(t, &Options{Timeout: 3 * time.Second}, srv.URL) // enough for the headers
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/body", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(resp.Body); CodeOf(err) != CodeTimeout {
		t.Errorf("no body: got %v, want %s", err, CodeTimeout)
	}
	_ = resp.Body.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req = req.WithContext(ctx)
	if _, err := c.Do(req); CodeOf(err) != CodeCancelled || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v, want %s", err, CodeCancelled)
	}
}

// No error says anything of the request: its path and query hold what the model and the operator know.
func TestT21_ErrorsShowNothingOfTheRequest(t *testing.T) {
	t.Parallel()
	srv, _ := chain(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/canary/location":
			w.Header().Set("Location", "http://%zz/canary")
			w.WriteHeader(http.StatusFound)
		case "/canary/abort":
			panic(http.ErrAbortHandler)
		}
	})
	dead := httptest.NewServer(nil)
	dead.Close()
	c := local(t, nil, srv.URL, dead.URL, "http://x:80")
	for _, u := range []string{srv.URL + "/canary/location?key=canary", srv.URL + "/canary/abort?key=canary", dead.URL + "/canary?key=canary",
		"http://canary:canary@127.0.0.1/?key=canary", "http://10.0.0.1/canary", "gopher://canary/", "http://canary.example:99999/"} {
		err := get(t, c, u)
		if err == nil || strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "canary") {
			t.Errorf("%s: got %v", u, err)
		}
	}
	if err := get(t, c, dead.URL); !Plain(err).Unsent || CodeOf(err) != CodeConnect {
		t.Errorf("nobody listens: got %v, want %s", err, CodeConnect)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://10.0.0.1/?key=canary", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.HTTP().Do(req)
	if got := Plain(err); got.Code != CodeAddress || strings.Contains(got.Error(), "canary") {
		t.Errorf("through http.Client: got %v", got)
	}
}

func TestAddressesAreTriedInTurn(t *testing.T) {
	t.Parallel()
	c, dialled := recorded(t, open(), &script{answers: map[string][][]string{
		"two.example": {{"93.184.216.34", "2606:2800:220:1::1"}}, "mixed.example": {{"93.184.216.34", "10.0.0.1"}}, "none.example": {{}},
	}})
	if err := get(t, c, "https://two.example/"); CodeOf(err) != CodeConnect || len(dialled()) != 2 {
		t.Errorf("got %v, dialled %v, want both", err, dialled())
	}
	if err := get(t, c, "https://mixed.example/"); CodeOf(err) != CodeAddress || len(dialled()) != 2 {
		t.Errorf("one private address: got %v, dialled %v", err, dialled())
	}
	for _, name := range []string{"none", "unknown"} {
		if err := get(t, c, "https://"+name+".example/"); CodeOf(err) != CodeResolve || !Plain(err).Unsent {
			t.Errorf("%s: got %v, want %s", name, err, CodeResolve)
		}
	}
}

func FuzzPlainHost(f *testing.F) {
	for _, s := range []string{"example.com", "127.0.0.1", "0x7f.1", "::1", "[::1]", "1.2.3.4.5", "a..b", "-a.b", "xn--a", "127.0.0.1%2e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		host, ok := PlainHost(s)
		if !ok {
			return
		}
		if again, ok := PlainHost(host); !ok || again != host {
			t.Errorf("%q is plain as %q, which becomes %q, %t", s, host, again, ok)
		}
		if strings.ContainsAny(host, "/\\@?#% \t\r\n[]") || strings.HasSuffix(host, ".") {
			t.Errorf("%q is plain as %q", s, host)
		}
		u, err := url.Parse("https://" + strings.TrimSpace(hostport(host)) + "/")
		if err != nil || u.Hostname() != host {
			t.Errorf("%q: in a URL it is %v, %v", host, u, err)
		}
	})
}

func hostport(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

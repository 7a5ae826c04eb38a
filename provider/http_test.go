package provider_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/secret"
)

// overHTTP2 returns a chat that speaks HTTP/2 with h.
func overHTTP2(t *testing.T, h http.HandlerFunc) *provider.Chat {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return open(t, srv.Client().Transport, func(o *provider.Options) {
		o.BaseURL, o.Key = srv.URL+"/v1", secret.New(key)
		o.Retry.Attempts = 1
	})
}

func TestHTTP2(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{}, 1)
	var n atomic.Int32
	c := overHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("got %s", r.Proto)
		}
		switch n.Add(1) {
		case 1:
			stream(w, hello())
		case 2: // hangs within the answer
			stream(w, data(text("Hel")))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			gone <- struct{}{}
		case 3: // resets the stream
			stream(w, data(chunk(callHead), args("{")))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		default:
			w.WriteHeader(429)
		}
	})
	if a := ask(t, t.Context(), c); a.text != "Hello" {
		t.Errorf("got %v", a.err)
	}
	for range c.Generate(t.Context(), &lathe.Request{Messages: []lathe.Message{lathe.User("hi")}}) {
		break
	}
	<-gone
	if a := ask(t, t.Context(), c); a.kind() != lathe.UpstreamAborted {
		t.Errorf("got %v", a.err)
	}
	if a := ask(t, t.Context(), c); a.kind() != lathe.UpstreamRateLimited {
		t.Errorf("got %v", a.err)
	}
}

// A server may answer while it is still sent the request. The next request is encoded in memory
// that no transport reads any more.
func TestAnswerBeforeTheRequestIsRead(t *testing.T) {
	t.Parallel()
	h := func(w http.ResponseWriter, r *http.Request) {
		stream(w, hello())
	}
	for name, c := range map[string]*provider.Chat{"HTTP/1.1": serve(t, h, nil), "HTTP/2": overHTTP2(t, h)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var history []lathe.Message
			for i := range 8 {
				history = append(history, lathe.User(strings.Repeat(fmt.Sprint(i), 30_000)))
				if a := ask(t, t.Context(), c, history...); a.text != "Hello" {
					t.Errorf("turn %d: %v (%+v)", i, a.err, a.upstreamOrNil())
				}
			}
		})
	}
}

// A server that closes its idle connections costs at most another attempt.
func TestStaleConnection(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		body := hello()
		fmt.Fprintf(buf, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		_ = buf.Flush()
		conn.Close() // without having said so
	}, nil)
	for range 20 {
		if a := ask(t, t.Context(), c); a.text != "Hello" {
			t.Fatalf("got %v (%+v)", a.err, a.upstreamOrNil())
		}
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	n := 0
	c := open(t, trip(func(r *http.Request) (*http.Response, error) {
		accept(r)
		n++
		h := http.Header{"X-Request-Id": {fmt.Sprint("req-", n)}}
		switch n {
		case 1:
			return &http.Response{StatusCode: 500, Header: h, Body: io.NopCloser(strings.NewReader(`{"error":{"message":"prompt-words ` + key + `"}}`))}, nil
		case 2:
			return nil, errors.New("broken " + key)
		}
		r2 := respond(io.NopCloser(strings.NewReader(hello())))
		r2.Header = h
		return r2, nil
	}), func(o *provider.Options) {
		o.Key, o.Log = secret.New(key), slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug,
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}}))
		o.Retry.Jitter = func() float64 { return 0 }
	})
	ask(t, t.Context(), c, lathe.User("prompt-words"))
	ctx, cancel := context.WithCancel(t.Context())
	for range c.Generate(ctx, &lathe.Request{Messages: []lathe.Message{lathe.User("hi")}}) {
		break
	}
	cancel()
	want := `level=DEBUG msg="model call attempt" provider=openai model=m attempt=1 status=500 failure=upstream_5xx upstream_request_id=req-1
level=DEBUG msg="model call attempt" provider=openai model=m attempt=2 status=0 failure=aborted upstream_request_id=""
level=DEBUG msg="model call attempt" provider=openai model=m attempt=3 status=200 failure="" upstream_request_id=req-3
level=DEBUG msg="model call attempt" provider=openai model=m attempt=1 status=200 failure=stopped upstream_request_id=req-4
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	c := open(t, nil, func(o *provider.Options) { o.Name, o.Server.NoTools, o.Server.NoParallel = "vllm", true, true })
	if got, want := c.Describe(), (lathe.ModelInfo{Provider: "vllm", Model: "m", Wire: lathe.WireOpenAIChat, Server: "model.test:80", NoTools: true, NoParallel: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// FuzzResponse: whatever a server sends, in whatever pieces, the call ends once, with an answer
// that its deltas tell too or an error that is bounded and holds no key.
func FuzzResponse(f *testing.F) {
	f.Add(200, "text/event-stream", "", []byte(hello()), 7)
	f.Add(200, "application/json", "", []byte(`{"choices":[{"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}`), 3)
	f.Add(200, "", "gzip", []byte(hello()), 100)
	f.Add(200, "", "", []byte(data(chunk(callHead), args(`{\"a\"`), args(`:1}`), finished("stop"))), 1)
	f.Add(200, "", "", []byte(data(`{"error":{"message":"`+key+`","code":429}}`)), 50)
	f.Add(500, "", "", []byte(`{"error":{"message":"Bearer `+key+`","code":"`+key+`"}}`), 9)
	f.Add(429, "", "", []byte(`<html>`+key), 9)
	f.Add(302, "", "", []byte(``), 9)
	f.Fuzz(func(t *testing.T, status int, contentType, encoding string, body []byte, piece int) {
		c := open(t, trip(func(r *http.Request) (*http.Response, error) {
			accept(r)
			h := http.Header{"Content-Type": {contentType}, "X-Request-Id": {contentType + key}, "Location": {contentType + key}}
			if encoding != "" {
				h["Content-Encoding"] = []string{encoding}
			}
			return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(&pieces{body, max(piece, 1)})}, nil
		}), func(o *provider.Options) {
			o.Key, o.Retry.Attempts = secret.New(key), 1
			o.Limits.MaxResponseBytes, o.Limits.MaxErrorBytes, o.Limits.MaxLineBytes, o.Limits.MaxEventBytes = 1<<20, 1<<12, 1<<12, 1<<14
		})
		a := ask(t, t.Context(), c)
		if a.err == nil {
			return
		}
		up := a.upstream(t)
		if up.Kind == "" || len(up.Message) > 500 || !utf8.ValidString(up.Message) || len(up.ProviderCode) > 64 || len(up.RequestID) > 128 {
			t.Errorf("got %+v", up)
		}
	})
}

// pieces is read n bytes at a time.
type pieces struct {
	rest []byte
	n    int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[:min(p.n, len(p.rest))])
	p.rest = p.rest[n:]
	return n, nil
}

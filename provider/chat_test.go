package provider_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/leaktest"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/secret"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// key is put together here, so that no scanner takes the file for a leak.
var key = "sk-" + strings.Repeat("c4n4ry", 4)

// serve returns a chat whose server answers with h. The key is set.
func serve(t testing.TB, h http.HandlerFunc, change func(*provider.Options)) *provider.Chat {
	t.Helper()
	return serveOn(t, lathe.WireOpenAIChat, h, change)
}

// serveOn is serve for a model of any wire.
func serveOn(t testing.TB, w lathe.Wire, h http.HandlerFunc, change func(*provider.Options)) *provider.Chat {
	t.Helper()
	srv := httptest.NewServer(h)
	o := &provider.Options{BaseURL: srv.URL + "/v1", Key: secret.New(key),
		Retry: provider.Retry{Base: time.Microsecond, Jitter: func() float64 { return 0.5 }}}
	if change != nil {
		change(o)
	}
	c, err := provider.New(w, "test-model", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.CloseIdleConnections()
		srv.CloseClientConnections()
		srv.Close()
	})
	return c
}

// answer is what came of a call.
type answer struct {
	text, reasoning string
	calls           []lathe.ToolCall // joined from the deltas
	retries         []*lathe.Retry
	finish          *lathe.Finish
	err             error
	deltas          int
}

func (a *answer) kind() lathe.UpstreamKind {
	var up *lathe.UpstreamError
	if errors.As(a.err, &up) {
		return up.Kind
	}
	return ""
}

func (a *answer) upstream(t testing.TB) *lathe.UpstreamError {
	t.Helper()
	var up *lathe.UpstreamError
	if !errors.As(a.err, &up) {
		t.Fatalf("got %v, want an upstream error", a.err)
	}
	return up
}

// ask makes a call and holds the model to its promise: one end, and nothing after it.
func ask(t testing.TB, ctx context.Context, m lathe.Model, msgs ...lathe.Message) *answer {
	t.Helper()
	if msgs == nil {
		msgs = []lathe.Message{lathe.User("hi")}
	}
	a := &answer{}
	for d, err := range m.Generate(ctx, &lathe.Request{Messages: msgs}) {
		if a.finish != nil || a.err != nil {
			t.Fatalf("%+v, %v comes after the end", d, err)
		}
		if err != nil {
			a.err = err
			continue
		}
		a.deltas++
		switch d.Kind {
		case lathe.DeltaText:
			a.text += d.Text
		case lathe.DeltaReasoning:
			a.reasoning += d.Text
		case lathe.DeltaCallStart:
			if d.Index != len(a.calls) {
				t.Errorf("call %d starts as number %d", len(a.calls), d.Index)
			}
			a.calls = append(a.calls, lathe.ToolCall{ID: d.ID, Name: d.Name})
		case lathe.DeltaCallArgs:
			a.calls[d.Index].Arguments += d.Text
		case lathe.DeltaRetry:
			if a.deltas != len(a.retries)+1 {
				t.Error("a retry comes after a delta")
			}
			a.retries = append(a.retries, d.Retry)
		case lathe.DeltaFinish:
			a.finish = d.Finish
		}
	}
	if a.finish == nil && a.err == nil {
		t.Fatal("the call has no end")
	}
	if a.err != nil && strings.Contains(fmt.Sprintf("%v %+v %#v %+v", a.err, a.err, a.err, a.upstreamOrNil()), key) {
		t.Errorf("the error holds the key: %+v", a.err)
	}
	if a.finish != nil {
		if got := a.finish.Message.Text(); got != a.text {
			t.Errorf("the message's text is %q, the deltas' %q", got, a.text)
		}
		calls := a.finish.Message.Calls()
		if len(calls) != len(a.calls) {
			t.Fatalf("the message has %d calls, the deltas %d", len(calls), len(a.calls))
		}
		for i := range calls {
			if calls[i].Arguments != a.calls[i].Arguments {
				t.Errorf("call %d: the message's arguments are %q, the deltas' %q", i, calls[i].Arguments, a.calls[i].Arguments)
			}
		}
	}
	return a
}

func (a *answer) upstreamOrNil() any {
	var up *lathe.UpstreamError
	errors.As(a.err, &up)
	if up == nil {
		return nil
	}
	return *up
}

// Pieces of streams.
func data(payloads ...string) string {
	var b strings.Builder
	for _, p := range payloads {
		b.WriteString("data: " + p + "\n\n")
	}
	return b.String()
}

func chunk(delta string) string {
	return `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}`
}

func finished(reason string) string {
	return `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

const (
	usage    = `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`
	done     = `[DONE]`
	callHead = `{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"add","arguments":""}}]}`
)

func text(s string) string { return chunk(`{"content":"` + s + `"}`) }

func args(s string) string {
	return chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"` + s + `"}}]}`)
}

func hello() string { return data(text("Hel"), text("lo"), finished("stop"), usage, done) }

func stream(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(w, body)
}

// kill breaks the connection off, after what was written.
func kill(w http.ResponseWriter, reset bool) {
	_ = http.NewResponseController(w).Flush()
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}

func TestGenerateStreams(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/chat/completions" || r.Method != "POST" || r.Header.Get("Authorization") != "Bearer "+key ||
			r.Header.Get("Content-Type") != "application/json" || r.ContentLength <= 0 {
			t.Errorf("got %s %s %v", r.Method, r.URL, r.Header)
		}
		w.Header().Set("X-Request-Id", "req-7")
		w.Header().Set("X-Litellm-Response-Cost", "0.25")
		stream(w, hello())
	}, nil)
	a := ask(t, t.Context(), c)
	f := a.finish
	if f == nil {
		t.Fatal(a.err)
	}
	if a.text != "Hello" || f.Reason != lathe.FinishStop || f.Usage.TotalTokens != 7 || f.Model != "m-1" ||
		f.ResponseID != "c1" || f.UpstreamRequestID != "req-7" || f.ProviderCost == nil || *f.ProviderCost != 0.25 || len(f.Faults) != 0 {
		t.Errorf("got %+v", f)
	}
}

// TestHazards sends what servers really send, good and bad, through the whole provider.
func TestHazards(t *testing.T) {
	t.Parallel()
	type want struct {
		text, args string
		reason     lathe.FinishReason
		code       lathe.Code
		kind       lathe.UpstreamKind
		status     int
	}
	completion := `{"id":"r","object":"chat.completion","created":1,"model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"Hello","reasoning_content":"why","tool_calls":[{"id":"call_1","type":"function","function":{"name":"add","arguments":"{\"a\":1}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`
	for _, c := range []struct {
		name string
		h    http.HandlerFunc
		want want
	}{
		{"call in pieces", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, data(chunk(callHead), args(`{\"a\"`), args(`:1}`), finished("tool_calls"), done))
		}, want{args: `{"a":1}`, reason: lathe.FinishToolCalls}},
		{"finish stop with a call", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, data(chunk(callHead), args(`{}`), finished("stop"), done))
		}, want{args: `{}`, reason: lathe.FinishToolCalls}},
		{"no content type", func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			io.WriteString(w, hello())
		}, want{text: "Hello", reason: lathe.FinishStop}},
		{"comments, CRLF and a byte order mark", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, "\uFEFF: PROCESSING\r\n\r\n\r\n"+strings.ReplaceAll(hello(), "\n", "\r\n"))
		}, want{text: "Hello", reason: lathe.FinishStop}},
		{"comments of more than the look ahead", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, strings.Repeat("\n", 1000)+strings.Repeat(": ping\n", 1000)+hello())
		}, want{text: "Hello", reason: lathe.FinishStop}},
		{"padding that hides the length", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, data(strings.Replace(text("Hel"), "{", `{"obfuscation":"aY3",`, 1), strings.Replace(text("lo"), "{", `{"obfuscation":"Kq",`, 1), finished("stop"), done))
		}, want{text: "Hello", reason: lathe.FinishStop}},
		{"empty and broken lines", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, data("", "{", text("Hello"), "nonsense", finished("stop"), done))
		}, want{text: "Hello", reason: lathe.FinishStop}},
		{"no [DONE]", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, data(text("Hello"), finished("stop")))
		}, want{text: "Hello", reason: lathe.FinishStop}},
		{"no blank line after [DONE]", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, strings.TrimRight(hello(), "\n"))
		}, want{text: "Hello", reason: lathe.FinishStop}},
		{"reset after the finish reason", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, data(text("Hello"), finished("stop")))
			kill(w, false)
		}, want{text: "Hello", reason: lathe.FinishStop}},
		{"a line of 100 KB", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, data(text(strings.Repeat("x", 100<<10)), finished("stop"), done))
		}, want{text: strings.Repeat("x", 100<<10), reason: lathe.FinishStop}},
		{"gzip that was not asked for", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			var b bytes.Buffer
			zw := gzip.NewWriter(&b)
			io.WriteString(zw, hello())
			zw.Close()
			stream(w, b.String())
		}, want{text: "Hello", reason: lathe.FinishStop}},
		{"gzip that is none", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			stream(w, hello())
		}, want{code: lathe.CodeUpstreamProtocol, kind: lathe.UpstreamBadProtocol, status: 200}},
		{"unknown encoding", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			stream(w, hello())
		}, want{code: lathe.CodeUpstreamProtocol, kind: lathe.UpstreamBadProtocol, status: 200}},
		{"whole answer as JSON", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, completion)
		}, want{text: "Hello", args: `{"a":1}`, reason: lathe.FinishToolCalls}},
		{"whole answer as a stream in name", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, "\n"+completion)
		}, want{text: "Hello", args: `{"a":1}`, reason: lathe.FinishToolCalls}},
		{"JSON error under 200", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"error":{"message":"no such model","type":"invalid_request_error","code":404}}`)
		}, want{code: lathe.CodeUpstream, kind: lathe.Upstream4xx, status: 404}},
		{"JSON that is no completion", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"hello":"world"}`)
		}, want{code: lathe.CodeUpstreamProtocol, kind: lathe.UpstreamBadProtocol, status: 200}},
		{"JSON cut short", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, completion[:100])
			kill(w, false)
		}, want{code: lathe.CodeUpstream, kind: lathe.UpstreamAborted, status: 0}},
		{"a page under 200", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			io.WriteString(w, "<!doctype html><title>Login</title>")
		}, want{code: lathe.CodeUpstreamProtocol, kind: lathe.UpstreamBadProtocol, status: 200}},
		{"a page in the clothes of a stream", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, "\n\n  <html>")
		}, want{code: lathe.CodeUpstreamProtocol, kind: lathe.UpstreamBadProtocol, status: 200}},
		{"plain text under 200", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, "OK\n")
		}, want{code: lathe.CodeUpstreamProtocol, kind: lathe.UpstreamBadProtocol, status: 200}},
		{"empty body", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, "")
		}, want{code: lathe.CodeUpstreamProtocol, kind: lathe.UpstreamBadProtocol, status: 200}},
		{"nothing but white space", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, "\n\n \n")
		}, want{code: lathe.CodeUpstreamProtocol, kind: lathe.UpstreamBadProtocol, status: 200}},
		{"no content", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
		}, want{code: lathe.CodeUpstreamProtocol, kind: lathe.UpstreamBadProtocol, status: 204}},
		{"nothing but [DONE]", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, data(done))
		}, want{code: lathe.CodeUpstreamProtocol, kind: lathe.UpstreamBadProtocol, status: 200}},
		{"killed within the arguments", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, data(chunk(callHead), args(`{\"a\"`)))
			kill(w, false)
		}, want{args: `{"a"`, code: lathe.CodeUpstream, kind: lathe.UpstreamAborted}},
		{"reset within the arguments", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, data(chunk(callHead), args(`{\"a\"`)))
			kill(w, true)
		}, want{code: lathe.CodeUpstream, kind: lathe.UpstreamAborted}},
		{"a stream that ends within the arguments", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, data(chunk(callHead), args(`{\"a\"`)))
		}, want{args: `{"a"`, code: lathe.CodeUpstreamProtocol, kind: lathe.UpstreamBadProtocol, status: 200}},
		{"error after deltas", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, data(text("Hel"), `{"error":{"message":"gone","type":"server_error","code":502}}`, text("lo"), done))
		}, want{text: "Hel", code: lathe.CodeUpstream, kind: lathe.Upstream5xx, status: 502}},
		{"error by the name of the event", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, data(text("Hel"))+"event: error\ndata: {\"message\":\"slow down\",\"type\":\"rate_limit_error\"}\n\n")
		}, want{text: "Hel", code: lathe.CodeUpstream, kind: lathe.UpstreamRateLimited, status: 200}},
		{"a line of 10 MB", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, data(text("Hello"))+"data: "+strings.Repeat("x", 10<<20))
		}, want{text: "Hello", code: lathe.CodeUpstreamProtocol, kind: lathe.UpstreamBadProtocol, status: 200}},
		{"more than the largest response", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, hello()[:100])
			for range 100 {
				io.WriteString(w, ": "+strings.Repeat("x", 100<<10)+"\n")
			}
		}, want{code: lathe.CodeUpstreamProtocol, kind: lathe.UpstreamBadProtocol, status: 200}},
		{"bad request", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(400)
			io.WriteString(w, `{"error":{"message":"bad key `+key+` given","type":"invalid_request_error","param":null,"code":null}}`)
		}, want{code: lathe.CodeUpstream, kind: lathe.Upstream4xx, status: 400}},
		{"wrong key", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(401)
			io.WriteString(w, "Authorization: Bearer "+key+" is unknown")
		}, want{code: lathe.CodeUpstream, kind: lathe.Upstream4xx, status: 401}},
		{"redirect", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://elsewhere.test/v1/chat/completions?token="+key)
			w.WriteHeader(307)
		}, want{code: lathe.CodeUpstreamProtocol, kind: lathe.UpstreamBadProtocol, status: 307}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			chat := serve(t, c.h, func(o *provider.Options) { o.Limits.MaxResponseBytes = 2 << 20; o.Retry.Attempts = 1 })
			a := ask(t, t.Context(), chat)
			gotArgs := ""
			if len(a.calls) > 0 {
				gotArgs = a.calls[0].Arguments
				if a.calls[0].ID != "call_1" || a.calls[0].Name != "add" {
					t.Errorf("got call %+v", a.calls[0])
				}
			}
			if c.want.code == "" {
				if a.finish == nil {
					t.Fatalf("got %v (%+v), want an answer", a.err, a.upstreamOrNil())
				}
				if a.finish.Reason != c.want.reason {
					t.Errorf("finish reason is %q, want %q", a.finish.Reason, c.want.reason)
				}
			} else {
				up := a.upstream(t)
				if lathe.CodeOf(a.err) != c.want.code || up.Kind != c.want.kind {
					t.Fatalf("got %v (%+v), want %s, %s", a.err, up, c.want.code, c.want.kind)
				}
				if c.want.status != 0 && up.Status != c.want.status {
					t.Errorf("status is %d, want %d", up.Status, c.want.status)
				}
			}
			if c.name == "reset within the arguments" || c.name == "more than the largest response" {
				return // how much comes before is the network's choice
			}
			if a.text != c.want.text || gotArgs != c.want.args {
				t.Errorf("got text %.80q and arguments %q, want %.80q and %q", a.text, gotArgs, c.want.text, c.want.args)
			}
		})
	}
}

func TestErrorOfTheServer(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "req-9")
		w.WriteHeader(422)
		io.WriteString(w, `{"error":{"message":"key `+key+" and "+strings.Repeat("long ", 1000)+`","type":"invalid_request_error","code":"bad code!"}}`)
	}, nil)
	up := ask(t, t.Context(), c).upstream(t)
	if up.RequestID != "req-9" || up.ProviderCode != "bad_code_" || up.Status != 422 || up.Retryable || len(up.Message) > 500 ||
		!strings.HasPrefix(up.Message, "key [redacted] and long") {
		t.Errorf("got %+v", up)
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		fail    http.HandlerFunc // answers the first two calls
		retries int
		kind    lathe.UpstreamKind // of the error, "" where the third call answers
	}{
		{"500", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, 2, ""},
		{"503", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, 2, ""},
		{"429", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, 2, ""},
		{"408", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(408) }, 2, ""},
		{"in band, before any delta", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, ": hi\n\n"+data(`{"error":{"message":"busy","code":429}}`))
		}, 2, ""},
		{"reset before the response", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			conn.Close()
		}, 2, ""},
		{"400", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) }, 0, lathe.Upstream4xx},
		{"401", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, 0, lathe.Upstream4xx},
		{"no quota", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(429)
			io.WriteString(w, `{"error":{"code":"insufficient_quota"}}`)
		}, 0, lathe.UpstreamRateLimited},
		{"a page", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }, 0, lathe.UpstreamBadProtocol},
		{"after a delta", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, data(text("Hel"), `{"error":{"message":"busy","code":503}}`))
		}, 0, lathe.Upstream5xx},
		{"killed after a delta", func(w http.ResponseWriter, _ *http.Request) {
			stream(w, data(text("Hel")))
			kill(w, false)
		}, 0, lathe.UpstreamAborted},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			var first []byte
			chat := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				n := calls.Add(1)
				if n == 1 {
					first = body
				} else if !bytes.Equal(body, first) {
					t.Errorf("attempt %d sends %s, want %s", n, body, first)
				}
				if n <= 2 {
					c.fail(w, r)
					return
				}
				stream(w, hello())
			}, nil)
			a := ask(t, t.Context(), chat)
			if len(a.retries) != c.retries || a.kind() != c.kind || int(calls.Load()) != c.retries+1 {
				t.Fatalf("got %d retries, %d calls, %v; want %d retries, kind %q", len(a.retries), calls.Load(), a.err, c.retries, c.kind)
			}
			for i, r := range a.retries {
				if r.Attempt != i+1 || r.Err == nil || r.Wait <= 0 || !errors.As(r.Err, new(*lathe.UpstreamError)) {
					t.Errorf("got %+v", r)
				}
			}
			if c.kind == "" && a.text != "Hello" {
				t.Errorf("got %q", a.text)
			}
		})
	}
}

func TestRetriesEnd(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.WriteHeader(503)
	}, func(o *provider.Options) { o.Retry.Attempts = 4 })
	a := ask(t, t.Context(), c)
	if calls.Load() != 4 || len(a.retries) != 3 || a.kind() != lathe.Upstream5xx || !a.upstream(t).Retryable {
		t.Errorf("got %d calls, %d retries, %v", calls.Load(), len(a.retries), a.err)
	}
}

func TestConnectErrorIsRetried(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	c, err := provider.OpenAI("m", &provider.Options{BaseURL: "http://" + addr + "/v1", Retry: provider.Retry{Base: time.Microsecond}})
	if err != nil {
		t.Fatal(err)
	}
	a := ask(t, t.Context(), c)
	up := a.upstream(t)
	if len(a.retries) != 2 || up.Kind != lathe.UpstreamAborted || !up.Connect || !up.Retryable || up.Status != 0 {
		t.Errorf("got %d retries, %+v", len(a.retries), up)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", other.URL+"/path?token="+key)
			w.WriteHeader(status)
		}, nil)
		up := ask(t, t.Context(), c).upstream(t)
		if reached.Load() || up.Status != status || !strings.Contains(up.Message, "redirect") || !strings.Contains(up.Message, other.URL) || strings.Contains(up.Message, "path") {
			t.Errorf("%d: reached %v, %+v", status, reached.Load(), up)
		}
	}
}

func TestConnectionIsUsedAgain(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.HandlerFunc{
		"answer": func(w http.ResponseWriter, _ *http.Request) { stream(w, hello()) },
		"answer, flushed": func(w http.ResponseWriter, _ *http.Request) {
			stream(w, hello())
			_ = http.NewResponseController(w).Flush()
			io.WriteString(w, ": bye\n\n")
		},
		"JSON": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}]}`)
		},
		"error": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(400)
			io.WriteString(w, strings.Repeat("x", 5000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peers := make(chan string, 8)
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				peers <- r.RemoteAddr
				h(w, r)
			}, nil)
			for range 4 {
				ask(t, t.Context(), c)
			}
			first := <-peers
			for range 3 {
				if p := <-peers; p != first {
					t.Errorf("a call came over %s, the first over %s", p, first)
				}
			}
		})
	}
}

func TestServerThatDoesNotHangUpIsLeft(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		stream(w, hello())
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	}, nil)
	a := ask(t, t.Context(), c)
	if a.text != "Hello" || a.finish == nil {
		t.Errorf("got %q, %v", a.text, a.err)
	}
	<-gone
}

func TestStoppingEarlyFreesTheConnection(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		stream(w, data(text("Hel"), text("lo")))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	}, nil)
	for d, err := range c.Generate(t.Context(), &lathe.Request{Messages: []lathe.Message{lathe.User("hi")}}) {
		if err != nil || d.Text != "Hel" {
			t.Fatalf("got %+v, %v", d, err)
		}
		break
	}
	<-gone
}

func TestPanicOfTheConsumerFreesTheConnection(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		stream(w, data(text("Hel")))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	}, nil)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		for range c.Generate(t.Context(), &lathe.Request{Messages: []lathe.Message{lathe.User("hi")}}) {
			panic("consumer")
		}
	}()
	<-gone
}

func TestCancellationAtEachDelta(t *testing.T) {
	t.Parallel()
	body := data(text("a"), chunk(callHead), args(`{`), args(`}`), finished("tool_calls"), usage)
	for n := range 6 { // cancel at the n-th delta; 0: before the call
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			gone := make(chan struct{})
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				defer close(gone)
				stream(w, body)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if n == 0 {
				cancel()
				close(gone)
			}
			seen := 0
			var last error
			for _, err := range c.Generate(ctx, &lathe.Request{Messages: []lathe.Message{lathe.User("hi")}}) {
				if last != nil {
					t.Fatal("something comes after the error")
				}
				if last = err; err != nil {
					continue
				}
				if seen++; seen == n {
					cancel()
				}
			}
			if seen > max(n, 0)+2 { // deltas of one event may still come
				t.Errorf("%d deltas came, want them to end after %d", seen, n)
			}
			if lathe.CodeOf(last) != lathe.CodeCancelled || !errors.Is(last, context.Canceled) || errors.As(last, new(*lathe.UpstreamError)) {
				t.Errorf("got %v", last)
			}
			<-gone
		})
	}
}

func TestCancellationWhileWaitingForARetry(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(429)
	}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var errs []error
	for d, err := range c.Generate(ctx, &lathe.Request{Messages: []lathe.Message{lathe.User("hi")}}) {
		if d.Kind == lathe.DeltaRetry {
			if d.Retry.Wait != 30*time.Second {
				t.Errorf("waits %v", d.Retry.Wait)
			}
			cancel()
		}
		errs = append(errs, err)
	}
	cancel()
	if len(errs) != 2 || lathe.CodeOf(errs[1]) != lathe.CodeCancelled {
		t.Errorf("got %v", errs)
	}
}

func TestDeadlineOfTheCallerIsACancellation(t *testing.T) {
	t.Parallel()
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	a := ask(t, ctx, c)
	if lathe.CodeOf(a.err) != lathe.CodeCancelled || !errors.Is(a.err, context.DeadlineExceeded) {
		t.Errorf("got %v", a.err)
	}
}

func TestRequestIDIsSent(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		stream(w, data(text(r.Header.Get("X-Request-Id")), finished("stop"), done))
	}, nil)
	for _, k := range []struct{ id, want string }{{"run-1", "run-1"}, {"run-1", "run-1"}, {"", ""}, {"run-2", "run-2"}, {"a\r\nb: c", ""}} {
		got := ""
		for d, err := range c.Generate(t.Context(), &lathe.Request{RequestID: k.id, Messages: []lathe.Message{lathe.User("hi")}}) {
			if err != nil {
				t.Fatal(err)
			}
			if d.Kind == lathe.DeltaText {
				got += d.Text
			}
		}
		if got != k.want {
			t.Errorf("%q: the server got %q, want %q", k.id, got, k.want)
		}
	}
}

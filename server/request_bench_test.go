package server_test

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe/provider"
)

// A sunk is the response of a request of a benchmark. It keeps the status and the number of bytes.
type sunk struct {
	header        http.Header
	status, bytes int
}

func (s *sunk) Header() http.Header              { return s.header }
func (s *sunk) Flush()                           {}
func (s *sunk) SetReadDeadline(time.Time) error  { return nil }
func (s *sunk) SetWriteDeadline(time.Time) error { return nil }

func (s *sunk) WriteHeader(status int) { s.status = status }

func (s *sunk) Write(b []byte) (int, error) {
	if s.bytes += len(b); s.status == 0 {
		s.status = http.StatusOK
	}
	return len(b), nil
}

// A queuedBody reads the same text for each request, without an allocation.
type queuedBody struct{ bytes.Reader }

func (*queuedBody) Close() error { return nil }

// BenchmarkRequest is what a short request takes with the request log, the log of runs, the metrics and the runs in memory, without
// sockets: relayed, and as a run with a call of a tool of the server, which makes two model calls.
func BenchmarkRequest(b *testing.B) {
	text := strings.Repeat("word ", 50)
	message := `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` + text +
		`"},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150}}`
	call := `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[` +
		`{"id":"call_1","type":"function","function":{"name":"now","arguments":"{}"}}]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150}}`
	head := "data: " + `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":`
	end := `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150}}` + "\n\ndata: [DONE]\n\n"
	streamed := head + `{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n" + strings.Repeat(head+`{"content":"word "},"finish_reason":null}]}`+"\n\n", 50) +
		head + `{},"finish_reason":"stop"}]}` + "\n\n" + end
	streamedCall := head + `{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"now","arguments":"{}"}}]},"finish_reason":null}]}` + "\n\n" +
		head + `{},"finish_reason":"tool_calls"}]}` + "\n\n" + end
	for _, form := range []struct {
		name, more, kind, message, call string
	}{{"whole", "", "application/json", message, call}, {"stream", `,"stream":true`, "text/event-stream", streamed, streamedCall}} {
		for _, mode := range []string{"relayed", "tools"} {
			b.Run(mode+"/"+form.name, func(b *testing.B) {
				var sent queuedBody
				up := transportFunc(func(r *http.Request) (*http.Response, error) {
					answer := form.message
					if mode == "tools" {
						if body, err := io.ReadAll(r.Body); err != nil {
							return nil, err
						} else if !bytes.Contains(body, []byte(`"role":"tool"`)) {
							answer = form.call
						}
					} else if _, err := io.Copy(io.Discard, r.Body); err != nil {
						return nil, err
					}
					sent.Reset([]byte(answer))
					return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {form.kind}}, Body: &sent, ContentLength: int64(len(answer)), Request: r}, nil
				})
				g := benchGateway(b, &provider.Options{BaseURL: "http://127.0.0.1:1/v1", Transport: up}, mode == "tools", true)
				body := []byte(ask("m", strings.Repeat("Say something. ", 20), form.more))
				var received queuedBody
				at := &url.URL{Path: "/v1/chat/completions"}
				request := func() {
					received.Reset(body)
					r := &http.Request{Method: http.MethodPost, URL: at, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "127.0.0.1:8700", RemoteAddr: "127.0.0.1:1024", RequestURI: at.Path,
						Header: http.Header{"Content-Type": {"application/json"}}, Body: &received, ContentLength: int64(len(body))}
					w := &sunk{header: http.Header{}}
					g.ServeHTTP(w, r)
					if w.status != http.StatusOK || w.bytes < len(text) {
						b.Fatal(w.status, w.bytes)
					}
				}
				for range 1200 { // the store has as many runs as it keeps, and the pools are filled
					request()
				}
				b.ReportAllocs()
				before := cpuTime()
				for b.Loop() {
					request()
				}
				b.ReportMetric(float64(cpuTime()-before)/float64(b.N)/1e3, "cpu-µs/op")
			})
		}
	}
}

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

// The answers of the model server of a shortRequest: text, and a call of the tool now.
const (
	wholeHead  = `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant",`
	wholeTail  = `],"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150}}`
	streamHead = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":`
	streamTail = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150}}` + "\n\ndata: [DONE]\n\n"
	callOfNow  = `"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"now","arguments":"{}"}}]`
)

// shortRequest returns a function that makes a short request of a gateway with the request log, the log of runs, the metrics and the runs
// in memory, without sockets. With tools it is a run with a call of a tool of the server, which makes two model calls; else it is
// relayed. The gateway has answered as many requests as its store keeps runs, so that later ones take what any takes.
func shortRequest(tb testing.TB, tools, stream bool) func() {
	tb.Helper()
	words := strings.Repeat("word ", 50)
	kind, more := "application/json", ""
	message := wholeHead + `"content":"` + words + `"},"logprobs":null,"finish_reason":"stop"}` + wholeTail
	call := wholeHead + `"content":null,` + callOfNow + `},"logprobs":null,"finish_reason":"tool_calls"}` + wholeTail
	if stream {
		kind, more = "text/event-stream", `,"stream":true`
		message = streamHead + `{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n" + strings.Repeat(streamHead+`{"content":"word "},"finish_reason":null}]}`+"\n\n", 50) +
			streamHead + `{},"finish_reason":"stop"}]}` + "\n\n" + streamTail
		call = streamHead + `{"role":"assistant",` + callOfNow + `},"finish_reason":null}]}` + "\n\n" + streamHead + `{},"finish_reason":"tool_calls"}]}` + "\n\n" + streamTail
	}
	var sent, received queuedBody
	up := transportFunc(func(r *http.Request) (*http.Response, error) {
		got, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		answer := message
		if tools && !bytes.Contains(got, []byte(`"role":"tool"`)) {
			answer = call
		}
		sent.Reset([]byte(answer))
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Body: &sent, ContentLength: int64(len(answer)), Request: r}, nil
	})
	g := benchGateway(tb, &provider.Options{BaseURL: "http://127.0.0.1:1/v1", Transport: up}, tools, true)
	body := []byte(ask("m", strings.Repeat("Say something. ", 20), more))
	at := &url.URL{Path: "/v1/chat/completions"}
	request := func() {
		received.Reset(body)
		w := &sunk{header: http.Header{}}
		g.ServeHTTP(w, &http.Request{Method: http.MethodPost, URL: at, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: "127.0.0.1:8700", RemoteAddr: "127.0.0.1:1024", RequestURI: at.Path,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: &received, ContentLength: int64(len(body))})
		if w.status != http.StatusOK || w.bytes < len(words) {
			tb.Fatal(w.status, w.bytes)
		}
	}
	for range 1200 {
		request()
	}
	return request
}

// BenchmarkRequest is what a short request takes: see shortRequest.
func BenchmarkRequest(b *testing.B) {
	for _, mode := range []string{"relayed", "tools"} {
		for _, form := range []string{"whole", "stream"} {
			b.Run(mode+"/"+form, func(b *testing.B) {
				request := shortRequest(b, mode == "tools", form == "stream")
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

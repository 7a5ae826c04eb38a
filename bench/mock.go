package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
)

// A variant is one shape of run: rounds of tool calls, calls per round, streamed or not.
type variant struct {
	name     string
	rounds   int
	parallel int
	stream   bool
}

var variants = []variant{
	{"1call json", 1, 1, false},
	{"10turn json", 10, 1, false},
	{"60turn json", 60, 1, false},
	{"8par json", 1, 8, false},
	{"1call stream", 1, 1, true},
	{"10turn stream", 10, 1, true},
	{"8par stream", 1, 8, true},
}

const (
	toolName   = "lookup"
	toolSchema = `{"type":"object","properties":{"key":{"type":"string"},"n":{"type":"integer"}},"required":["key","n"],"additionalProperties":false}`
	toolArgs   = `{"key":"0123456789abcdef0123456789abcdef0123456789abc","n":12345}` // 64 bytes
	toolResult = `{"ok":true}`
	prompt     = "Please look up the key and tell me what you found."
	answerSize = 50 // tokens
)

var answer = strings.Repeat("word ", answerSize-1) + "done."

// replies are the canned bodies of one variant: one for each request of a run.
type replies struct {
	bodies [][]byte
	stream bool
	next   atomic.Int64
}

func newReplies(v variant) *replies {
	r := &replies{stream: v.stream}
	for round := range v.rounds {
		r.bodies = append(r.bodies, callBody(v, round))
	}
	r.bodies = append(r.bodies, answerBody(v.stream))
	return r
}

const head = `{"id":"chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG","object":"chat.completion.chunk","created":1741570283,"model":"gpt-4o-mini-2024-07-18","service_tier":"default","system_fingerprint":"fp_06737a9306","choices":[{"index":0,"delta":`
const tail = `,"logprobs":null,"finish_reason":null}]}`

func sseEvent(b *bytes.Buffer, delta string) { b.WriteString("data: " + head + delta + tail + "\n\n") }

func finish(b *bytes.Buffer, reason string) {
	b.WriteString("data: " + head + `{},"logprobs":null,"finish_reason":"` + reason + `"}]}` + "\n\n")
	b.WriteString("data: " + strings.TrimSuffix(head, `{"index":0,"delta":`) + `],"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150}}` + "\n\ndata: [DONE]\n\n")
}

func callID(round, i int) string { return fmt.Sprintf("call_%04d%04d", round, i) }

func callBody(v variant, round int) []byte {
	var b bytes.Buffer
	if !v.stream {
		b.WriteString(`{"id":"chatcmpl-1","object":"chat.completion","created":1741570283,"model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[`)
		for i := range v.parallel {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}`, callID(round, i), toolName, toolArgs)
		}
		b.WriteString(`]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150}}`)
		return b.Bytes()
	}
	sseEvent(&b, `{"role":"assistant","content":null}`)
	for i := range v.parallel {
		sseEvent(&b, fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]}`, i, callID(round, i), toolName))
		for rest := toolArgs; rest != ""; {
			n := min(16, len(rest))
			sseEvent(&b, fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%q}}]}`, i, rest[:n]))
			rest = rest[n:]
		}
	}
	finish(&b, "tool_calls")
	return b.Bytes()
}

func answerBody(stream bool) []byte {
	var b bytes.Buffer
	if !stream {
		fmt.Fprintf(&b, `{"id":"chatcmpl-1","object":"chat.completion","created":1741570283,"model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":%q},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150}}`, answer)
		return b.Bytes()
	}
	sseEvent(&b, `{"role":"assistant","content":null}`)
	for w := range strings.SplitAfterSeq(answer, " ") {
		sseEvent(&b, fmt.Sprintf(`{"content":%q}`, w))
	}
	finish(&b, "stop")
	return b.Bytes()
}

func (r *replies) body() []byte {
	n := int(r.next.Add(1)-1) % len(r.bodies)
	return r.bodies[n]
}

func (r *replies) contentType() string {
	if r.stream {
		return "text/event-stream"
	}
	return "application/json"
}

// nowhere is the base URL of clients that never leave the process.
const nowhere = "http://bench.invalid/v1"

// inProcess answers without a socket. It is one allocation-light RoundTripper for all contenders.
type inProcess struct {
	*replies
	scratch []byte
}

type memBody struct{ bytes.Reader }

func (*memBody) Close() error { return nil }

func (t *inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		for {
			if _, err := req.Body.Read(t.scratch); err != nil {
				break
			}
		}
		req.Body.Close()
	}
	mb := &memBody{}
	mb.Reset(t.body())
	return &http.Response{StatusCode: 200, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": []string{t.contentType()}}, Body: mb, ContentLength: -1, Request: req}, nil
}

// serve answers over loopback and returns the base URL.
func serve(r *replies) (string, func(), error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Type", r.contentType())
		w.Write(r.body())
	})}
	go srv.Serve(ln)
	return "http://" + ln.Addr().String() + "/v1", func() { srv.Close() }, nil
}

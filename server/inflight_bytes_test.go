package server_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/lathe-run/lathe/internal/testdata"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
)

// inflight returns the memory of the requests that are at work, as the metrics show it.
func (f *fixture) inflight() (n int) {
	f.t.Helper()
	w := httptest.NewRecorder()
	f.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if rest, ok := strings.CutPrefix(line, "lathe_inflight_bytes "); ok {
			var v float64
			if _, err := fmt.Sscan(rest, &v); err != nil {
				f.t.Fatal(err)
			}
			return int(v)
		}
	}
	f.t.Fatal("there is no lathe_inflight_bytes")
	return 0
}

// empties waits until no memory is reserved.
func (f *fixture) empties() {
	f.t.Helper()
	f.idle()
	for end := time.Now().Add(time.Minute); f.inflight() != 0; {
		if time.Now().After(end) {
			f.t.Fatalf("%d bytes stay reserved", f.inflight())
		}
	}
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// small bounds the memory of requests, for two keys.
func small(most int64, instead func(n int, r *http.Request) (*http.Response, error)) *setting {
	return &setting{instead: instead, opts: func(o *server.Options) {
		o.Limits.MaxInflightBytes = most
		o.Setup.Keys = []server.Key{{Name: "ann", Secret: secret.New(annKey)}, {Name: "bob", Secret: secret.New(bobKey)}, {Name: "cid", Secret: secret.New(text("cid"))}}
	}}
}

// Requests that wait for their model hold the memory of their bodies, decompressed: a key gets half of it, and all keys together no more
// than the whole. The answers are in the form of the client's wire and say when to try again. All of it is given back.
func TestMemoryOfRequestsIsBounded(t *testing.T) { // T54
	t.Parallel()
	entered, release := make(chan struct{}, 8), make(chan struct{})
	f := serve(t, small(1<<20, func(_ int, r *http.Request) (*http.Response, error) {
		entered <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return nil, nil
	}))
	body := zipped(t, ask("sim/demo", strings.Repeat("x", 180_000), ""))
	send := func(key string) chan int {
		answer := make(chan int, 1)
		go func() {
			resp, _ := f.do("POST", "/v1/chat/completions", body, "Content-Encoding", "gzip", "Authorization", "Bearer "+key)
			answer <- resp.StatusCode
		}()
		return answer
	}
	first := send(annKey)
	<-entered
	one := f.inflight()
	if one < 300_000 || one > 512<<10 {
		t.Errorf("a body of 180 kB holds %d bytes", one)
	}
	for path, plain := range map[string]string{
		"/v1/chat/completions":                    ask("sim/demo", strings.Repeat("x", 180_000), ""),
		"/v1/responses":                           `{"model":"sim/demo","input":"` + strings.Repeat("x", 180_000) + `"}`,
		"/v1/messages":                            `{"model":"sim/demo","max_tokens":9,"messages":[{"role":"user","content":"` + strings.Repeat("x", 180_000) + `"}]}`,
		"/v1beta/models/sim/demo:generateContent": `{"contents":[{"role":"user","parts":[{"text":"` + strings.Repeat("x", 180_000) + `"}]}]}`,
		"/api/runs":                               `{"model":"sim/demo","prompt":"` + strings.Repeat("x", 180_000) + `"}`,
		"/api/chat":                               `{"id":"c","model":"sim/demo","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"` + strings.Repeat("x", 180_000) + `"}]}]}`,
		"/api/tools/calculator/call":              `{"arguments":{"x":"` + strings.Repeat("x", 180_000) + `"}}`,
		"/api/runs/import":                        strings.Repeat("x", 180_000),
		"/v1/messages/count_tokens":               `{"model":"sim/demo","messages":[{"role":"user","content":"` + strings.Repeat("x", 180_000) + `"}]}`,
	} {
		for encoding, sent := range map[string]string{"": plain, "gzip": zipped(t, plain)} {
			resp, text := f.do("POST", path, sent, "Content-Encoding", encoding, "Authorization", "Bearer "+annKey)
			if resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" || !strings.Contains(text, "serve.max_inflight_bytes") || !strings.Contains(text, "Send this one again") {
				t.Errorf("%s %s beyond the share of the key: %d %s", path, encoding, resp.StatusCode, text)
			}
		}
	}
	second := send(bobKey)
	<-entered
	resp, text := f.do("POST", "/v1/messages", `{"model":"sim/demo","max_tokens":9,"messages":[{"role":"user","content":"`+strings.Repeat("x", 180_000)+`"}]}`, "Authorization", "Bearer "+text("cid"))
	if resp.StatusCode != 529 || resp.Header.Get("Retry-After") == "" || !strings.Contains(text, `"overloaded_error"`) {
		t.Errorf("beyond all memory: %d %s", resp.StatusCode, text)
	}
	if resp, _ := f.do("GET", "/v1/models", "", "Authorization", "Bearer "+annKey); resp.StatusCode != 200 {
		t.Errorf("a request without a body: %d", resp.StatusCode)
	}
	close(release)
	for _, answer := range []chan int{first, second} {
		if got := <-answer; got != 200 {
			t.Errorf("an admitted request: %d", got)
		}
	}
	f.empties()
	if resp, text := f.do("POST", "/v1/chat/completions", body, "Content-Encoding", "gzip", "Authorization", "Bearer "+annKey); resp.StatusCode != 200 {
		t.Errorf("after that: %d %s", resp.StatusCode, text)
	}
}

// A body that is too large for the share of its key alone is refused as too large: trying again does not help.
func TestBodyBeyondTheShareOfItsKey(t *testing.T) {
	t.Parallel()
	f := serve(t, small(1<<20, nil))
	large := ask("sim/demo", strings.Repeat("x", 700_000), "")
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, large)
	_ = w.Close()
	for encoding, sent := range map[string]string{"": large, "gzip": zipped(t, large), "zstd": packed.String()} {
		if resp, text := f.do("POST", "/v1/chat/completions", sent, "Content-Encoding", encoding, "Authorization", "Bearer "+annKey); resp.StatusCode != 413 || resp.Header.Get("Retry-After") != "" {
			t.Errorf("%s: %d %s", encoding, resp.StatusCode, text)
		}
	}
	f.empties()
}

// What a request has reserved is given back however it ends: answered, refused, cut off, failed, or with a run that continues.
func TestMemoryOfRequestsIsGivenBack(t *testing.T) {
	t.Parallel()
	f := serve(t, &setting{opts: func(o *server.Options) { o.Limits.MaxBody = 100_000 }})
	for range 3 {
		for path, body := range map[string]string{
			"/v1/chat/completions":       ask("sim/demo", "What is 7 + 35?", ""),
			"/v1/responses":              `{"model":"sim/demo","input":"hi"}`,
			"/v1/messages":               `{"model":"sim/demo","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
			"/v1/messages/count_tokens":  `{`,
			"/api/runs":                  `{"model":"sim/demo","prompt":"What is 7 + 35?"}`,
			"/api/runs/import":           `x`,
			"/api/tools/calculator/call": `{"arguments":{"expression":"1"}}`,
			"/api/chat":                  `{"id":"c","model":"sim/demo","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"hi"}]}]}`,
			"/v1/responses/compact":      strings.Repeat("x", 200_000),
		} {
			f.do("POST", path, body)
			f.do("POST", path, body, "Content-Encoding", "gzip")
			f.do("POST", path, body, "Content-Encoding", "br")
		}
		f.complete(ask("sim/demo", "What is 7 + 35?", `,"lathe":{"detach":true}`))
		c := f.dial(t)
		c.send(`{"type":"response.create","model":"sim/demo","store":false,"input":"hi"}`)
		c.events()
		if f.inflight() == 0 {
			t.Error("a connection keeps its conversation, and holds no memory")
		}
		_ = c.ws.CloseNow()
	}
	f.empties()
}

// A run that continues without its client holds the memory of its conversation until it ends.
func TestRunsHoldTheMemoryOfTheirConversation(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}, 8), make(chan struct{})
	f := serve(t, small(1<<20, func(_ int, r *http.Request) (*http.Response, error) {
		entered <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return nil, nil
	}))
	body := `{"model":"sim/demo","prompt":"` + strings.Repeat("x", 120_000) + `"}`
	for range 3 {
		if resp, text := f.do("POST", "/api/runs", body); resp.StatusCode != 201 {
			t.Fatalf("%d %s", resp.StatusCode, text)
		}
		<-entered
		f.idle()
	}
	if got := f.inflight(); got < 3*len(body) || got > 3*(len(body)+1000) {
		t.Errorf("three runs with bodies of %d bytes hold %d", len(body), got)
	}
	if resp, text := f.do("POST", "/api/runs", body); resp.StatusCode != 429 {
		t.Errorf("a further one: %d %s", resp.StatusCode, text)
	}
	close(release)
	f.empties()
}

// Messages of a WebSocket that wait hold memory. One that has no room is answered with an error, and the connection ends.
func TestMemoryOfSocketMessages(t *testing.T) {
	t.Parallel()
	testdata.WithoutRace(t)
	entered, release := make(chan struct{}, 8), make(chan struct{})
	f := serve(t, small(1<<20, func(_ int, r *http.Request) (*http.Response, error) {
		entered <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return nil, nil
	}))
	c := f.dial(t)
	message := `{"type":"response.create","model":"sim/demo","input":"` + strings.Repeat("x", 150_000) + `"}`
	c.send(message)
	<-entered
	if got := f.inflight(); got < 2*len(message) { // the message, and the conversation
		t.Errorf("a message of %d bytes holds %d", len(message), got)
	}
	c.send(message)
	for {
		e := c.next()
		if e == nil {
			t.Fatal("the connection ended without an error")
		}
		if e.Type == "error" {
			if e.Status != 429 || e.Error.Code != "rate_limit_exceeded" {
				t.Errorf("%s", e.raw)
			}
			break
		}
	}
	close(release)
	f.empties()
}

package server_test

import (
	"bytes"
	"context"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
)

// The model inTwoPieces says "first ", and "second" when the gate is open.
type inTwoPieces struct{ gate chan struct{} }

func (inTwoPieces) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (m inTwoPieces) Generate(ctx context.Context, _ *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		if !yield(lathe.Delta{Kind: lathe.DeltaText, Text: "first "}, nil) {
			return
		}
		select {
		case <-m.gate:
		case <-ctx.Done():
			yield(lathe.Delta{}, ctx.Err())
			return
		}
		if yield(lathe.Delta{Kind: lathe.DeltaText, Text: "second"}, nil) {
			yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Reason: lathe.FinishStop,
				Message: lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{lathe.Text{Text: "first second"}}}}}, nil)
		}
	}
}

// bufferingProxy forwards requests to a server as nginx does in its default configuration: it sends an answer on when it is
// complete, unless the answer has X-Accel-Buffering: no. The header itself is not sent on. With deaf it ignores the header; started
// gets a value for each answer that it begins to buffer.
func bufferingProxy(t *testing.T, target string, deaf bool) (address string, started chan struct{}) {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	started = make(chan struct{}, 16)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, ModifyResponse: func(r *http.Response) error {
		streams := r.Header.Get("X-Accel-Buffering") == "no" && !deaf
		if r.Header.Del("X-Accel-Buffering"); streams {
			return nil
		}
		started <- struct{}{}
		whole, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		_ = r.Body.Close() // it was read
		r.Body = io.NopCloser(bytes.NewReader(whole))
		return nil
	}}
	srv := httptest.NewServer(proxy)
	t.Cleanup(srv.Close)
	return srv.URL, started
}

// proxiedStreams are requests that are answered with event streams, with a text of their first pieces.
var proxiedStreams = []struct{ name, path, body, first string }{
	{"chat completions", "/v1/chat/completions", `{"model":"sim/any","stream":true,"messages":[{"role":"user","content":"x"}]}`, "first "},
	{"Responses", "/v1/responses", `{"model":"sim/any","stream":true,"input":"x"}`, "first "},
	{"Messages", "/v1/messages", `{"model":"sim/any","stream":true,"max_tokens":100,"messages":[{"role":"user","content":"x"}]}`, "first "},
	{"Gemini", "/v1beta/models/sim/any:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"x"}]}]}`, "first "},
	{"chat page", "/api/chat", `{"id":"chat-1","model":"sim/any","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"x"}]}]}`, "first "},
	{"events of a run", "/api/runs/RUN/events", "", "RunStarted"},
}

// TestStreamsPassABufferingProxy: each stream has the header that turns buffering off, so that its pieces pass the proxy as they are
// written. The model says the rest only after the client has read the first piece.
func TestStreamsPassABufferingProxy(t *testing.T) {
	t.Parallel()
	for _, deaf := range []bool{false, true} {
		for _, c := range proxiedStreams {
			name := c.name
			if deaf {
				name += " through a proxy that ignores the header"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				gate := make(chan struct{})
				h := open(t, func(s *setting) { s.model = inTwoPieces{gate} })
				method, path := http.MethodPost, c.path
				if c.body == "" {
					method, path = http.MethodGet, strings.Replace(c.path, "RUN", h.begin("x").ID, 1)
				}
				address, buffers := bufferingProxy(t, h.url, deaf)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // of a stream that is buffered
				defer cancel()
				req, err := http.NewRequestWithContext(ctx, method, address+path, strings.NewReader(c.body))
				if err != nil {
					t.Fatal(err)
				}
				client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
				type answer struct {
					resp *http.Response
					err  error
				}
				answered := make(chan answer, 1)
				go func() {
					resp, err := client.Do(req)
					answered <- answer{resp, err}
				}()
				if deaf { // which shows that the proxy of the other cases would buffer
					<-buffers
					select {
					case a := <-answered:
						t.Fatalf("it was answered before the stream had ended: %+v", a)
					default:
					}
					close(gate)
				}
				a := <-answered
				if a.err != nil {
					t.Fatal(a.err)
				}
				defer a.resp.Body.Close()
				if a.resp.StatusCode != http.StatusOK || a.resp.Header.Get("X-Accel-Buffering") != "" || !strings.HasPrefix(a.resp.Header.Get("Content-Type"), "text/event-stream") {
					t.Fatalf("%d %v", a.resp.StatusCode, a.resp.Header)
				}
				var text strings.Builder
				b := make([]byte, 4096)
				for err = nil; err == nil && !strings.Contains(text.String(), c.first); {
					var n int
					n, err = a.resp.Body.Read(b)
					text.Write(b[:n])
				}
				if !deaf {
					close(gate)
				}
				rest, err := io.ReadAll(a.resp.Body)
				if err != nil || !strings.Contains(text.String()+string(rest), "second") {
					t.Errorf("%v: %s%s", err, text.String(), rest)
				}
			})
		}
	}
}

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"
)

// What the proxy does to the first exchange of a cell.
const (
	cutFirst   = "first"   // closes both connections when the tool was executed, before a byte of the answer
	cutText    = "text"    // closes both after the first text of the model's last message
	cutFinish  = "finish"  // closes the client's in place of the chunk with the finish reason
	cutDone    = "done"    // closes the client's after that chunk, before [DONE]
	cutTimeout = "timeout" // answers 504 some time after the tool was executed
)

// losesAnswer reports whether the proxy drops an answer after the gateway has sent the whole of it.
func (p *failurePlace) losesAnswer(stream bool) bool {
	return p.cut == cutFinish || p.cut == cutDone || p.cut == cutText && !stream
}

// effectProxy is a proxy in front of two gateways. It cuts connections as the place of a cell says, and counts requests.
// Where it drops an answer that it has received, it uses the gateway that repeats delivered answers.
func effectProxy(t *testing.T, gateway, repeating string, cells map[string]*effectCell) string {
	targets := map[bool]*url.URL{}
	for repeats, base := range map[bool]string{false: gateway, true: repeating} {
		target, err := url.Parse(strings.TrimSuffix(base, "/v1"))
		if err != nil {
			t.Fatal(err)
		}
		targets[repeats] = target
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<24))
		if err != nil {
			return
		}
		var req chatRequest
		_ = json.Unmarshal(body, &req) // a request without a body has none
		r.Body = io.NopCloser(bytes.NewReader(body))
		c := cells[req.Model]
		target := targets[c != nil && c.place.losesAnswer(req.Stream)]
		proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) }, ErrorLog: quiet,
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }}
		if c == nil || !req.wantsMail() {
			proxy.ServeHTTP(w, r)
			return
		}
		c.mu.Lock()
		c.requests++
		first := c.requests == 1
		c.mu.Unlock()
		proxy.ModifyResponse = func(resp *http.Response) error {
			if resp.StatusCode == http.StatusBadRequest {
				b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
				if err != nil {
					return err
				}
				resp.Body = io.NopCloser(bytes.NewReader(b))
				c.mu.Lock()
				c.refused = append(c.refused, string(b))
				c.mu.Unlock()
			}
			return nil
		}
		if !first || c.place.cut == "" {
			proxy.ServeHTTP(w, r)
			return
		}
		c.cutExchange(proxy, w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

// cutExchange serves the first exchange of a cell.
func (c *effectCell) cutExchange(proxy *httputil.ReverseProxy, w http.ResponseWriter, r *http.Request) {
	switch c.place.cut {
	case cutFirst, cutTimeout:
		answered := httptest.NewRecorder()
		done := make(chan struct{})
		ctx, cancel := context.WithCancel(r.Context())
		go func() {
			defer close(done)
			defer func() { _ = recover() }() // the proxy aborts when its context ends
			proxy.ServeHTTP(answered, r.WithContext(ctx))
		}()
		select {
		case <-c.executed:
		case <-done:
		}
		time.Sleep(500 * time.Millisecond) // the model call after the tool has begun
		cancel()
		<-done
		if c.place.cut == cutFirst {
			panic(http.ErrAbortHandler)
		}
		http.Error(w, "<html><body><h1>504 Gateway Time-out</h1></body></html>", http.StatusGatewayTimeout)
	default:
		proxy.ServeHTTP(&cutter{ResponseWriter: w, place: c.place.cut}, r)
	}
}

// A cutter passes an answer on up to a place, and closes the connection there.
type cutter struct {
	http.ResponseWriter
	place string
	seen  []byte
	sent  int
}

func (c *cutter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cutter) WriteHeader(status int) {
	c.Header().Del("Content-Length")
	c.ResponseWriter.WriteHeader(status)
}

func (c *cutter) Write(b []byte) (int, error) {
	c.seen = append(c.seen, b...)
	end := -1
	switch c.place {
	case cutText:
		if i := bytes.Index(c.seen, []byte(effectAnswer)); i >= 0 {
			end = c.after(i, "\n\n")
		}
	case cutFinish:
		if i := bytes.Index(c.seen, []byte(`"finish_reason":"`)); i >= 0 {
			end = max(bytes.LastIndex(c.seen[:i], []byte("\n\n"))+2, 0)
			if end < 2 { // an answer that is not a stream
				end = i
			}
		}
	case cutDone:
		if i := bytes.Index(c.seen, []byte(`"finish_reason":"`)); i >= 0 {
			end = c.after(i, "\n\n")
		}
	}
	if end >= 0 {
		if end > c.sent {
			_, _ = c.ResponseWriter.Write(c.seen[c.sent:end])
			_ = http.NewResponseController(c.ResponseWriter).Flush()
		}
		panic(http.ErrAbortHandler)
	}
	n, err := c.ResponseWriter.Write(c.seen[c.sent:])
	c.sent += n
	return len(b), err
}

// after returns the end of the first mark after i, or the end of what was seen.
func (c *cutter) after(i int, mark string) int {
	if j := bytes.Index(c.seen[i:], []byte(mark)); j >= 0 {
		return i + j + len(mark)
	}
	return len(c.seen)
}

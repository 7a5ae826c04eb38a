// Package proxy has the peers of the gateway: proxies on net/http that do less.
package proxy

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// Reverse returns httputil.ReverseProxy, which is what the standard library has.
func Reverse(upstream string) (http.Handler, error) {
	u, err := url.Parse(upstream)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{FlushInterval: -1, Transport: Transport(), Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }}, nil
}

// Transport returns a transport of net/http that keeps many connections.
func Transport() *http.Transport {
	return &http.Transport{MaxIdleConnsPerHost: 2048, MaxIdleConns: 4096, DisableCompression: true}
}

// A Lean proxy runs on net/http that reads the body first, and takes every event apart before it hands it on: what
// a gateway cannot do without.
type Lean struct {
	Upstream string
	Client   *http.Transport
}

func (l *Lean) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<20))
	if err != nil {
		http.Error(w, "body", http.StatusBadRequest)
		return
	}
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, l.Upstream+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		http.Error(w, "request", http.StatusInternalServerError)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.Client.RoundTrip(req)
	if err != nil {
		http.Error(w, "upstream", http.StatusBadGateway)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	w.Header()["Content-Type"] = resp.Header["Content-Type"]
	w.WriteHeader(resp.StatusCode)
	a := openai.NewAssembler(nil)
	if resp.Header.Get("Content-Type") != "text/event-stream" {
		whole, err := io.ReadAll(resp.Body)
		if err == nil {
			_, _, err = a.Complete(nil, whole)
		}
		if err == nil {
			_, _ = w.Write(whole)
		}
		return
	}
	rc := http.NewResponseController(w)
	events := sse.NewReader(resp.Body, nil)
	events.KeepRaw()
	for !a.Done() {
		e, err := events.Next()
		if err != nil {
			return
		}
		if _, err := a.Append(nil, e.Data); err != nil {
			return
		}
		if _, err := w.Write(events.Raw()); err != nil || rc.Flush() != nil {
			return
		}
	}
}

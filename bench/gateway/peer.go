package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// reverseProxy is what the standard library has.
func reverseProxy(upstream string) (http.Handler, error) {
	u, err := url.Parse(upstream)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{FlushInterval: -1, Transport: transport(), Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }}, nil
}

func transport() *http.Transport {
	return &http.Transport{MaxIdleConnsPerHost: 2048, MaxIdleConns: 4096, DisableCompression: true}
}

// A lean proxy on net/http that reads the body first, and takes every event apart before it hands it on: what
// a gateway cannot do without.
type lean struct {
	upstream string
	client   *http.Transport
}

func (l *lean) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<20))
	if err != nil {
		http.Error(w, "body", http.StatusBadRequest)
		return
	}
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, l.upstream+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		http.Error(w, "request", http.StatusInternalServerError)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.client.RoundTrip(req)
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
	defer events.Release()
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

// config is what lathe serves: a relay without tools, or with the calculator, in front of the model server.
func config(dir, upstream string, tools bool) (string, error) {
	builtin := "[]"
	if tools {
		builtin = "[calculator]"
	}
	text := "tools: {builtin: " + builtin + "}\nserve: {max_concurrent: 8192}\ntool_calling: {max_repeated_calls: 1000000}\nmodels:\n"
	for _, name := range []string{"t50", "t500", "p100", "p2000"} {
		text += fmt.Sprintf("  %s: {base_url: %q, client_timeout: 10m, max_attempts: 1}\n", name, upstream+"/v1")
	}
	path := filepath.Join(dir, fmt.Sprintf("lathe-%v.yaml", tools))
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// patience is how long a process may take until it listens.
const patience = 30 * time.Second

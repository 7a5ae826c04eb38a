package main

import (
	"bytes"
	"net/http"
	"net/url"

	"github.com/lathe-run/lathe/observe"
)

// scrape returns the metrics in the text format of Prometheus.
func scrape(m *observe.Metrics) []byte {
	w := &memoryResponse{header: http.Header{}}
	m.Handler().ServeHTTP(w, &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/metrics"}, Header: http.Header{}})
	return w.Bytes()
}

// A memoryResponse is a response writer that stores the response in memory: the body in the buffer.
type memoryResponse struct {
	bytes.Buffer
	header http.Header
}

func (m *memoryResponse) Header() http.Header { return m.header }
func (m *memoryResponse) WriteHeader(int)     {}

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
	return w.body.Bytes()
}

// A memoryResponse is a response writer that stores the response in memory.
type memoryResponse struct {
	header http.Header
	body   bytes.Buffer
}

func (m *memoryResponse) Header() http.Header         { return m.header }
func (m *memoryResponse) Write(b []byte) (int, error) { return m.body.Write(b) }
func (m *memoryResponse) WriteHeader(int)             {}

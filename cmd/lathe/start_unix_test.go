//go:build unix

package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/daemon/daemontest"
)

// TestServeCollectsAsUsualWhenReady: the gateway postpones collections until it listens, and no longer.
func TestServeCollectsAsUsualWhenReady(t *testing.T) {
	m := daemontest.NewServiceManager(t)
	t.Setenv("NOTIFY_SOCKET", m.Path)
	t.Setenv("GOGC", "")
	p := startProc(t, t.TempDir(), "serve", "--addr", "127.0.0.1:0")
	url := strings.TrimSuffix(p.awaitLine(`http://[0-9.:]+/v1`), "/v1")
	if got := m.Next(false); got != "READY=1" {
		t.Fatalf("got %q, want READY=1", got)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "\ngo_gc_gogc_percent 100\n") {
		t.Errorf("GOGC is not what it is without package startgc:\n%s", b)
	}
}

package main

import (
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lathe-run/lathe/internal/app"
)

// The probe of the image does not read the configuration: it finds out by itself that the gateway serves HTTPS.
func TestReadyOfADaemonWithTLS(t *testing.T) {
	t.Parallel()
	lent := httptest.NewTLSServer(http.NotFoundHandler())
	defer lent.Close()
	pair := lent.TLS.Certificates[0]
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, b := range map[string][]byte{
		"cert.pem":   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
		"key.pem":    pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		"lathe.yaml": []byte("serve:\n  tls: {cert: cert.pem, key: key.pem}\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := app.LoadConfig(filepath.Join(dir, "lathe.yaml"), &app.LoadOptions{Environ: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var stopping atomic.Bool
	handler := a.Handler()
	srv := a.HTTPServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stopping.Load() {
			http.Error(w, "draining", http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	var serving sync.WaitGroup
	serving.Go(func() { _ = srv.Serve(a.Listener(ln)) })
	defer serving.Wait()
	defer func() { _ = srv.Close() }()
	if err := probe(t.Context(), "http", ln.Addr().String()); err != nil {
		t.Error(err)
	}
	stopping.Store(true)
	if err := probe(t.Context(), "http", ln.Addr().String()); err == nil || err.Error() != "HTTP 503: draining" {
		t.Errorf("a gateway that stops: %v", err)
	}
}

// Any other refusal is final: the gateway is asked once.
func TestReadyAsksOnceOfADaemonWithoutTLS(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "no", http.StatusBadRequest)
	}))
	defer daemon.Close()
	if err := probe(t.Context(), "http", daemon.Listener.Addr().String()); err == nil || !strings.Contains(err.Error(), "HTTP 400 for /readyz") || asked.Load() != 1 {
		t.Errorf("%v, asked %d times", err, asked.Load())
	}
}

package app_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/app"
	"github.com/lathe-run/lathe/internal/config"
)

// writeCertificate writes cert.pem and key.pem for localhost, and returns the pool with the certificate.
func writeCertificate(t *testing.T, dir string, serial int64) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	for name, b := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return pool
}

// With serve.tls the application serves TLS 1.2 and later, and a reload takes a new certificate; one that cannot be read
// changes nothing.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := writeCertificate(t, dir, 1)
	path := filepath.Join(dir, "lathe.yaml")
	if err := os.WriteFile(path, []byte("serve:\n  tls: {cert: cert.pem, key: key.pem}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func() *config.Config {
		cfg, err := app.LoadConfig(path, &app.LoadOptions{Environ: []string{}})
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	a, err := app.New(read(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := a.HTTPServer(a.Handler())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(a.Listener(ln))
	}()
	defer func() {
		_ = srv.Close()
		<-done
	}()
	get := func(pool *x509.CertPool, most uint16) error {
		tr := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost", MinVersion: tls.VersionTLS10, MaxVersion: most}} //nolint:gosec // the test asks for old versions
		res, err := (&http.Client{Transport: tr}).Get("https://" + ln.Addr().String() + "/livez")
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("status %d", res.StatusCode)
		}
		return nil
	}
	for version, ok := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		if err := get(first, version); (err == nil) != ok {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
	}
	second := writeCertificate(t, dir, 2)
	if err := a.Reload(read()); err != nil {
		t.Fatal(err)
	}
	if err := get(second, tls.VersionTLS13); err != nil {
		t.Error("the new certificate:", err)
	}
	if err := get(first, tls.VersionTLS13); err == nil {
		t.Error("the old certificate is still served")
	}
	if err := os.WriteFile(filepath.Join(dir, "cert.pem"), []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.Reload(read()); err == nil || !strings.Contains(err.Error(), "serve.tls") {
		t.Error("a certificate that cannot be read:", err)
	}
	if err := get(second, tls.VersionTLS13); err != nil {
		t.Error("after a reload that failed:", err)
	}
	if _, err := app.New(read(), nil); err == nil || !strings.Contains(err.Error(), "serve.tls") {
		t.Error("a start with a certificate that cannot be read:", err)
	}
}

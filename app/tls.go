package app

import (
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"

	"github.com/lathe-run/lathe/config"
)

// loadCertificate reads the files of serve.tls; nil if none are set.
func loadCertificate(cfg *config.Config) (*tls.Certificate, error) {
	t := &cfg.Serve.TLS
	if t.Cert == "" {
		return nil, nil
	}
	full := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(cfg.Dir(), path)
	}
	c, err := tls.LoadX509KeyPair(full(t.Cert), full(t.Key))
	if err != nil {
		return nil, invalidConfig(fmt.Errorf("serve.tls: %w", err))
	}
	return &c, nil
}

// TLS reports whether serve.tls was set when the application was made.
func (a *App) TLS() bool { return a.certificate.Load() != nil }

// Listener returns ln, or, with serve.tls, a listener that serves TLS 1.2 or later on it, with the certificate in force. A
// reload that removes serve.tls keeps the certificate.
func (a *App) Listener(ln net.Listener) net.Listener {
	if !a.TLS() {
		return ln
	}
	return tls.NewListener(ln, &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return a.certificate.Load(), nil }})
}

package app

import (
	"crypto/tls"
	"net"

	"github.com/lathe-run/lathe/internal/config"
	"github.com/lathe-run/lathe/internal/regular"
)

// maxTLSFile is the largest size of the files of serve.tls in bytes.
const maxTLSFile = 1 << 20

// loadCertificate reads the files of serve.tls. It returns nil if none are set.
func loadCertificate(cfg *config.Config) (*tls.Certificate, error) {
	t := &cfg.Serve.TLS
	if t.Cert == "" {
		return nil, nil
	}
	var pair [2][]byte
	for i, path := range []string{t.Cert, t.Key} {
		path = besideConfig(cfg, path)
		var err error
		if pair[i], err = regular.Read(path, maxTLSFile); err != nil {
			return nil, invalidConfig("serve.tls: %w", err)
		}
		if len(pair[i]) > maxTLSFile {
			return nil, invalidConfig("serve.tls: %s is larger than %d bytes", path, maxTLSFile)
		}
	}
	c, err := tls.X509KeyPair(pair[0], pair[1])
	if err != nil {
		return nil, invalidConfig("serve.tls: %w", err)
	}
	return &c, nil
}

// TLS reports whether serve.tls was set when the App was made.
func (a *App) TLS() bool { return a.certificate.Load() != nil }

// Listener returns ln or, if serve.tls is set, a listener on ln that serves TLS 1.2 or later with the current certificate. After a reload
// that removes serve.tls, the certificate is still used.
func (a *App) Listener(ln net.Listener) net.Listener {
	if !a.TLS() {
		return ln
	}
	return tls.NewListener(ln, &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return a.certificate.Load(), nil }})
}

package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	readyTimeout   = 5 * time.Second                                  // timeout of one request of --ready
	maxReadyAnswer = 4 << 10                                          // bytes of the response
	wantsHTTPS     = "Client sent an HTTP request to an HTTPS server" // response of net/http
)

// askReady checks whether the gateway at --addr, or serve.addr, is ready: over HTTPS if the configuration has a certificate, or if the
// gateway responds that it serves HTTPS. It is the health check of a container without other programs.
func (f *serveFlags) askReady(cmd *cobra.Command) error {
	addr, scheme := f.daemon.Addr, "http"
	if cfg, err := configOf(cmd); err == nil {
		addr = cmp.Or(addr, cfg.Serve.Addr)
		if cfg.Serve.TLS.Cert != "" {
			scheme = "https"
		}
	} else if addr == "" {
		return err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port == "0" {
		return usageError("--ready wants --addr HOST:PORT, where the gateway listens")
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), readyTimeout)
	defer cancel()
	host = net.JoinHostPort(reachable(host), port)
	if _, err := url.Parse(scheme + "://" + host); err != nil {
		return usageError("--ready wants --addr HOST:PORT, where the gateway listens")
	}
	if err := probe(ctx, scheme, host); err != nil {
		return failure("the gateway is not ready: %w", err)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), "ready")
	return err
}

// reachable returns the loopback address for an unspecified one ("", 0.0.0.0 or ::), and any other host unchanged.
func reachable(host string) string {
	ip := net.ParseIP(cmp.Or(host, "0.0.0.0"))
	switch {
	case !ip.IsUnspecified():
		return host
	case ip.To4() == nil:
		return "::1"
	}
	return "127.0.0.1"
}

// probe returns why the gateway at host is not ready, or nil. It repeats the request over HTTPS if the gateway responds that it serves HTTPS.
func probe(ctx context.Context, scheme, host string) error {
	status, body, err := readiness(ctx, scheme+"://"+host)
	if err == nil && scheme == "http" && status == http.StatusBadRequest && strings.Contains(body, wantsHTTPS) {
		status, body, err = readiness(ctx, "https://"+host)
	}
	switch {
	case err != nil || status == http.StatusOK:
		return err
	case status == http.StatusServiceUnavailable:
		return fmt.Errorf("HTTP %d: %s", status, printable(strings.TrimSpace(body)))
	}
	return fmt.Errorf("another program answers at %s: HTTP %d for /readyz; look at --addr and serve.addr", host, status)
}

// readiness requests /readyz of the gateway at a URL.
func readiness(ctx context.Context, daemon string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, daemon+"/readyz", http.NoBody)
	if err != nil {
		return 0, "", err
	}
	resp, err := (&http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{ //nolint:gosec // the certificate is for the name that callers use, and nothing secret is sent or read
		MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}}).RoundTrip(req) // no proxy
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxReadyAnswer))
	if resp.StatusCode != http.StatusOK {
		err = nil // the status is sufficient
	}
	return resp.StatusCode, string(b), err
}

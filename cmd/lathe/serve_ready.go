package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	readyTimeout   = 5 * time.Second // of one question of --ready
	maxReadyAnswer = 4 << 10         // bytes that are read of the answer
)

// askReady asks the daemon at --addr, or serve.addr, whether it takes requests. It is the probe of a container that has no
// other program.
func (f *serveFlags) askReady(cmd *cobra.Command) error {
	addr, scheme := f.addr, "http"
	if cfg, err := loadConfig(configPath(cmd), nil); err == nil {
		if addr == "" {
			addr = cfg.Serve.Addr
		}
		if cfg.Serve.TLS.Cert != "" {
			scheme = "https"
		}
	} else if addr == "" {
		return err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port == "0" {
		return usageError("--ready wants --addr HOST:PORT, where the daemon listens")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), readyTimeout)
	defer cancel()
	url := scheme + "://" + net.JoinHostPort(host, port) + "/readyz"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return usageError("--ready wants --addr HOST:PORT, where the daemon listens")
	}
	resp, err := (&http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{ //nolint:gosec // the certificate is for the name that callers use, and nothing secret is sent or read
		MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}}).RoundTrip(req) // no proxy
	if err != nil {
		return &exitError{exitFailed, fmt.Errorf("the daemon is not ready: %w", err)}
	}
	defer func() { _ = resp.Body.Close() }() // the answer was read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReadyAnswer))
	if resp.StatusCode != http.StatusOK {
		text := printable(strings.TrimSpace(string(body)))
		return &exitError{exitFailed, errors.Join(fmt.Errorf("the daemon is not ready: HTTP %d: %s", resp.StatusCode, text), err)}
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), "ready")
	return err
}

//go:build unix

// Package daemontest is a service manager for tests of programs that notify one, as systemd is notified.
package daemontest

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A ServiceManager is the socket of a service manager. Its methods must be called by one goroutine, that of the test.
type ServiceManager struct {
	t    *testing.T
	Path string // of its socket
	conn *net.UnixConn
}

// NewServiceManager returns a socket that is open until the test ends.
func NewServiceManager(t *testing.T) *ServiceManager {
	t.Helper()
	dir, err := os.MkdirTemp("", "lathe") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m := &ServiceManager{t: t, Path: filepath.Join(dir, "notify")}
	if m.conn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.Path, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.conn.Close() })
	return m
}

// Next returns the next message, without those of the watchdog unless one is wanted.
func (m *ServiceManager) Next(watchdog bool) string {
	m.t.Helper()
	buf := make([]byte, 4096)
	for {
		if err := m.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			m.t.Fatal(err)
		}
		n, err := m.conn.Read(buf)
		if err != nil {
			m.t.Fatal(err)
		}
		if text := string(buf[:n]); watchdog || text != "WATCHDOG=1" {
			return text
		}
	}
}

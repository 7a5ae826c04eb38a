//go:build unix

// Package daemontest simulates a service manager such as systemd, for tests of programs that notify it.
package daemontest

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A ServiceManager is the socket of a simulated service manager. Only the goroutine of the test may call its methods.
type ServiceManager struct {
	t    *testing.T
	Path string // path of the socket
	conn *net.UnixConn
}

// NewServiceManager returns a service manager whose socket is closed at the end of the test.
func NewServiceManager(t *testing.T) *ServiceManager {
	t.Helper()
	dir, err := os.MkdirTemp("", "lathe") // a short path: paths of sockets have a small limit
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

// Next returns the next message. It skips messages of the watchdog unless watchdog is true.
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

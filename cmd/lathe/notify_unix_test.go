//go:build unix

package main

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A serviceManager is the socket of a service manager.
type serviceManager struct {
	t    *testing.T
	path string
	conn *net.UnixConn
}

func newServiceManager(t *testing.T) *serviceManager {
	t.Helper()
	dir, err := os.MkdirTemp("", "lathe") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m := &serviceManager{t: t, path: filepath.Join(dir, "notify")}
	if m.conn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.path, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.conn.Close() })
	return m
}

// next returns the next message, without those of the watchdog unless one is wanted.
func (m *serviceManager) next(watchdog bool) string {
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

// TestServeNotifiesServiceManager: systemd is sent when the daemon is ready, alive, reloading and stopping.
func TestServeNotifiesServiceManager(t *testing.T) {
	m := newServiceManager(t)
	t.Setenv("NOTIFY_SOCKET", m.path)
	t.Setenv("WATCHDOG_USEC", "20000")
	dir := t.TempDir()
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "lathe.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("serve: {addr: '127.0.0.1:0'}\n")
	p := startProc(t, dir, "serve")
	want := func(messages ...string) {
		t.Helper()
		for _, message := range messages {
			if got := m.next(false); got != message {
				t.Fatalf("got %q, want %q; the daemon says %s", got, message, p.output.text.String())
			}
		}
	}
	want("READY=1")
	if got := m.next(true); got != "WATCHDOG=1" {
		t.Fatalf("got %q, want a message of the watchdog", got)
	}
	for _, text := range []string{"serve: {addr: '127.0.0.1:0'}\n", "nonsense: 1\n"} { // also if the file is refused
		put(text)
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		want("RELOADING=1", "READY=1")
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	want("STOPPING=1")
	p.awaitLine("stopped")
}

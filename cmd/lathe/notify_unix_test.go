//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/lathe-run/lathe/internal/daemon/daemontest"
)

// TestServeNotifiesServiceManager: systemd is sent when the gateway is ready, alive, reloading and stopping.
func TestServeNotifiesServiceManager(t *testing.T) {
	m := daemontest.NewServiceManager(t)
	t.Setenv("NOTIFY_SOCKET", m.Path)
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
			if got := m.Next(false); got != message {
				t.Fatalf("got %q, want %q; the gateway says %s", got, message, p.output.text.String())
			}
		}
	}
	want("READY=1")
	if got := m.Next(true); got != "WATCHDOG=1" {
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

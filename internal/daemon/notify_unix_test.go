//go:build unix

package daemon

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
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

// TestWatchdogNeedsHealthyHandler: the message of the watchdog is sent while the daemon answers, and otherwise not.
func TestWatchdogNeedsHealthyHandler(t *testing.T) {
	m := newServiceManager(t)
	t.Setenv("NOTIFY_SOCKET", m.path)
	t.Setenv("WATCHDOG_USEC", "2000")
	n, err := newNotifier()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("NOTIFY_SOCKET")+os.Getenv("WATCHDOG_USEC") != "" {
		t.Error("child processes would get the socket")
	}
	answers := 0
	refused := make(chan error, 1)
	stop := n.watch(context.Background(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answers++; answers > 2 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = w.Write([]byte(r.URL.Path))
	}), func(err error) {
		select {
		case refused <- err:
		default:
		}
	})
	if err := <-refused; !strings.Contains(err.Error(), "HTTP 500") {
		t.Error(err)
	}
	stop()
	if err := n.send("STOPPING=1"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for len(got) == 0 || got[len(got)-1] != "STOPPING=1" {
		got = append(got, m.next(true))
	}
	if text := strings.Join(got, " "); text != "WATCHDOG=1 WATCHDOG=1 STOPPING=1" {
		t.Errorf("got %q, want two messages of the watchdog", text)
	}
	// The watchdog of another process, and no manager.
	t.Setenv("NOTIFY_SOCKET", m.path)
	t.Setenv("WATCHDOG_USEC", "2000")
	t.Setenv("WATCHDOG_PID", "1")
	if n, err = newNotifier(); err != nil || n.every != 0 {
		t.Errorf("the watchdog of another process: %+v, %v", n, err)
	}
	if n, err = newNotifier(); err != nil || n.conn != nil || n.send("READY=1") != nil {
		t.Errorf("without a manager: %+v, %v", n, err)
	}
	t.Setenv("NOTIFY_SOCKET", m.path+".none")
	if _, err = newNotifier(); err == nil || !strings.Contains(err.Error(), "NOTIFY_SOCKET") {
		t.Errorf("a socket that is not there: %v", err)
	}
}

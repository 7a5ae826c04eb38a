//go:build unix

package daemon

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/internal/daemon/daemontest"
)

// TestWatchdogNeedsHealthyHandler: the message of the watchdog is sent while the gateway answers, and otherwise not.
func TestWatchdogNeedsHealthyHandler(t *testing.T) {
	m := daemontest.NewServiceManager(t)
	t.Setenv("NOTIFY_SOCKET", m.Path)
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
		got = append(got, m.Next(true))
	}
	if text := strings.Join(got, " "); text != "WATCHDOG=1 WATCHDOG=1 STOPPING=1" {
		t.Errorf("got %q, want two messages of the watchdog", text)
	}
	// The watchdog of another process, and no manager.
	t.Setenv("NOTIFY_SOCKET", m.Path)
	t.Setenv("WATCHDOG_USEC", "2000")
	t.Setenv("WATCHDOG_PID", "1")
	if n, err = newNotifier(); err != nil || n.every != 0 {
		t.Errorf("the watchdog of another process: %+v, %v", n, err)
	}
	if n, err = newNotifier(); err != nil || n.conn != nil || n.send("READY=1") != nil {
		t.Errorf("without a manager: %+v, %v", n, err)
	}
	t.Setenv("NOTIFY_SOCKET", m.Path+".none")
	if _, err = newNotifier(); err == nil || !strings.Contains(err.Error(), "NOTIFY_SOCKET") {
		t.Errorf("a socket that is not there: %v", err)
	}
}

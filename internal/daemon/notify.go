package daemon

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

// notifyTimeout limits the time of one message to the service manager.
const notifyTimeout = 5 * time.Second

// A notifier sends the state of the gateway to systemd over the socket in NOTIFY_SOCKET: see sd_notify(3). Without a socket it sends
// nothing. Its methods may be called from several goroutines at once.
type notifier struct {
	conn  net.Conn      // nil: there is no service manager
	every time.Duration // interval of the messages of the watchdog; 0: no messages
}

// newNotifier connects to the socket in NOTIFY_SOCKET and removes the variables from the environment of child processes.
func newNotifier() (*notifier, error) {
	n := &notifier{}
	path, owner, limit := os.Getenv("NOTIFY_SOCKET"), os.Getenv("WATCHDOG_PID"), os.Getenv("WATCHDOG_USEC")
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"} {
		_ = os.Unsetenv(name) // fails only for invalid names
	}
	if path == "" {
		return n, nil
	}
	var err error
	if n.conn, err = net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"}); err != nil {
		return nil, failed(fmt.Errorf("the socket of NOTIFY_SOCKET: %w", err))
	}
	if usec, err := strconv.ParseInt(limit, 10, 64); err == nil && usec > 1 && (owner == "" || owner == strconv.Itoa(os.Getpid())) {
		n.every = time.Duration(usec) * time.Microsecond / 2
	}
	return n, nil
}

// send sends states such as READY=1, one on each line.
func (n *notifier) send(states string) error {
	if n.conn == nil {
		return nil
	}
	err := n.conn.SetWriteDeadline(time.Now().Add(notifyTimeout))
	if err == nil {
		_, err = n.conn.Write([]byte(states))
	}
	return err
}

// watch sends a message at the interval of the watchdog if h answers GET /livez with 200, until stop is called. It calls h directly, not
// over a connection: a process at its limit of connections is healthy. If h does not return, no message is sent, and systemd ends the
// process.
func (n *notifier) watch(ctx context.Context, h http.Handler, failed func(error)) (stop func()) {
	if n.every == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.Tick(n.every)
		for ctx.Err() == nil {
			var answer livezAnswer
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/livez", http.NoBody)
			if err == nil {
				h.ServeHTTP(&answer, req)
				if answer == http.StatusOK {
					err = n.send("WATCHDOG=1")
				} else {
					err = fmt.Errorf("GET /livez: HTTP %d", answer)
				}
			}
			if err != nil && ctx.Err() == nil {
				failed(err)
			}
			select {
			case <-tick:
			case <-ctx.Done():
			}
		}
	}()
	return func() { cancel(); <-done }
}

// A livezAnswer is the status code of a response.
type livezAnswer int

// Header implements http.ResponseWriter.
func (*livezAnswer) Header() http.Header { return http.Header{} }

// WriteHeader implements http.ResponseWriter.
func (a *livezAnswer) WriteHeader(status int) { *a = livezAnswer(status) }

// Write implements http.ResponseWriter.
func (a *livezAnswer) Write(b []byte) (int, error) {
	*a = livezAnswer(cmp.Or(int(*a), http.StatusOK))
	return len(b), nil
}

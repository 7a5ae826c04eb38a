package provider_test

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe/provider"
)

// If a https:// address leads to a server of plain HTTP, the error says so at once, whether the server answers TLS's first
// bytes, closes the connection, or waits for more.
func TestPlainServerUnderHTTPSIsNamed(t *testing.T) {
	t.Parallel()
	answering := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(answering.Close)
	line := func(conn *net.TCPConn, r *bufio.Reader) {
		if text, err := r.ReadString('\n'); err == nil && strings.HasPrefix(text, "HEAD / ") {
			_, _ = conn.Write([]byte("HTTP/1.1 404 Not Found\r\n\r\n"))
		}
	}
	for name, url := range map[string]string{
		"answers": answering.URL,
		"waits":   connections(t, func(_ int32, conn *net.TCPConn, r *bufio.Reader) { line(conn, r) }),
		"closes": connections(t, func(_ int32, conn *net.TCPConn, r *bufio.Reader) {
			if first, err := r.Peek(1); err == nil && first[0] != 22 {
				line(conn, r)
			}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			c := open(t, nil, func(o *provider.Options) { o.BaseURL = strings.Replace(url, "http:", "https:", 1) })
			a := ask(t, t.Context(), c)
			if up := a.upstream(t); !strings.Contains(up.Message, "write http://") || up.Detail != up.Message || len(a.retries) > 0 || time.Since(start) > time.Minute {
				t.Errorf("after %v and %d retries: %+v", time.Since(start), len(a.retries), up)
			}
		})
	}
}

// A server of TLS that is slow is waited for.
func TestSlowTLSServerIsNotTakenForPlain(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { stream(w, hello()) }))
	srv.Listener = slowFirst{srv.Listener}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	c := open(t, nil, func(o *provider.Options) { o.BaseURL, o.Retry.Attempts = srv.URL, 1 })
	a := ask(t, t.Context(), c)
	if up := a.upstream(t); !strings.Contains(up.Message, "SSL_CERT_FILE") || !strings.Contains(up.Detail, "unknown authority") || up.Retryable {
		t.Errorf("got %+v", up) // which is what the handshake says in the end
	}
}

// A slowFirst delays what its connections read by more than the client waits before it asks in plain HTTP.
type slowFirst struct{ net.Listener }

func (l slowFirst) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &slowConn{Conn: c, after: time.Now().Add(1200 * time.Millisecond)}, nil
}

type slowConn struct {
	net.Conn
	after time.Time
}

func (c *slowConn) Read(b []byte) (int, error) {
	<-time.After(time.Until(c.after))
	return c.Conn.Read(b)
}

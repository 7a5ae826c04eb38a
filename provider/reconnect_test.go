package provider_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
)

// connections serves each connection with serve on a goroutine of its own, and returns the base URL.
func connections(t *testing.T, serve func(n int32, conn *net.TCPConn, requests *bufio.Reader)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var n atomic.Int32
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(n.Add(1), conn.(*net.TCPConn), bufio.NewReader(conn))
			}()
		}
	}()
	return "http://" + l.Addr().String() + "/v1"
}

// readRequest reads the next request of a connection and its body.
func readRequest(r *bufio.Reader) bool {
	req, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err == nil
}

func writeHello(conn net.Conn) {
	fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nKeep-Alive: timeout=5, max=100\r\nContent-Length: %d\r\n\r\n%s", len(hello()), hello())
}

// A connection that the server closes between two requests costs no attempt, whatever moment the close is noticed in.
func TestClosedReusedConnectionIsNoFailure(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*net.TCPConn, *bufio.Reader){
		"with the last byte": func(*net.TCPConn, *bufio.Reader) {},
		"by FIN, after the next request": func(_ *net.TCPConn, r *bufio.Reader) {
			readRequest(r)
		},
		"by RST, after the next request": func(conn *net.TCPConn, r *bufio.Reader) {
			readRequest(r)
			_ = conn.SetLinger(0)
		},
		"by RST, before the next request's body is read": func(conn *net.TCPConn, r *bufio.Reader) {
			_, _ = r.ReadByte()
			_ = conn.SetLinger(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := connections(t, func(_ int32, conn *net.TCPConn, r *bufio.Reader) {
				if readRequest(r) {
					writeHello(conn)
					end(conn, r)
				}
			})
			c := open(t, nil, func(o *provider.Options) { o.BaseURL, o.Retry.Attempts = url, 1 })
			var history []lathe.Message
			for i := range 50 {
				history = append(history, lathe.User(fmt.Sprint("turn ", i)))
				if a := ask(t, t.Context(), c, history...); a.text != "Hello" || len(a.retries) > 0 {
					t.Fatalf("turn %d: %q, %d retries, %v", i, a.text, len(a.retries), a.err)
				}
			}
		})
	}
}

// What is not the end of a kept connection stays a failed attempt.
func TestLostConnectionIsAFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		requests int32 // that the server got
		serve    func(n int32, conn *net.TCPConn, r *bufio.Reader, got *atomic.Int32)
	}{
		{"a new connection", 2, func(n int32, conn *net.TCPConn, r *bufio.Reader, got *atomic.Int32) {
			if readRequest(r) && got.Add(1) == 1 {
				writeHello(conn)
			}
			if n == 1 {
				_, _ = r.ReadByte() // until the client closes it: the second request finds no connection
			}
		}},
		{"the connection that replaced a closed one", 3, func(n int32, conn *net.TCPConn, r *bufio.Reader, got *atomic.Int32) {
			for readRequest(r) {
				if got.Add(1) > 1 {
					return
				}
				writeHello(conn)
			}
		}},
		{"after the first byte of a response", 2, func(_ int32, conn *net.TCPConn, r *bufio.Reader, got *atomic.Int32) {
			for readRequest(r) {
				if got.Add(1) > 1 {
					_, _ = io.WriteString(conn, "HTTP/1.1 200")
					return
				}
				writeHello(conn)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got atomic.Int32
			url := connections(t, func(n int32, conn *net.TCPConn, r *bufio.Reader) { c.serve(n, conn, r, &got) })
			chat := open(t, nil, func(o *provider.Options) { o.BaseURL, o.Retry.Attempts = url, 1 })
			if a := ask(t, t.Context(), chat); a.text != "Hello" {
				t.Fatal(a.err)
			}
			if c.name == "a new connection" {
				chat.CloseIdleConnections()
			}
			if a := ask(t, t.Context(), chat); a.kind() != lathe.UpstreamAborted {
				t.Errorf("got %q, %v", a.text, a.err)
			}
			if got.Load() != c.requests {
				t.Errorf("%d requests, want %d", got.Load(), c.requests)
			}
		})
	}
}

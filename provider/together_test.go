package provider

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lathe-run/lathe"
)

// A countedConn counts writes.
type countedConn struct {
	net.Conn
	writes *atomic.Int32
}

func (c countedConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// A small request goes out in one write, and whole, whatever its size.
func TestSmallRequestIsOneWrite(t *testing.T) {
	t.Parallel()
	for _, size := range []int{10, 2 * maxTogether} {
		text := strings.Repeat("x", size)
		var writes atomic.Int32
		var got atomic.Bool
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			got.Store(err == nil && int64(len(body)) == r.ContentLength && strings.Contains(string(body), text))
			_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`)
		}))
		defer srv.Close()
		c, err := OpenAI("m", &Options{BaseURL: srv.URL})
		if err != nil {
			t.Fatal(err)
		}
		c.own = newTransport(func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			return countedConn{conn, &writes}, err
		})
		c.own.Proxy = nil
		c.transport = c.own
		defer c.CloseIdleConnections()
		for range 2 { // on a new connection and on one that was used
			writes.Store(0)
			for _, err := range c.Generate(t.Context(), &lathe.Request{Messages: []lathe.Message{lathe.User(text)}}) {
				if err != nil {
					t.Fatal(err)
				}
			}
			if n := writes.Load(); !got.Load() || (n == 1) != (size < maxTogether) {
				t.Errorf("%d bytes of text: whole %v, in %d writes", size, got.Load(), n)
			}
		}
	}
}

// A connection that breaks after it was made is no failure to connect, even if the server never read the request.
func TestSmallRequestHadAConnection(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer srv.Close()
	none := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("nobody is there") }
	for connect, transport := range map[bool]*http.Transport{false: newTransport(nil), true: newTransport(none)} {
		c, err := OpenAI("m", &Options{BaseURL: srv.URL, Retry: Retry{Attempts: 1}})
		if err != nil {
			t.Fatal(err)
		}
		c.own, c.transport = transport, transport
		c.own.Proxy = nil
		defer c.CloseIdleConnections()
		for _, err := range c.Generate(t.Context(), &lathe.Request{Messages: []lathe.Message{lathe.User("x")}}) {
			var up *lathe.UpstreamError
			if !errors.As(err, &up) || up.Connect != connect {
				t.Errorf("%v: connect %v, want %v", err, up != nil && up.Connect, connect)
			}
		}
	}
}

// Package plain recognises servers that use plain HTTP where TLS was expected. Such a server often reads the first bytes of TLS as the
// beginning of a request and waits for more, so that the client would only see its own timeout. [Fault] describes this error and those of
// certificates.
package plain

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// ErrSpoken is returned if the server answered a plain HTTP request on a port where TLS was expected.
var ErrSpoken = errors.New("the server speaks plain HTTP, and https:// was expected")

// patience is how long a server may take to send the first byte of its TLS handshake before Dialer tests whether it uses plain HTTP, and
// how long the server may take to respond to that test.
const patience = time.Second

// A Dial opens a connection, as [net.Dialer.DialContext] does.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// Dialer returns a Dial for TLS connections. If the server does not begin its part of the handshake within a second, or closes the
// connection, a second connection sends it one HEAD request for "/", without credentials. If the response is plain HTTP, the first
// connection fails with [ErrSpoken]. A connection whose first bytes are not those of TLS, such as one to a proxy, is not tested.
func Dialer(dial Dial) Dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &conn{Conn: c, again: func() (net.Conn, error) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
			defer cancel()
			return dial(ctx, network, addr)
		}}, nil
	}
}

// A conn tests the first read of a connection. Its fields need no lock: net/http uses one goroutine for both directions until the handshake
// is complete.
type conn struct {
	net.Conn
	again   func() (net.Conn, error)
	wrote   bool // the first bytes have been written
	watches bool // the bytes written first were those of TLS, and nothing has been read yet
}

// Write checks whether the first bytes are a TLS record of type handshake.
func (c *conn) Write(b []byte) (int, error) {
	if !c.wrote && len(b) > 0 {
		c.wrote, c.watches = true, len(b) > 1 && b[0] == 22 && b[1] == 3
	}
	return c.Conn.Write(b)
}

func (c *conn) Read(b []byte) (int, error) {
	if !c.watches {
		return c.Conn.Read(b)
	}
	c.watches = false
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	if n == 0 && err != nil && c.answersPlain() {
		return 0, ErrSpoken
	}
	if resetErr := c.SetReadDeadline(time.Time{}); err == nil {
		err = resetErr
	}
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) { // the server is slow but not plain HTTP
		return c.Conn.Read(b)
	}
	return n, err
}

// answersPlain sends a HEAD request for "/" in plain HTTP and reports whether the response is HTTP with a status other than 400, which TLS
// servers return.
func (c *conn) answersPlain() bool {
	p, err := c.again()
	if err != nil {
		return false
	}
	defer func() { _ = p.Close() }() // the response has been read, or the attempt has failed
	if p.SetDeadline(time.Now().Add(patience)) != nil {
		return false
	}
	if _, err := io.WriteString(p, "HEAD / HTTP/1.0\r\nHost: localhost\r\n\r\n"); err != nil {
		return false
	}
	var got [len("HTTP/1.1 200")]byte
	if _, err := io.ReadFull(p, got[:]); err != nil {
		return false
	}
	version, status := string(got[:len("HTTP/1.")]), string(got[len("HTTP/1.1 "):])
	return version == "HTTP/1." && status != "400"
}

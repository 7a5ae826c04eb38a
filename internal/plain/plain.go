// Package plain recognises servers that speak plain HTTP where TLS was expected. Such a server often takes the
// first bytes of TLS for the beginning of a request and waits for the rest, so that the client learns nothing until
// its own timeout. [Fault] describes such mistakes of an address, and those of certificates.
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

// patience is how long a server may take for the first byte of its part of the TLS handshake before Dialer tests
// whether it speaks plain HTTP, and how long it may take to answer that test.
const patience = time.Second

// A Dial connects, as [net.Dialer.DialContext] does.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// Dialer returns a Dial for connections that are to speak TLS. If the server does not begin its part of the handshake
// within a second, or ends the connection, it is asked on a second connection, once and without any credentials, for
// the headers of "/". If it answers in plain HTTP, the connection fails with [ErrSpoken]. A connection whose first bytes are
// not those of TLS, such as one to a proxy, is left alone.
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

// A conn watches the first read of a connection. net/http reads and writes each side in one goroutine at a time, and
// the handshake is over before they differ.
type conn struct {
	net.Conn
	again   func() (net.Conn, error)
	wrote   bool // the first bytes were written
	watches bool // they were those of TLS, and nothing was read yet
}

// Write notes whether the first bytes are a TLS record of type handshake.
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
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) { // it is only slow
		return c.Conn.Read(b)
	}
	return n, err
}

// answersPlain asks the server for the headers of "/" in plain HTTP. Servers of TLS answer that with 400.
func (c *conn) answersPlain() bool {
	p, err := c.again()
	if err != nil {
		return false
	}
	defer func() { _ = p.Close() }() // the answer is read, or there is none
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

// Package reconnect recognises requests that failed only because the server had closed the reused connection, and reads how long a server
// asks the client to wait before the next request.
//
// A client that reuses connections can send a request at the moment at which the server closes the connection. llama.cpp, for example,
// closes a connection with the last byte of each stream although its header promises keep-alive. net/http repeats a GET request, but not a
// POST request. A caller that may repeat its request uses a [Record] and, if [Record.Closed] reports true, sends the request once more
// through [Fresh].
package reconnect

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"syscall"
)

// A Record records whether one request at a time used a reused connection and got a response. Its hooks may run on other goroutines.
type Record struct {
	reused   atomic.Bool // the last connection had served an earlier request
	answered atomic.Bool // a byte of the response was read
}

// Trace returns hooks that fill r. connected, if not nil, is called when the transport has a connection for the request. A transport that
// calls no hooks leaves r empty.
func (r *Record) Trace(connected func()) *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			r.reused.Store(info.Reused)
			if connected != nil {
				connected()
			}
		},
		GotFirstResponseByte: func() { r.answered.Store(true) },
	}
}

// Closed reports whether err, returned by RoundTrip, means that the server closed a reused connection before the first byte of the
// response. The server may have processed the request: a caller may repeat it only if a second execution does no harm.
func (r *Record) Closed(err error) bool {
	return err != nil && r.reused.Load() && !r.answered.Load() && isClosed(err)
}

// isClosed reports whether err means that the peer closed or reset the connection.
func isClosed(err error) bool {
	for _, known := range [...]error{io.EOF, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE} {
		if errors.Is(err, known) {
			return true
		}
	}
	// net/http does not export this error, and the socket errors of Windows do not equal the errors above.
	text := err.Error()
	return strings.Contains(text, "http: server closed idle connection") || strings.Contains(text, "forcibly closed by the remote host")
}

// Fresh returns a transport with the settings of t that opens a connection for each request.
func Fresh(t *http.Transport) *http.Transport {
	fresh := t.Clone()
	fresh.DisableKeepAlives = true
	return fresh
}

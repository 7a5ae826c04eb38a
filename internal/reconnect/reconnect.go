// Package reconnect recognises requests that failed only because the server had closed the connection
// that they were sent on, and reads how long a server asks to wait before the next request.
//
// A client that keeps connections can send a request in the moment in which the server closes the
// connection. llama.cpp, for example, closes a connection with the last byte of each stream while its
// header promises to keep it. net/http sends a GET request again by itself, but not a POST request. A
// caller that may repeat its request uses a [Record] and, if [Record.Closed] reports true, sends the
// request once more through [Fresh].
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

// A Record notes how one request at a time travelled. Its hooks may be called on other goroutines.
type Record struct {
	reused   atomic.Bool // the last connection had served an earlier request
	answered atomic.Bool // a byte of the response was read
}

// Trace returns the hooks that fill r in. connected, if not nil, is called once the transport has a
// connection for the request. Transports that do not call hooks leave r empty.
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

// Closed reports whether err, returned by RoundTrip, says that the server closed a reused connection
// before the first byte of the response. The server can have read the request: a caller may only send it
// again if a second execution does no harm.
func (r *Record) Closed(err error) bool {
	return err != nil && r.reused.Load() && !r.answered.Load() && isClosed(err)
}

// isClosed reports whether err is that of a connection that the peer closed or reset.
func isClosed(err error) bool {
	for _, known := range [...]error{io.EOF, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE} {
		if errors.Is(err, known) {
			return true
		}
	}
	// net/http does not export this error, nor do Windows' socket errors equal the ones above.
	text := err.Error()
	return strings.Contains(text, "http: server closed idle connection") || strings.Contains(text, "forcibly closed by the remote host")
}

// Fresh returns a transport with the settings of t that opens a connection for each request.
func Fresh(t *http.Transport) *http.Transport {
	fresh := t.Clone()
	fresh.DisableKeepAlives = true
	return fresh
}

package server

import (
	"bytes"
	"net/http"
	"strconv"
	"time"

	"github.com/coder/websocket"
)

// A socketWriter is the http.ResponseWriter of a request that came as a message of a socket. It sends the data of each
// server-sent event as a message. A response with another status or content type is sent as an error message.
//
// If a response fails after its first event, only response.failed is sent: the event `error` before it is left out, since
// clients read each of the two as the end of the response.
type socketWriter struct {
	socket *socket
	header http.Header
	status int
	rest   []byte // the beginning of an event or, if the response is not a stream, its body
	begun  bool   // at least one event was sent
	ended  bool   // the event that ends the response was sent
	failed bool   // the response has ended with a failure
}

// Header implements http.ResponseWriter.
func (w *socketWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *socketWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// FlushError implements the interface of http.ResponseController. It does nothing, since each message is sent at once.
func (w *socketWriter) FlushError() error { return nil }

// SetWriteDeadline implements the interface of http.ResponseController. Each message has its own deadline. Only a deadline
// in the past has an effect: it ends a write in progress.
func (w *socketWriter) SetWriteDeadline(t time.Time) error {
	if !t.IsZero() && t.Before(time.Now()) {
		w.socket.cut("the client does not take what it is sent")
	}
	return nil
}

// streams reports whether the response is a stream of events.
func (w *socketWriter) streams() bool {
	return w.status == http.StatusOK && w.header.Get("Content-Type") == "text/event-stream"
}

// Write implements http.ResponseWriter.
func (w *socketWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.rest = append(w.rest, b...)
	if !w.streams() {
		return len(b), nil
	}
	for {
		event, rest, whole := bytes.Cut(w.rest, []byte("\n\n"))
		if !whole {
			return len(b), nil
		}
		w.rest = rest
		if err := w.event(event); err != nil {
			return 0, err
		}
	}
}

// event sends the data of one event as a message. The event has two lines:
//
//	event: response.created
//	data: {"type":"response.created",…}
func (w *socketWriter) event(event []byte) error {
	var data, name []byte
	for line := range bytes.Lines(event) {
		if v, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			data = bytes.TrimSpace(v)
		} else if v, ok := bytes.CutPrefix(line, []byte("event: ")); ok {
			name = bytes.TrimSpace(v)
		}
	}
	switch string(name) {
	case "error", "": // "" is the name of comments and of [DONE]
		return nil
	case "response.completed", "response.incomplete", "response.failed":
		w.ended, w.failed = true, string(name) == "response.failed"
	}
	w.begun = true
	return w.socket.send(data)
}

// finish completes the response after its handler has returned. If no event was sent it sends an error message, and if the
// last event is missing it ends the connection.
func (w *socketWriter) finish() {
	switch {
	case w.begun && !w.ended:
		w.failed = true
		w.socket.end(websocket.StatusInternalError, "the response broke off")
	case !w.begun:
		w.failed = true
		_ = w.socket.send(socketError(w.status, w.rest)) // an error means that the connection has ended
	}
}

// socketError returns the message for an error whose response body, in OpenAI's format, is body.
func socketError(status int, body []byte) []byte {
	body = bytes.TrimSpace(body)
	if status < 400 || len(body) < 2 || body[0] != '{' {
		status, body = http.StatusInternalServerError, []byte(`{"error":{"message":"The gateway failed.","type":"server_error","param":null,"code":"internal_error"}}`)
	}
	dst := strconv.AppendInt([]byte(`{"type":"error","status":`), int64(status), 10)
	return append(append(dst, ','), body[1:]...)
}

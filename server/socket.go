package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/lathe-run/lathe/internal/gateway/memory"
	"github.com/lathe-run/lathe/internal/gateway/middleware"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/text"
)

// WebSocket mode of /v1/responses: each text message `response.create` of a client is a request, and the events of its response
// are text messages to the client. The handshake passes the middleware, and so does each message: it is handled as the request
// POST /v1/responses with the headers of the handshake, so that the credential, the rate, the limits, the log and the drain of
// the server apply to it. A connection has a place in the pool of sockets; each message takes one in the pool of requests.
//
// Four goroutines serve a connection: one reads messages, one handles them one after the other, one sends pings, so that proxies
// do not close an idle connection, and one closes the connection when its context ends.

const (
	// maxWaiting limits the messages that wait on a connection while one is handled. Their bytes are limited by Limits.MaxBody.
	maxWaiting = 4
	// maxPings limits the pings of a client within pingWindow.
	maxPings   = 120
	pingWindow = time.Minute
)

// sockets counts the WebSocket connections of clients.
type sockets struct {
	mu      sync.Mutex
	closing bool
	serving sync.WaitGroup
}

// admit counts a connection, and reports false if the server stops. The caller calls serving.Done.
func (s *sockets) admit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.serving.Add(1)
	}
	return !s.closing
}

// drain refuses further connections and waits until those that there are have ended, or ctx is done.
func (s *sockets) drain(ctx context.Context) {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.serving.Wait()
	}()
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// A socket is one connection.
type socket struct {
	server   *Server
	request  *http.Request // of the handshake
	ws       *websocket.Conn
	ctx      context.Context // ends with the connection; its cause is a *closed
	cancel   context.CancelCauseFunc
	reserved *memory.Reservation // of the conversation that the connection keeps
	caller   *caller             // of the handshake
	queue    chan socketMessage  // messages that wait
	waiting  atomic.Int64
	pings    pingCount
	// last is the last response, if it is not stored, under lastID; nil: there is none. refers is set if the message that is
	// handled continues it. Only the goroutine that handles messages uses them.
	last   *earlierResponse
	lastID string
	refers bool
	// message is the message that is handled. Only the same goroutine uses it.
	message socketMessage
}

// socketKey is the key of the socket in the context of a request that came as a message.
type socketKey struct{}

// socketOf returns the connection of a request that came as a message; nil: it is an HTTP request.
func socketOf(ctx context.Context) *socket {
	s, _ := ctx.Value(socketKey{}).(*socket)
	return s
}

// asksUpgrade reports whether a request asks for a WebSocket.
func asksUpgrade(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// connectSocket serves a WebSocket until it ends. Requests that do not ask for one are answered 404.
func (g *Server) connectSocket(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	if !asksUpgrade(r) {
		return notFound("unknown_url", "GET is for WebSockets here. Send requests with POST /v1/responses.")
	}
	if p := g.takes(); p != nil || !g.sockets.admit() {
		if p == nil {
			p = draining()
		}
		return p
	}
	defer g.sockets.serving.Done()
	reserved := g.memory.Begin(c.key.Name, c.setup.needsKey())
	s := &socket{server: g, request: r, caller: c, reserved: &reserved, queue: make(chan socketMessage, maxWaiting)}
	defer func() { s.reserved.Release() }()
	s.ctx, s.cancel = context.WithCancelCause(context.WithValue(context.WithoutCancel(r.Context()), socketKey{}, s))
	defer s.cancel(nil)
	var err error
	s.ws, err = websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled,
		InsecureSkipVerify: true, // the middleware has checked the origin
		OnPingReceived:     func(context.Context, []byte) bool { return s.pinged() }})
	if err != nil {
		return nil // Accept has answered
	}
	s.serve()
	return nil
}

// serve handles messages until the connection ends.
func (s *socket) serve() {
	s.ws.SetReadLimit(int64(s.server.opts.Limits.MaxBody))
	var work sync.WaitGroup
	work.Go(s.close)
	work.Go(s.read)
	work.Go(s.ping)
	s.handleAll()
	work.Wait()
}

// closed is why a connection ends.
type closed struct {
	status websocket.StatusCode
	reason string
	cut    bool // without a closing handshake
}

func (e *closed) Error() string { return e.reason }

// end ends the connection with a status for the client; only the first reason counts.
func (s *socket) end(status websocket.StatusCode, reason string) {
	s.cancel(&closed{status: status, reason: reason})
}

// cut ends the connection without a closing handshake.
func (s *socket) cut(reason string) { s.cancel(&closed{reason: reason, cut: true}) }

// close closes the connection when its context ends. It waits for the client to close it, too, for 5 s at most, and not when the
// server stops at once.
func (s *socket) close() {
	<-s.ctx.Done()
	if e := (*closed)(nil); errors.As(context.Cause(s.ctx), &e) && !e.cut {
		stop := context.AfterFunc(s.server.stopped, func() { _ = s.ws.CloseNow() })
		_ = s.ws.Close(e.status, text.Cut(e.reason, 120))
		stop()
	}
	_ = s.ws.CloseNow()
}

// read queues the messages of the client.
func (s *socket) read() {
	defer close(s.queue)
	l := &s.server.opts.Limits
	for {
		kind, from, err := s.ws.Reader(context.Background()) // the goroutine of close ends it
		if err != nil {
			s.cut("the client has left")
			return
		}
		late := time.AfterFunc(l.BodyTimeout, func() { s.end(websocket.StatusPolicyViolation, "a message did not come in time") })
		reserved := s.server.memory.Begin(s.caller.key.Name, s.caller.setup.needsKey())
		reserved.Beside = s.reserved.Size()
		message, err := middleware.ReadAll(from, 0, middleware.BodyLimit{MaxBytes: int64(l.MaxBody) + 1, Reserve: reserved.Reserve})
		late.Stop()
		if err != nil || kind != websocket.MessageText {
			reserved.Release()
		}
		reserved.Settle(message)
		var full *problem
		switch {
		case errors.As(err, &full):
			s.refuse(full)
			status := websocket.StatusTryAgainLater
			if full.RetryAfter == 0 {
				status = websocket.StatusMessageTooBig
			}
			s.end(status, full.Code)
			return
		case err != nil: // also of a message that is too large, which the library has answered with status 1009
			s.cut("a message could not be read")
			return
		case kind != websocket.MessageText:
			s.end(websocket.StatusUnsupportedData, "messages are text")
			return
		}
		if n := s.waiting.Add(int64(len(message))); n > int64(l.MaxBody) && n > int64(len(message)) {
			reserved.Release()
			s.end(websocket.StatusPolicyViolation, "too many bytes wait: send the next request after the response to the last one")
			return
		}
		select {
		case s.queue <- socketMessage{message, &reserved}:
		default:
			reserved.Release()
			s.end(websocket.StatusPolicyViolation, "too many requests wait: send the next request after the response to the last one")
			return
		}
	}
}

// handleAll handles the messages one after the other until the connection ends. It ends the connection if no message comes for
// Limits.SocketIdle, after Limits.SocketAge, and when the server drains.
func (s *socket) handleAll() {
	l := &s.server.opts.Limits
	age := time.NewTimer(l.SocketAge)
	defer age.Stop()
	idle := time.NewTimer(l.SocketIdle)
	defer idle.Stop()
	for s.ctx.Err() == nil {
		idle.Reset(l.SocketIdle)
		select {
		case message, ok := <-s.queue:
			if !ok {
				return // read has ended the connection
			}
			s.handle(message)
		case <-age.C:
			s.refuse(badRequest("", "The connection has reached its greatest age: open another one.").WithCode("websocket_connection_limit_reached"))
			s.end(websocket.StatusNormalClosure, "the connection is too old")
		case <-idle.C:
			s.end(websocket.StatusNormalClosure, "the connection was idle")
		case <-s.server.leaving.Done():
			s.sendAway()
		case <-s.ctx.Done():
		}
	}
	for m := range s.queue { // read does not block
		m.reserved.Release()
	}
}

// sendAway answers the messages that wait, which the draining server refuses, and ends the connection.
func (s *socket) sendAway() {
	for {
		select {
		case message, ok := <-s.queue:
			if ok {
				s.handle(message)
				continue
			}
		default:
		}
		s.end(websocket.StatusGoingAway, "the server stops")
		return
	}
}

// A socketMessage is a message that waits, with its memory.
type socketMessage struct {
	text     []byte
	reserved *memory.Reservation
}

// handle handles one message as a request.
func (s *socket) handle(m socketMessage) {
	defer m.reserved.Release()
	defer s.waiting.Add(-int64(len(m.text)))
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	w := &socketWriter{socket: s, header: http.Header{}}
	s.refers, s.message = false, m
	s.server.ServeHTTP(w, s.post(ctx))
	s.message.text = nil
	if w.finish(); w.failed && s.refers {
		s.last = nil
		s.reserved.Release()
	}
}

// post returns the request of the message that is handled. Its body is the text of the message: see [Server.readBody].
func (s *socket) post(ctx context.Context) *http.Request {
	r := s.request.Clone(ctx)
	r.Method, r.Body, r.ContentLength = http.MethodPost, http.NoBody, int64(len(s.message.text))
	r.TransferEncoding, r.URL.RawQuery, r.RequestURI = nil, "", r.URL.Path
	for _, name := range []string{"Upgrade", "Connection", "Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Extensions",
		"Sec-Websocket-Protocol", "Content-Encoding", "Content-Length", "Expect", "X-Request-Id"} {
		r.Header.Del(name)
	}
	r.Header.Set("Content-Type", "application/json")
	return r
}

// send sends one message.
func (s *socket) send(message []byte) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.server.opts.Limits.WriteTimeout)
	defer cancel()
	err := s.ws.Write(ctx, websocket.MessageText, message)
	if err != nil {
		s.cut("the client does not take what it is sent")
	}
	return err
}

// refuse sends an error that no request caused.
func (s *socket) refuse(p *problem) {
	c := &caller{form: problems.OpenAI}
	_ = s.send(socketError(p.Status, responsesAPI.AppendError(nil, c.apiError(p)))) // or the connection has ended
}

// ping sends pings until the connection ends. A client that does not answer them is not disconnected: some clients read only
// while they wait for a response.
func (s *socket) ping() {
	tick := time.NewTicker(s.server.opts.Limits.KeepAlive)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			ctx, cancel := context.WithTimeout(s.ctx, s.server.opts.Limits.KeepAlive)
			_ = s.ws.Ping(ctx)
			cancel()
		case <-s.ctx.Done():
			return
		}
	}
}

// A pingCount counts the pings of a client in a window of time. It is used by the goroutine that reads.
type pingCount struct {
	since time.Time
	n     int
}

// pinged counts a ping and reports whether it is answered. It ends the connection of a client that sends too many.
func (s *socket) pinged() bool {
	now := time.Now()
	if now.Sub(s.pings.since) >= pingWindow {
		s.pings = pingCount{since: now}
	}
	if s.pings.n++; s.pings.n > maxPings {
		s.end(websocket.StatusPolicyViolation, "too many pings")
		return false
	}
	return true
}

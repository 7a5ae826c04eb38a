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

// WebSocket mode of /v1/responses: each text message `response.create` of a client is a request, and the events of its
// response are text messages to the client. The handshake passes the middleware. Each message passes it, too: it is handled
// as a request POST /v1/responses with the headers of the handshake, so the credential, the rate limit, the other limits,
// the log and the drain of the server apply to it. A connection takes a place in the pool of sockets; each message takes
// one in the pool of requests.
//
// Four goroutines serve a connection: one reads messages, one handles them in order, one sends pings so that proxies do not
// close an idle connection, and one closes the connection when its context ends.

const (
	// maxWaiting is the maximum number of messages that are queued while one is handled. Together they have at most
	// Limits.MaxBody bytes.
	maxWaiting = 4
	// maxPings is the maximum number of pings of a client within pingWindow.
	maxPings   = 120
	pingWindow = time.Minute
)

// sockets tracks the WebSocket connections of clients, for the drain.
type sockets struct {
	mu      sync.Mutex
	closing bool
	serving sync.WaitGroup
}

// admit registers a connection. It returns false, and registers nothing, if the server stops. Otherwise the caller must
// call serving.Done.
func (s *sockets) admit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.serving.Add(1)
	}
	return !s.closing
}

// drain refuses further connections and waits until the open ones have ended, or ctx is done.
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

// A socket is one WebSocket connection of a client.
type socket struct {
	server   *Server
	request  *http.Request // the request of the handshake
	ws       *websocket.Conn
	ctx      context.Context // done when the connection ends; its cause is a *closed
	cancel   context.CancelCauseFunc
	reserved *memory.Reservation // memory of the conversation in last
	caller   *caller             // the caller of the handshake
	queue    chan socketMessage  // messages that were read and are not handled yet
	waiting  atomic.Int64        // bytes of the messages in queue and of the one that is handled
	pings    pingCount
	// last is the last response, if it is not stored, and lastID is its id; nil if none exists. refers is set if the
	// current message continues it. Only the goroutine that handles messages uses these fields.
	last   *earlierResponse
	lastID string
	refers bool
	// message is the message that is being handled. Only the goroutine that handles messages uses it.
	message socketMessage
}

// socketKey is the context key for the *socket of a request that came as a message.
type socketKey struct{}

// socketOf returns the connection on which the request came as a message; nil: it is an HTTP request.
func socketOf(ctx context.Context) *socket {
	s, _ := ctx.Value(socketKey{}).(*socket)
	return s
}

// connectSocket handles GET /v1/responses: it serves a WebSocket until the connection ends. Other requests get 404.
func (g *Server) connectSocket(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return notFound("unknown_url", "GET is for WebSockets here. Send requests with POST /v1/responses.")
	}
	if g.draining.Load() || !g.sockets.admit() {
		return draining()
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
		OnPingReceived:     func(context.Context, []byte) bool { return s.countPing() }})
	if err != nil {
		return nil // Accept has written the response
	}
	s.serve()
	return nil
}

// serve runs the goroutines of the connection and returns after all of them have ended.
func (s *socket) serve() {
	s.ws.SetReadLimit(int64(s.server.opts.Limits.MaxBody))
	var work sync.WaitGroup
	work.Go(s.close)
	work.Go(s.read)
	work.Go(s.ping)
	s.handleAll()
	work.Wait()
}

// A closed is the reason for which a connection ends, as an error.
type closed struct {
	status websocket.StatusCode
	reason string
	cut    bool // close without a closing handshake
}

func (e *closed) Error() string { return e.reason }

// end ends the connection with a status for the client. Only the first call of end or cut counts.
func (s *socket) end(status websocket.StatusCode, reason string) {
	s.cancel(&closed{status: status, reason: reason})
}

// cut ends the connection without a closing handshake. Only the first call of end or cut counts.
func (s *socket) cut(reason string) { s.cancel(&closed{reason: reason, cut: true}) }

// close waits until the context of the connection ends, and closes the connection. It waits at most 5 s for the client to
// close, too, and less if the server stops.
func (s *socket) close() {
	<-s.ctx.Done()
	if e := (*closed)(nil); errors.As(context.Cause(s.ctx), &e) && !e.cut {
		stop := context.AfterFunc(s.server.stopped, func() { _ = s.ws.CloseNow() })
		_ = s.ws.Close(e.status, text.Cut(e.reason, 120))
		stop()
	}
	_ = s.ws.CloseNow()
}

// read reads the messages of the client into the queue until the connection ends. It closes the queue.
func (s *socket) read() {
	defer close(s.queue)
	for {
		if message, ok := s.readMessage(); !ok || !s.enqueue(message) {
			return
		}
	}
}

// readMessage reads the next message. If it cannot, it ends the connection, and ok is false.
func (s *socket) readMessage() (m socketMessage, ok bool) {
	l := &s.server.opts.Limits
	kind, from, err := s.ws.Reader(context.Background()) // closing the connection ends the read
	if err != nil {
		s.cut("the client has left")
		return m, false
	}
	late := time.AfterFunc(l.BodyTimeout, func() { s.end(websocket.StatusPolicyViolation, "a message did not come in time") })
	reserved := s.server.memory.Begin(s.caller.key.Name, s.caller.setup.needsKey())
	reserved.Beside = s.reserved.Size()
	m.reserved = &reserved
	m.text, err = middleware.ReadAll(from, 0, middleware.BodyLimit{MaxBytes: int64(l.MaxBody) + 1, Reserve: reserved.Reserve})
	late.Stop()
	if err == nil && kind == websocket.MessageText {
		reserved.Settle(m.text)
		return m, true
	}
	reserved.Release()
	var full *problem
	switch {
	case errors.As(err, &full):
		s.refuse(full)
		status := websocket.StatusTryAgainLater
		if full.RetryAfter == 0 {
			status = websocket.StatusMessageTooBig
		}
		s.end(status, full.Code)
	case err != nil: // includes a message that is too large, for which the library has sent status 1009
		s.cut("a message could not be read")
	default:
		s.end(websocket.StatusUnsupportedData, "messages are text")
	}
	return m, false
}

// enqueue adds a message to the queue. If too many messages or bytes are queued, it ends the connection and returns false.
func (s *socket) enqueue(m socketMessage) bool {
	size := int64(len(m.text))
	waiting := s.waiting.Add(size)
	reason := "too many bytes wait: send the next request after the response to the last one"
	if waiting == size || waiting <= int64(s.server.opts.Limits.MaxBody) {
		select {
		case s.queue <- m:
			return true
		default:
			reason = "too many requests wait: send the next request after the response to the last one"
		}
	}
	m.reserved.Release()
	s.end(websocket.StatusPolicyViolation, reason)
	return false
}

// handleAll handles the messages in order until the connection ends. It ends the connection if no message comes for
// Limits.SocketIdle, at the age Limits.SocketAge, and when the server drains.
func (s *socket) handleAll() {
	l := &s.server.opts.Limits
	age := time.After(l.SocketAge)
	for s.ctx.Err() == nil {
		select {
		case message, ok := <-s.queue:
			if !ok {
				return // read has closed the queue and ended the connection
			}
			s.handle(message)
		case <-age:
			s.refuse(badRequest("", "The connection has reached its greatest age: open another one.").WithCode("websocket_connection_limit_reached"))
			s.end(websocket.StatusNormalClosure, "the connection is too old")
		case <-time.After(l.SocketIdle):
			s.end(websocket.StatusNormalClosure, "the connection was idle")
		case <-s.server.leaving.Done():
			s.sendAway()
		case <-s.ctx.Done():
		}
	}
	for m := range s.queue { // read never blocks on the queue, so it closes the queue soon
		m.reserved.Release()
	}
}

// sendAway handles the queued messages, which the draining server refuses, and ends the connection.
func (s *socket) sendAway() {
	for len(s.queue) > 0 { // only this goroutine receives from the queue
		s.handle(<-s.queue)
	}
	s.end(websocket.StatusGoingAway, "the gateway stops")
}

// A socketMessage is the text of a message and the memory reserved for it.
type socketMessage struct {
	text     []byte
	reserved *memory.Reservation
}

func (s *socket) handle(m socketMessage) {
	defer m.reserved.Release()
	defer s.waiting.Add(-int64(len(m.text)))
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	w := &socketWriter{socket: s, header: http.Header{}}
	s.refers, s.message = false, m
	s.server.ServeHTTP(w, s.post(ctx))
	s.message.text = nil
	w.finish()
	if w.failed && s.refers {
		s.last = nil
		s.reserved.Release()
	}
}

// post returns the HTTP request for the current message. Its body is empty: [gate.readBody] returns the text of the
// message.
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

// send writes one message to the client, within Limits.WriteTimeout. If that fails, it ends the connection.
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

// refuse sends an error event that does not belong to a request.
func (s *socket) refuse(p *problem) {
	c := &caller{form: problems.OpenAI}
	_ = s.send(socketError(p.Status, responsesAPI.AppendError(nil, c.apiError(p)))) // an error means that the connection has ended
}

// ping sends pings until the connection ends. A client that does not answer them is not disconnected: some clients read only
// while they wait for a response.
func (s *socket) ping() {
	tick := time.Tick(s.server.opts.Limits.KeepAlive)
	for {
		select {
		case <-tick:
			ctx, cancel := context.WithTimeout(s.ctx, s.server.opts.Limits.KeepAlive)
			_ = s.ws.Ping(ctx)
			cancel()
		case <-s.ctx.Done():
			return
		}
	}
}

// A pingCount counts the pings of a client in a time window. Only the goroutine that reads uses it.
type pingCount struct {
	since time.Time
	n     int
}

// countPing counts a ping and returns whether the server replies to it. If there are too many, it ends the connection.
func (s *socket) countPing() bool {
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

package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/lathe-run/lathe/internal/jsonlines"
	"github.com/lathe-run/lathe/internal/jsonrpc2"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ServeStdio serves one client over a pair of streams, with one message per line. It returns nil when in has ended and all calls are
// answered, for which it waits at most Options.Drain. It returns the error of ctx when ctx is done. A line that is not a valid message is
// answered with an error and has no other effect.
//
// When ctx is done, a pending Read of in remains blocked until in returns: pass a reader that ends with ctx.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, c *Caller) error {
	if c == nil {
		c = &Caller{}
	}
	t, err := s.tenantOf(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithValue(ctx, stdioKey{}, true))
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	conn := newLines(in, out, s.opts.MaxMessageBytes, s.opts.Drain)
	session, err := t.server.Connect(ctx, lineTransport{conn}, nil)
	if err != nil {
		return err
	}
	cs, err := t.enter(session) // the session groups the calls of the connection in both eras
	if err != nil {
		_ = session.Close() // the session has not begun
		return err
	}
	conn.protocol = cs.protocol
	close(conn.begin)
	over := make(chan struct{})
	go func() {
		defer close(over)
		err = session.Wait()
	}()
	select {
	case <-over:
		<-cs.gone
		return conn.outcome(err)
	case <-ctx.Done():
		cs.cancel()
		conn.end()
		_ = session.Close() // an error means that it has already ended
		<-over
		<-cs.gone
		return ctx.Err()
	}
}

type lineTransport struct{ c *lines }

// Connect implements mcp.Transport.
func (t lineTransport) Connect(context.Context) (mcp.Connection, error) { return t.c, nil }

// lines is a connection with one message per line. A goroutine of its own reads lines and sends them to in; the SDK calls Read on one
// goroutine, and Write on several.
type lines struct {
	begin    chan struct{} // closed by ServeStdio when protocol is set: no message is read before
	in       chan line
	done     chan struct{} // closed by end
	ending   sync.Once
	drain    time.Duration     // how long Read waits for responses when the input has ended
	protocol func() string     // returns the protocol version of the session
	queue    []jsonrpc.Message // the remaining messages of a batch; used by Read only

	mu   sync.Mutex
	out  io.Writer
	err  error              // error of a write
	open map[string]*bundle // requests in progress by keyOf their id, with the bundle that their response joins; nil: it is sent alone
	idle chan struct{}      // signalled when no request is open
}

// A line is a line of the input. Either text is a message, or long is set, or err is the end of the input.
type line struct {
	text []byte
	long bool // the line exceeds the limit
	err  error
}

func newLines(in io.Reader, out io.Writer, limit int, drain time.Duration) *lines {
	c := &lines{begin: make(chan struct{}), in: make(chan line), done: make(chan struct{}), drain: drain, out: out, open: map[string]*bundle{}, idle: make(chan struct{}, 1)}
	go c.pump(jsonlines.NewReader(in, limit))
	return c
}

// pump reads lines until the input or the connection ends.
func (c *lines) pump(in *jsonlines.Reader) {
	for {
		text, err := in.Next()
		l := line{text: text, long: errors.Is(err, jsonlines.ErrTooLong)}
		if isBlank := len(bytes.TrimSpace(text)) == 0; isBlank && !l.long {
			if err == nil {
				continue
			}
			l.err = err // text after the last newline is a line, too: the next call returns the end of the input
		}
		select {
		case c.in <- l:
		case <-c.done:
			return
		}
		if l.err != nil {
			return
		}
	}
}

// Read returns the next valid message. It answers invalid lines itself.
func (c *lines) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case <-c.begin:
	case <-c.done:
		return nil, io.EOF
	}
	for {
		if len(c.queue) > 0 {
			msg := c.queue[0]
			c.queue = c.queue[1:]
			return msg, nil
		}
		select {
		case <-c.done:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		case l := <-c.in:
			if l.err != nil {
				c.await(ctx)
				return nil, io.EOF
			}
			var refused []byte
			c.queue, refused = c.decode(l)
			if refused == nil {
				continue
			}
			if err := c.write(refused); err != nil {
				return nil, err
			}
		}
	}
}

// decode returns the messages of a line, or the error response to it.
func (c *lines) decode(l line) (messages []jsonrpc.Message, refused []byte) {
	if l.long {
		return nil, invalid("", "the message is too large").append(nil)
	}
	if jsonrpc2.IsBatch(l.text) {
		return c.decodeBatch(l.text)
	}
	m, fault := inspect(l.text)
	if fault != nil {
		return nil, fault.append(nil)
	}
	msg, err := jsonrpc.DecodeMessage(bytes.TrimSpace(l.text))
	if err != nil {
		return nil, invalid(m.id, "not a JSON-RPC message").append(nil)
	}
	key, isCall := callKey(msg)
	awaited := isCall && m.method != "subscriptions/listen" // a subscription is answered when it ends
	if awaited && !c.register(nil, key) {
		return nil, invalid(m.id, "a request with this id is under way").append(nil)
	}
	return []jsonrpc.Message{msg}, nil
}

func (c *lines) decodeBatch(text []byte) (messages []jsonrpc.Message, refused []byte) {
	parts, refused := inspectBatch(text, c.protocol())
	if refused != nil {
		return nil, refused
	}
	var keys []string
	for _, part := range parts {
		msg, err := jsonrpc.DecodeMessage(part)
		if err != nil {
			return nil, invalid("", "not a batch of JSON-RPC messages").append(nil)
		}
		if key, isCall := callKey(msg); isCall {
			keys = append(keys, key)
		}
		messages = append(messages, msg)
	}
	if !c.register(&bundle{open: len(keys)}, keys...) {
		return nil, invalid("", "a request with the id of one in the batch is under way").append(nil)
	}
	return messages, nil
}

// register records requests whose responses are sent in one bundle, or alone if b is nil. It returns false, and records none, if a request
// with one of the ids is in progress.
func (c *lines) register(b *bundle, keys ...string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		if _, busy := c.open[key]; busy {
			return false
		}
	}
	for _, key := range keys {
		c.open[key] = b
	}
	return true
}

// callKey returns the key of a request that expects a response; false for other messages.
func callKey(msg jsonrpc.Message) (key string, isCall bool) {
	r, ok := msg.(*jsonrpc.Request)
	if !ok || !r.IsCall() {
		return "", false
	}
	return keyOf(r.ID), true
}

// keyOf returns a map key for an id, the same for different spellings of one id.
func keyOf(id jsonrpc.ID) string {
	switch v := id.Raw().(type) {
	case string:
		return "s" + v
	case int64:
		return "n" + strconv.FormatInt(v, 10)
	default: // a response without an id
		return ""
	}
}

// await waits until every request is answered, at most for the drain time.
func (c *lines) await(ctx context.Context) {
	late := time.After(c.drain)
	for {
		c.mu.Lock()
		n := len(c.open)
		c.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-c.idle:
		case <-late:
			return
		case <-c.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Write writes a message as a line. It delays the response to a request of a batch until the batch is complete.
func (c *lines) Write(_ context.Context, msg jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	r, isResponse := msg.(*jsonrpc.Response)
	if !isResponse {
		return c.write(b)
	}
	key := keyOf(r.ID)
	if b = c.bundled(key, b); b != nil {
		err = c.write(b)
	}
	c.answered(key)
	return err
}

// bundled adds a response to its bundle. It returns what to write: the complete bundle, or nil if responses are missing. A response without
// a bundle is returned as it is.
func (c *lines) bundled(key string, response []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if bundle := c.open[key]; bundle != nil {
		return bundle.put(response)
	}
	return response
}

// answered removes a request that has its response, and signals idle after the last one.
func (c *lines) answered(key string) {
	c.mu.Lock()
	delete(c.open, key)
	left := len(c.open)
	c.mu.Unlock()
	if left == 0 {
		select {
		case c.idle <- struct{}{}:
		default:
		}
	}
}

func (c *lines) write(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	_, c.err = c.out.Write(append(b, '\n'))
	return c.err
}

// outcome returns the error of a session that ended with err: that of a write that failed, else err, unless it is the end of the input.
func (c *lines) outcome(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return c.err
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}

// end ends the connection: further reads return io.EOF.
func (c *lines) end() { c.ending.Do(func() { close(c.done) }) }

// Close implements mcp.Connection.
func (c *lines) Close() error {
	c.end()
	return nil
}

// SessionID implements mcp.Connection. It returns "", since a stream has only one session.
func (c *lines) SessionID() string { return "" }

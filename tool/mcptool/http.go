package mcptool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/lathe-run/lathe/egress"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/httpname"
	"github.com/lathe-run/lathe/internal/jsonrpc2"
	"github.com/lathe-run/lathe/internal/oauth"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/secret"
)

// A gate is the transport of all requests to an HTTP server. It allows only the server's origin, adds the configured headers, and reports
// each message to the tap, which stores the raw results of watched requests: see [tap.watch]. The tap has one method for each event:
//   - sent, before a message is sent, and unsent, if it was not sent after all
//   - answered, for an answer whose status is not a success
//   - received for a message of an answer, unbatch for a batch, and receivedFor and receivedBatch if it must answer a given request: they
//     check the message and return what the decoder gets
//   - refuse, for an answer that is too long, and lost, if a stream ends before the answer
//
// The parameter carried of the methods is the watched request in the message that is sent; nil for other messages.
type gate struct {
	next    http.RoundTripper
	origin  string
	headers map[string]secret.Secret
	tap     *tap
	max     int // largest size of a message in bytes
	// lastFailure is the HTTP status of the last answer to a message if it was not a success; 0 otherwise.
	lastFailure atomic.Int64
	// isForeign reports that the last answer to a message had a content type that MCP servers do not use.
	isForeign atomic.Bool
	// redirect is the target of the last answer if it was a redirect: a URL at the server's origin, or another origin.
	redirect atomic.Pointer[string]
	// unauthorized is the error of the last request that failed for lack of an accepted token.
	unauthorized atomic.Pointer[oauth.Error]
}

// newGate returns a client whose transport is the gate, and the gate.
func newGate(s *Server, client *http.Client, t *tap) (*http.Client, *gate, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, nil, errors.New("the url cannot be read")
	}
	g := &gate{next: client.Transport, origin: httpname.Origin(u), headers: s.Headers, tap: t, max: s.MaxLineBytes}
	if g.next == nil {
		g.next = http.DefaultTransport
	}
	return &http.Client{Transport: g, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, g, nil
}

var errOrigin = errors.New("the server named an address at another origin than its own")

func (g *gate) RoundTrip(req *http.Request) (*http.Response, error) {
	if httpname.Origin(req.URL) != g.origin {
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper closes the body also if it fails
		}
		return nil, errOrigin
	}
	ctx := req.Context()
	id, carried := g.outgoing(req)
	out := req.Clone(ctx)
	g.addHeaders(ctx, out.Header)
	resp, err := g.next.RoundTrip(out)
	if err != nil {
		g.recordFailure(err, carried)
		return nil, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		g.recordRefusal(out, resp, carried)
		return resp, nil
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if req.Method == http.MethodPost {
		g.lastFailure.Store(0)
		g.isForeign.Store(kind != "application/json" && kind != "text/event-stream" && resp.StatusCode == http.StatusOK && id != "")
	}
	switch kind {
	case "application/json":
		resp.Body = &jsonBody{src: resp.Body, gate: g, id: id}
	case "text/event-stream":
		resp.Body = &eventBody{src: resp.Body, gate: g, ctx: ctx, events: sse.NewReader(resp.Body, &sse.Options{MaxLine: g.max, MaxEvent: g.max})}
	default:
		resp.Body = limited(resp.Body, g.max)
	}
	return resp, nil
}

// addHeaders sets the configured headers, those of the trace, and those of the marked parameters of a call.
func (g *gate) addHeaders(ctx context.Context, h http.Header) {
	for name, v := range g.headers {
		h.Set(name, v.Reveal())
	}
	if t := event.TraceFrom(ctx); t.Parent != "" {
		h.Set("Traceparent", t.Parent)
		if t.Baggage != "" {
			h.Set("Baggage", t.Baggage)
		}
	}
	if r := requestOf(ctx); r != nil {
		addMarked(h, r.marks, r.arguments)
	}
}

// recordFailure records the error of a message without an answer.
func (g *gate) recordFailure(err error, carried *request) {
	if e, ok := errors.AsType[*oauth.Error](err); ok {
		g.unauthorized.Store(e)
		g.tap.unsent(carried, e)
	} else if neverSent(err) {
		g.tap.unsent(carried, nil)
	}
}

// recordRefusal records an answer that is not a success. If the server no longer knows the session of a watched request, the answer is
// replaced: see replaceByError.
func (g *gate) recordRefusal(req *http.Request, resp *http.Response, carried *request) {
	if req.Method == http.MethodPost {
		g.lastFailure.Store(int64(resp.StatusCode))
	}
	if to := g.leadsTo(req, resp); to != "" {
		g.redirect.Store(&to)
	}
	resp.Body = limited(resp.Body, g.max)
	failed := readFailure(req, resp)
	id := g.tap.answered(req.Context(), carried, failed)        // "": the message does not belong to a watched request
	isAwaited := carried != nil || req.Method == http.MethodGet // a GET may resume the stream of a watched request
	if id != "" && isAwaited && failed.refusal.needsSession() {
		replaceByError(resp, id)
	}
}

// replaceByError makes the answer a stream with a JSON-RPC error for the request with this id, because the decoder would end all other
// requests of the connection after the status of the answer.
func replaceByError(resp *http.Response, id string) {
	_ = resp.Body.Close()
	resp.StatusCode, resp.Header = http.StatusOK, http.Header{"Content-Type": {"text/event-stream"}}
	resp.Body = io.NopCloser(bytes.NewReader(sse.AppendEvent(nil, sse.Event{Data: errorResponse(id)})))
}

// leadsTo returns the URL of a redirect without its query, or only the origin if it is another one. "": not a redirect.
func (g *gate) leadsTo(req *http.Request, resp *http.Response) string {
	location := resp.Header.Get("Location")
	to, err := req.URL.Parse(location)
	if resp.StatusCode < 300 || resp.StatusCode > 399 || location == "" || err != nil || to.Host == "" {
		return ""
	}
	target := to.Scheme + "://" + to.Host
	if httpname.Origin(to) == g.origin {
		target += to.EscapedPath()
	}
	return target
}

// outgoing passes a message to the tap before it is sent. It returns the JSON text of its id, "" if it has none, and the watched request in it.
func (g *gate) outgoing(req *http.Request) (id string, carried *request) {
	if req.GetBody == nil {
		return "", nil
	}
	body, err := req.GetBody()
	if err != nil {
		return "", nil
	}
	raw, err := io.ReadAll(body) // a message of this client, in memory
	if err != nil || rawjson.Kind(raw) != '{' {
		return "", nil
	}
	return string(rawjson.At(raw, "id")), g.tap.sent(req.Context(), raw)
}

// neverSent reports whether a request was not sent to the server.
func neverSent(err error) bool {
	if e, ok := errors.AsType[*egress.Error](err); ok {
		return e.Unsent
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

type limitedBody struct {
	io.Reader
	io.Closer
}

func limited(b io.ReadCloser, limit int) io.ReadCloser {
	return limitedBody{io.LimitReader(b, int64(limit)), b}
}

// A jsonBody is a body with one message, which is read and checked as a whole before any byte is returned.
type jsonBody struct {
	src     io.ReadCloser
	gate    *gate
	id      string       // of the request that the body answers; "": of none
	ready   bool         // src was read
	checked bytes.Reader // what is returned in place of src
}

func (b *jsonBody) Read(p []byte) (int, error) {
	if !b.ready {
		b.ready = true
		raw, err := io.ReadAll(io.LimitReader(b.src, int64(b.gate.max)+1))
		switch {
		case err != nil:
			return 0, fmt.Errorf("reading the answer: %w", err)
		case len(raw) > b.gate.max:
			raw = b.gate.tap.refuse(b.id, errTooLong)
		case len(bytes.TrimSpace(raw)) == 0: // not a message
		case jsonrpc2.IsBatch(raw):
			raw = b.gate.tap.receivedBatch(raw, b.id)
		default:
			raw = b.gate.tap.receivedFor(raw, b.id)
		}
		b.checked.Reset(raw)
	}
	return b.checked.Read(p)
}

func (b *jsonBody) Close() error { return b.src.Close() }

// An eventBody is a stream of messages, each of which is checked before it is returned.
type eventBody struct {
	src    io.ReadCloser
	events *sse.Reader
	gate   *gate
	ctx    context.Context // of the request that the stream answers

	// An event is read when messages and text are empty. Each of its messages is then checked when text is empty.
	event     sse.Event    // the current event
	messages  [][]byte     // messages of the event that were not yet checked
	text      bytes.Buffer // text of an event to return
	resumable bool         // an event had an id, so the client can continue the stream with another request
	err       error        // why the stream has ended
}

func (b *eventBody) Read(p []byte) (int, error) {
	for b.text.Len() == 0 {
		switch {
		case len(b.messages) > 0:
			b.checkMessage()
		case b.err != nil:
			return 0, b.err
		default:
			b.readEvent()
		}
	}
	return b.text.Read(p)
}

// readEvent reads an event and sets messages, text if the event contains no message, or err.
func (b *eventBody) readEvent() {
	if b.event, b.err = b.events.Next(); b.err != nil {
		b.recordEnd()
		return
	}
	if b.event.ID != "" {
		b.resumable = true
	}
	data := b.event.Data
	switch {
	case b.event.Type != "message" || len(data) == 0:
		b.setText()
	case jsonrpc2.IsBatch(data):
		b.messages = b.gate.tap.unbatch(data)
	default:
		b.messages = [][]byte{data}
	}
}

// checkMessage removes the first of messages and sets text to an event with it, unless the decoder may not process it.
func (b *eventBody) checkMessage() {
	b.event.Data, b.messages = b.gate.tap.received(b.messages[0]), b.messages[1:]
	if b.event.Data != nil {
		b.setText()
	}
}

func (b *eventBody) setText() { b.text.Write(sse.AppendEvent(b.text.AvailableBuffer(), b.event)) }

// recordEnd fails the request whose answer can no longer arrive because the stream has ended.
func (b *eventBody) recordEnd() {
	switch {
	case errors.Is(b.err, sse.ErrEventTooLong), errors.Is(b.err, sse.ErrLineTooLong):
		b.gate.tap.lost(b.ctx, errTooLong)
	case !b.resumable:
		b.gate.tap.lost(b.ctx, errBrokeOff)
	}
}

func (b *eventBody) Close() error { return b.src.Close() }

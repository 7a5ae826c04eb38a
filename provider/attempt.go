package provider

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/reconnect"
	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/wire"
)

// An attempt is one request and its response.
type attempt struct {
	v       *modelCall
	yield   func(lathe.Delta, error) bool
	relay   *lathe.Relay // nil: the bytes are not relayed
	begun   bool         // a delta, or the bytes of one, were handed over
	lead    lead
	follows bool // its deltas follow those of another answer of the turn, which the server paused
	delta   bool // a delta was handed over
	stopped bool // the consumer wants no more
	// reconnected is set if the server had closed the first connection that the request was sent on.
	reconnected bool
	status      int
	requestID   string
	refusal     *wire.APIError // the error that the server reported
	finish      *lathe.Finish

	watch  *watch
	body   *responseBody
	events *sse.Reader
	answer wire.Assembler

	raw       lathe.Raw   // of a relayed stream, the event that was read
	held      []lathe.Raw // of a relayed stream, the events at the beginning that were not handed over
	heldBytes int
}

// run makes the attempt and hands over its deltas but the last. When it returns, the response is
// closed and its connection is free or gone. Exactly one of error, a.finish and a.stopped is set.
func (a *attempt) run(ctx context.Context) *lathe.Error {
	v, c := a.v, a.v.c
	actx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer func() { a.watch.stop() }()
	resp, closed, err := a.send(actx, cancel, c.transport)
	if closed && actx.Err() == nil {
		// The server closed a connection that it had kept open. That is no failure of the server, so it is
		// not an attempt: the request goes out once more, on a new connection.
		a.reconnected = true
		a.watch.stop()
		resp, _, err = a.send(actx, cancel, c.fresh())
	}
	if err == nil && (resp == nil || resp.Body == nil) {
		err = errors.New("the transport returned no response")
	}
	if err == nil {
		defer func() {
			cancel(nil) // first: what is still on its way shall stop at once
			resp.Body.Close()
		}()
		a.status, a.requestID = resp.StatusCode, c.requestID(resp.Header)
		err = a.receive(actx, resp)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(context.Cause(actx), context.Cause(ctx)):
		return c.cancelled(ctx)
	}
	var up *lathe.UpstreamError
	if !errors.As(err, &up) {
		up = c.fromTransport(actx, err, a.watch.sent(), a.status != 0)
	}
	if up.RequestID = a.requestID; up.RequestID == "" && a.refusal != nil {
		up.RequestID = c.cleanID(a.refusal.RequestID)
	}
	if up.Err == nil || up.Kind == lathe.UpstreamBadProtocol {
		up.Detail = unquote(up.Message, v.scratch.Messages)
	}
	return c.failure(up)
}

// send makes the request and returns its response. closed says that the server had closed the connection.
func (a *attempt) send(ctx context.Context, cancel context.CancelCauseFunc, through http.RoundTripper) (resp *http.Response, closed bool, err error) {
	v := a.v
	a.watch = newWatch(cancel, v.deadline, &v.c.opts)
	var travel reconnect.Record
	var connected func()
	if v.c.own != nil {
		connected = a.watch.connect
	}
	ctx = httptrace.WithClientTrace(ctx, travel.Trace(connected))
	resp, err = through.RoundTrip(v.newRequest(ctx, watchedBody{v.request.reader(), a.watch}))
	return resp, travel.Closed(err), err
}

// receive reads the response. An error that is not a *lathe.UpstreamError is the transport's.
func (a *attempt) receive(ctx context.Context, resp *http.Response) error {
	c := a.v.c
	a.body = newResponseBody(resp, a.watch, c.opts.MaxResponseBytes)
	switch {
	case a.status >= 400:
		body, _ := a.body.readAll(int(c.opts.MaxErrorBytes)) // what came of it will do
		a.refusal = c.wire.ParseError(a.status, body)
		if a.unreadable(a.refusal) {
			a.endUnreadable()
			return nil
		}
		return c.fromStatus(resp, a.refusal, body)
	case a.status >= 300:
		return c.fromRedirect(resp)
	case a.status < 200:
		return c.protocol(a.status, "the server answers with a status that ends nothing", nil)
	}
	first, err := a.body.first()
	switch {
	case errors.Is(err, io.EOF):
		return c.protocol(a.status, "the response is empty", nil)
	case err != nil:
		return a.broken(err)
	case first == '<' || isPage(resp.Header):
		return c.protocol(a.status, "the response is a page, not an answer: is the base URL right?", nil)
	case first == '{' || first == '[':
		err = a.readWhole()
	default:
		err = a.readStream(ctx)
	}
	if err != nil || a.stopped {
		return err
	}
	if a.body.from.err == nil {
		a.watch.draining(drainTime)
		rest, _ := a.body.readAll(drainBytes) // the answer is whole already
		a.showRest(rest)
	}
	a.finish.UpstreamRequestID = a.requestID
	if a.finish.ProviderCost == nil {
		a.finish.ProviderCost = costOf(resp.Header)
	}
	return nil
}

func isPage(h http.Header) bool {
	v := h["Content-Type"]
	return len(v) > 0 && strings.HasPrefix(v[0], "text/html")
}

// readStream hands over the deltas of a stream as they come.
func (a *attempt) readStream(ctx context.Context) error {
	a.events = sse.NewReader(a.body, &a.v.c.events)
	defer a.events.Release()
	shows := a.shows(true)
	if shows {
		a.events.KeepRaw()
	}
	var deltas []lathe.Delta
	for !a.answer.Done() {
		if ctx.Err() != nil { // also between events that have come already
			return ctx.Err()
		}
		ev, err := a.events.Next()
		if err != nil {
			clean := errors.Is(err, io.EOF)
			fin, ferr := a.answer.Finish(clean)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case ferr == nil:
				a.showRest(a.events.Rest())
				a.end(fin)
				return nil
			case !clean:
				return a.broken(err)
			}
			return a.v.c.protocol(a.status, "the stream ended before the answer did", ferr)
		}
		deltas, err = a.answer.Append(deltas[:0], ev.Type, ev.Data)
		if shows && err == nil {
			a.show(ev.Type, deltas)
		}
		if !a.hand(deltas) {
			return nil
		}
		if err != nil {
			return a.failed(err, ev.Data)
		}
	}
	fin, err := a.answer.Finish(true)
	if err != nil {
		return a.told(err, nil)
	}
	a.showRest(a.events.Rest())
	a.end(fin)
	return nil
}

// hand gives deltas to the consumer, until it stops.
func (a *attempt) hand(deltas []lathe.Delta) bool {
	if a.follows && len(deltas) > 0 { // its first text is another part
		a.follows = false
		if !a.hand([]lathe.Delta{{Kind: lathe.DeltaTextEnd, Name: string(a.v.c.wire.Wire())}}) {
			return false
		}
	}
	for i := range deltas {
		if !a.delta {
			a.begun, a.delta = true, true
			a.v.deadline = time.Time{}
			a.watch.begun()
		}
		if !a.lead.over && !a.lead.take(a, &deltas[i]) {
			continue
		}
		if a.stopped || !a.yield(deltas[i], nil) {
			a.stopped = true
			return false
		}
	}
	return true
}

// readWhole reads the answer of a server that does not stream, and hands over the same deltas.
func (a *attempt) readWhole() error {
	limit := a.v.c.events.MaxEvent
	if limit <= 0 {
		limit = defaultMaxEvent
	}
	body, err := a.body.readAll(limit)
	if err != nil {
		return a.broken(err)
	}
	deltas, fin, err := a.answer.Complete(nil, body)
	if err != nil {
		return a.failed(err, body)
	}
	if a.shows(false) {
		a.relay.Take(&lathe.Raw{Bytes: body, Sound: a.answer.Sound() || a.relay.Opaque, Deltas: deltas})
	}
	if a.hand(deltas) {
		a.end(fin)
	}
	return nil
}

// failed ends an answer for which the codec returned err; body is the event or the body that it read.
func (a *attempt) failed(err error, body []byte) error {
	var api *wire.APIError
	if errors.As(err, &api) && a.unreadable(api) {
		a.endUnreadable()
		return nil
	}
	return a.told(err, body)
}

// unreadable reports whether the server's error says that it could not parse the call that the model wrote, and the model is to be
// told. A client that executes all calls itself gets the error, and a request without tools has no call that could be written again.
func (a *attempt) unreadable(api *wire.APIError) bool {
	req := &a.v.scratch
	_, can := a.answer.(lenient)
	return can && a.relay == nil && !req.ClientCalls && len(req.Tools) > 0 && req.ToolChoice.Mode != lathe.ChoiceNone && isOutputFault(api)
}

// endUnreadable ends the answer with a call that cannot be read, which is no failure of the attempt.
func (a *attempt) endUnreadable() {
	deltas, fin := a.answer.(lenient).Unreadable(nil)
	if a.hand(deltas) {
		a.finish = fin
		fin.UpstreamRequestID = a.requestID
	}
}

// told converts an error of the codec into the failure of the attempt: an error that the server reported in its answer, an
// answer above a limit, or a response that is not an answer of the wire.
func (a *attempt) told(err error, body []byte) error {
	var api *wire.APIError
	if errors.As(err, &api) {
		a.refusal = api
		e := a.v.c.fromInBand(api, body)
		if e.Status == 0 {
			e.Status = a.status
		}
		return e
	}
	if setting := limitOf(err); setting != "" {
		return a.v.c.protocol(a.status, "the answer is above "+setting, err)
	}
	return a.v.c.protocol(a.status, "the response is not "+answers[a.v.c.wire.Wire()], err)
}

// limitOf returns the setting of the limit that a response broke; "": err is of another kind.
func limitOf(err error) string {
	switch {
	case errors.Is(err, wire.ErrTooManyCalls):
		return "max_answer_calls"
	case errors.Is(err, wire.ErrTooManyBytes):
		return "max_answer_bytes"
	case errors.Is(err, sse.ErrLineTooLong):
		return "max_line_bytes"
	case errors.Is(err, sse.ErrEventTooLong), errors.Is(err, errWholeTooLarge):
		return "max_event_bytes"
	case errors.Is(err, errTooLarge):
		return "max_response_bytes"
	}
	return ""
}

// broken tells a response that breaks a limit from one that broke off.
func (a *attempt) broken(err error) error {
	if setting := limitOf(err); setting != "" {
		return a.v.c.protocol(a.status, "the response is above "+setting, err)
	}
	if errors.Is(err, errEncoding) {
		return a.v.c.protocol(a.status, err.Error(), err)
	}
	return err
}

// costOf reads the cost that a gateway tells in its header, in US dollars.
func costOf(h http.Header) *float64 {
	v := h["X-Litellm-Response-Cost"]
	if len(v) == 0 {
		return nil
	}
	cost, err := strconv.ParseFloat(v[0], 64)
	if err != nil || cost < 0 || math.IsNaN(cost) || math.IsInf(cost, 0) {
		return nil
	}
	return &cost
}

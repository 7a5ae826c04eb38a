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

// An attempt is one HTTP request of a model call and its response.
type attempt struct {
	v       *modelCall
	yield   func(lathe.Delta, error) bool
	relay   *lathe.Relay // nil if the bytes of the response are not relayed
	begun   bool         // a delta, or the bytes of one, were yielded
	lead    lead
	follows bool // the answer continues one that the server paused, in the same turn
	delta   bool // a delta was yielded
	stopped bool // the consumer stopped the iteration
	// reconnected: the request was sent again, because the server had closed the first connection.
	reconnected bool
	status      int            // status of the response; 0 before it
	requestID   string         // the server's id of the request
	refusal     *wire.APIError // the error of the server's response; nil if it reported none
	finish      *lathe.Finish  // the answer; nil before its end

	watch  *watch
	body   *responseBody
	events *sse.Reader
	answer wire.Assembler // assembles the answer

	raw       lathe.Raw   // the event that was read of a relayed stream
	held      []lathe.Raw // the first events of a relayed stream, buffered
	heldBytes int         // size of held
}

// run makes the attempt and yields its deltas except the last. When it returns, the response is closed, and its connection is idle or
// closed. Exactly one of the error, a.finish and a.stopped is set.
func (a *attempt) run(ctx context.Context) *lathe.Error {
	v, c := a.v, a.v.c
	actx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer func() { a.watch.stop() }()
	resp, closed, err := a.send(actx, cancel, c.transport)
	if closed && actx.Err() == nil {
		// The server closed an idle connection. That is neither a failure of the server nor an attempt: the request is sent again, on a
		// new connection.
		a.reconnected = true
		a.watch.stop()
		resp, _, err = a.send(actx, cancel, c.fresh())
	}
	if err == nil && (resp == nil || resp.Body == nil) {
		err = errors.New("the transport returned no response")
	}
	if err == nil {
		defer func() {
			cancel(nil) // before Close, so that reads in progress end at once
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

// send sends the request and returns the response. closed reports that the server had closed the idle connection.
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

// receive reads the response. An error that is not a *lathe.UpstreamError comes from the transport.
func (a *attempt) receive(ctx context.Context, resp *http.Response) error {
	c := a.v.c
	a.body = newResponseBody(resp, a.watch, c.opts.Limits.MaxResponseBytes)
	switch {
	case a.status >= 400:
		body, _ := a.body.readAll(int(c.opts.Limits.MaxErrorBytes)) // a partial body is enough for an error
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
		rest, _ := a.body.readAll(drainBytes) // an error does not matter: the answer is complete
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

// readStream yields the deltas of a stream as they arrive.
func (a *attempt) readStream(ctx context.Context) error {
	a.events = sse.NewReader(a.body, &a.v.c.events)
	shows := a.shows(true)
	if shows {
		a.events.KeepRaw()
	}
	var deltas []lathe.Delta
	for !a.answer.Done() {
		if ctx.Err() != nil { // buffered events do not delay a cancellation
			return ctx.Err()
		}
		ev, err := a.events.Next()
		if err != nil {
			clean := errors.Is(err, io.EOF)
			fin, ferr := a.answer.Finish(clean)
			switch {
			case ctx.Err() != nil && (ferr != nil || !errors.Is(context.Cause(ctx), errNoEnd)):
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
		if a.answer.Finished() {
			a.watch.finished()
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

// hand yields deltas to the consumer. It returns false once the consumer has stopped.
func (a *attempt) hand(deltas []lathe.Delta) bool {
	if a.follows && len(deltas) > 0 { // the text of this answer is a part of its own
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

// readWhole reads the answer of a server that does not stream, and yields its deltas.
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

// unreadable reports whether the server's error says that it could not parse the call that the model wrote, and the model may write it
// again. If the client executes all calls, it receives the error instead, and so does a request without tools.
func (a *attempt) unreadable(api *wire.APIError) bool {
	req := &a.v.scratch
	_, can := a.answer.(lenient)
	return can && a.relay == nil && !req.ClientCalls && len(req.Tools) > 0 && req.ToolChoice.Mode != lathe.ChoiceNone && isOutputFault(api)
}

// endUnreadable ends the answer with an unreadable call, which is no failure of the attempt.
func (a *attempt) endUnreadable() {
	deltas, fin := a.answer.(lenient).Unreadable(nil)
	if a.hand(deltas) {
		a.finish = fin
		fin.UpstreamRequestID = a.requestID
	}
}

// told converts an error of the codec to the failure of the attempt: an error that the server reported in its answer, an answer above a
// limit, or a response that is not an answer of the wire.
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

// limitOf returns the setting of the limit that err exceeds; "" if err is another error.
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

// broken converts an error of reading the body: a response above a limit is a protocol error, other errors are returned unchanged.
func (a *attempt) broken(err error) error {
	if setting := limitOf(err); setting != "" {
		return a.v.c.protocol(a.status, "the response is above "+setting, err)
	}
	if errors.Is(err, errEncoding) {
		return a.v.c.protocol(a.status, err.Error(), err)
	}
	return err
}

// costOf returns the cost in US dollars that LiteLLM reports in its header; nil if none exists.
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

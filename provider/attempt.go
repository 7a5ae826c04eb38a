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
	call  *modelCall
	yield func(lathe.Delta, error) bool
	relay *lathe.Relay // nil if the bytes of the response are not relayed
	lead  lead

	// What the consumer has received. The first three also count the earlier answers of a turn that the server paused.
	visible   bool // a delta, or the bytes of one, were yielded: the call is not retried
	yielded   bool // a delta was yielded
	continues bool // the answer continues one that the server paused, and its first delta was not yielded
	stopped   bool // the consumer stopped the iteration

	// What the server has sent.
	reconnected bool           // the request was sent again, because the server had closed the first connection
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
	v, c := a.call, a.call.chat
	actx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer func() { a.watch.stop() }() // send replaces a.watch
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
		up = c.fromTransport(actx, err, a.progress())
	}
	up.RequestID = a.requestID
	if up.RequestID == "" && a.refusal != nil {
		up.RequestID = c.cleanID(a.refusal.RequestID)
	}
	if up.Err == nil || up.Kind == lathe.UpstreamBadProtocol {
		up.Detail = unquote(up.Message, v.scratch.Messages)
	}
	return c.failure(up)
}

// A progress is how far an attempt came.
type progress int

const (
	notSent   progress = iota
	sent               // the request had begun to be sent
	responded          // the header of the response had arrived
)

func (a *attempt) progress() progress {
	switch {
	case a.status != 0:
		return responded
	case a.watch.sent():
		return sent
	}
	return notSent
}

// send sends the request and returns the response. closed reports that the server had closed the idle connection.
func (a *attempt) send(ctx context.Context, cancel context.CancelCauseFunc, through http.RoundTripper) (resp *http.Response, closed bool, err error) {
	v := a.call
	a.watch = newWatch(cancel, v.deadline, &v.chat.opts)
	var travel reconnect.Record
	var connected func()
	if v.chat.own != nil {
		connected = a.watch.connect
	}
	ctx = httptrace.WithClientTrace(ctx, travel.Trace(connected))
	resp, err = through.RoundTrip(v.newRequest(ctx, watchedBody{v.request.reader(), a.watch}))
	return resp, travel.Closed(err), err
}

// receive reads the response. An error that is not a *lathe.UpstreamError comes from the transport.
func (a *attempt) receive(ctx context.Context, resp *http.Response) error {
	c := a.call.chat
	a.body = newResponseBody(resp, a.watch, c.opts.Limits.MaxResponseBytes)
	switch {
	case a.status >= 400:
		body, _ := a.body.readAll(int(c.opts.Limits.MaxErrorBytes)) // a partial body is enough for an error
		a.refusal = c.wire.ParseError(a.status, body)
		if a.isUnreadableCall(a.refusal) {
			a.endWithUnreadableCall()
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
		return a.fromBody(err)
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
		a.relayRest(rest)
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
	a.events = sse.NewReader(a.body, &a.call.chat.events)
	relays := a.relaysStream()
	if relays {
		a.events.KeepRaw()
	}
	var deltas []lathe.Delta
	for !a.answer.Done() {
		if ctx.Err() != nil { // buffered events do not delay a cancellation
			return ctx.Err()
		}
		ev, err := a.events.Next()
		if err != nil {
			return a.endWithoutMark(ctx, err)
		}
		deltas, err = a.answer.Append(deltas[:0], ev.Type, ev.Data)
		if relays && err == nil {
			a.relayEvent(ev.Type, deltas)
		}
		if !a.yieldDeltas(deltas) {
			return nil
		}
		if err != nil {
			return a.endWithCodecError(err, ev.Data)
		}
		if a.answer.Finished() {
			a.watch.finished()
		}
	}
	fin, err := a.answer.Finish(true)
	if err != nil {
		return a.fromCodec(err, nil)
	}
	a.relayRest(a.events.Rest())
	a.end(fin)
	return nil
}

// endWithoutMark ends an answer whose stream ended with err and without an end mark. If the server has sent all but the mark, that is no
// failure, even if the watch has ended the attempt because the mark did not arrive.
func (a *attempt) endWithoutMark(ctx context.Context, err error) error {
	isClean := errors.Is(err, io.EOF)
	fin, incomplete := a.answer.Finish(isClean)
	lacksMark := incomplete == nil && errors.Is(context.Cause(ctx), errNoEnd)
	switch {
	case ctx.Err() != nil && !lacksMark:
		return ctx.Err()
	case incomplete == nil:
		a.relayRest(a.events.Rest())
		a.end(fin)
		return nil
	case !isClean:
		return a.fromBody(err)
	}
	return a.call.chat.protocol(a.status, "the stream ended before the answer did", incomplete)
}

// yieldDeltas yields deltas to the consumer. It returns false once the consumer has stopped.
func (a *attempt) yieldDeltas(deltas []lathe.Delta) bool {
	if a.continues && len(deltas) > 0 { // the text of this answer is a part of its own
		a.continues = false
		if !a.yieldDeltas([]lathe.Delta{{Kind: lathe.DeltaTextEnd, Name: string(a.call.chat.wire.Wire())}}) {
			return false
		}
	}
	for i := range deltas {
		if !a.yielded {
			a.visible, a.yielded = true, true
			a.call.deadline = time.Time{}
			a.watch.begun()
		}
		isHeld := !a.lead.over && !a.lead.take(a, &deltas[i])
		if isHeld {
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
	limit := a.call.chat.events.MaxEvent
	if limit <= 0 {
		limit = defaultMaxEvent
	}
	body, err := a.body.readAll(limit)
	if err != nil {
		return a.fromBody(err)
	}
	deltas, fin, err := a.answer.Complete(nil, body)
	if err != nil {
		return a.endWithCodecError(err, body)
	}
	if a.relay != nil && !a.relay.Stream {
		a.relay.Take(&lathe.Raw{Bytes: body, Sound: a.answer.Sound() || a.relay.Opaque, Deltas: deltas})
	}
	if a.yieldDeltas(deltas) {
		a.end(fin)
	}
	return nil
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

package provider

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/callid"
	"github.com/lathe-run/lathe/internal/reconnect"
	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

const (
	// drainBytes and drainTime bound what is read behind the end of an answer, so that its
	// connection can serve the next call.
	drainBytes = 4 << 10
	drainTime  = 50 * time.Millisecond
	// idsAtOnce is how many places for request ids are made in one piece of memory.
	idsAtOnce = 16
	// maxKept is the largest encoded conversation whose memory is kept for others.
	maxKept = 1 << 20
)

// A conversation holds what calls need and can use again: the encoded request, the reader, the
// assembler, the timer. It serves one call at a time.
type conversation struct {
	c    *Chat
	busy bool

	request *payload
	head    headKey
	sent    []lathe.Message // encoded in request.msgs
	scratch lathe.Request
	callIDs callid.Short    // of the calls in request.msgs, if short is set
	short   bool            // ids are sent in their short form
	changed []lathe.Message // memory for messages with short ids
	// header is that of the next request; setHeader replaces it. What was given away is shared with
	// requests that may be under way, and never changed.
	header    sealed
	setHeader func(http.Header)
	headerID  string   // the request id in header
	ids       []string // memory for request ids in headers; no place is used twice

	scope   scope
	sending *payloadReader // of the current attempt
	travel  reconnect.Record
	watch   watch
	body    responseBody
	events  *sse.Reader
	answer  *openai.Assembler
	deltas  []lathe.Delta
	raw     lathe.Raw
	whole   []byte // a response that is not a stream
}

func newConversation(c *Chat) *conversation {
	h := c.header()
	v := &conversation{c: c, request: newPayload(), answer: openai.NewAssembler(&c.assemble),
		header: func() http.Header { return h }, setHeader: func(next http.Header) { h = next },
		watch: watch{client: c.opts.ClientTimeout, open: c.opts.OpenTimeout, read: c.opts.ReadTimeout}}
	var connected func()
	if c.own != nil {
		connected = func() { v.sending.touch() }
	}
	v.scope.trace = v.travel.Trace(connected)
	return v
}

// forget makes v ready for another user. Only memory is kept.
func (v *conversation) forget() {
	v.scope.close()
	if !v.request.idle() || cap(v.request.msgs)+cap(v.request.head) > maxKept {
		v.request = newPayload()
	}
	v.head.forget()
	clear(v.sent[:cap(v.sent)])
	v.sent = v.sent[:0]
	clear(v.deltas[:cap(v.deltas)])
	v.answer.Reset()
	v.scratch = lathe.Request{}
	v.callIDs.Forget()
	v.short = false
	v.setHeader(v.c.header())
	v.headerID = ""
	if cap(v.whole) > maxKept {
		v.whole = nil
	}
}

// generate makes a call, with its retries.
func (v *conversation) generate(ctx context.Context, req *lathe.Request, yield func(lathe.Delta, error) bool) {
	v.busy = true
	defer func() { v.busy = false }()
	if ctx.Err() != nil {
		yield(lathe.Delta{}, v.c.cancelled(ctx))
		return
	}
	v.encodeRequest(req)
	now := time.Now()
	v.watch.begin(now)
	var load loading
	for n := 1; ; n++ {
		a := attempt{v: v, yield: yield, relay: req.Relay}
		err := a.run(ctx, now)
		v.c.log(ctx, n, &a, err)
		switch {
		case a.stopped:
			return
		case err == nil:
			yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: a.finish}, nil)
			return
		}
		if v.shortenIDs(req, &a, err) {
			if !yield(lathe.Delta{Kind: lathe.DeltaRetry, Retry: &lathe.Retry{Attempt: n, Err: err}}, nil) {
				return
			}
			n-- // it is not one of Retry.Attempts: the server refuses the request each time
			now = time.Now()
			continue
		}
		wait, again := load.wait(v, &a, err)
		loads := again
		if !again {
			wait, again = v.retry(n-load.told(), &a, err)
		}
		if !again {
			yield(lathe.Delta{}, err)
			return
		}
		if loads && load.polls > 1 { // one retry stands for all requests of the wait
			n--
		} else if !yield(lathe.Delta{Kind: lathe.DeltaRetry, Retry: &lathe.Retry{Attempt: n, Err: err, Wait: wait}}, nil) {
			return
		}
		if !sleep(ctx, wait) {
			yield(lathe.Delta{}, v.c.cancelled(ctx))
			return
		}
		now = time.Now()
		if loads {
			v.watch.begin(now) // the time in which the server loads the model is not the call's
		}
	}
}

// shortenIDs encodes the request anew with short ids of calls and returns true, if the server refused the ids that were
// sent. From then on all conversations with the server send short ids. A request that is relayed byte for byte has the
// ids of its client and is left as it is.
func (v *conversation) shortenIDs(req *lathe.Request, a *attempt, err *lathe.Error) bool {
	if v.short || a.begun || req.Relay != nil && req.Relay.Request != nil || !refusesIDs(err) {
		return false
	}
	v.c.shortIDs.Store(true)
	v.encodeRequest(req)
	return v.short
}

// encodeRequest brings v.request up to req. Of a conversation that goes on, only what is new is encoded.
func (v *conversation) encodeRequest(req *lathe.Request) {
	r := &v.scratch
	*r = *req
	if r.Model == "" {
		r.Model = v.c.model
	}
	opts := v.c.encode
	opts.Stream = !asksWhole(r)
	if !v.request.idle() { // a transport still reads it
		v.request = newPayload()
		v.head.forget()
		v.sent = v.sent[:0]
	}
	p := v.request
	if r.Relay != nil && r.Relay.Request != nil {
		p.head = openai.AppendRelayed(p.head[:0], r.Relay.Request, r, &opts)
		p.msgs, p.tail = p.msgs[:0], p.tail[:0]
		v.head.forget()
		v.sent = v.sent[:0]
		v.encodeHeader(r)
		return
	}
	if !v.head.matches(r) {
		p.head = openai.AppendHead(p.head[:0], r, &opts)
		v.head.remember(r)
	}
	short := v.c.shortIDs.Load()
	if !samePrefix(v.sent, r.Messages) || short != v.short {
		v.sent = v.sent[:0]
	}
	v.short = short
	if len(v.sent) == 0 {
		p.msgs = p.msgs[:0]
		v.callIDs.Forget()
	}
	n := len(v.sent)
	added := r.Messages[n:]
	if v.short {
		v.changed = v.changed[:0]
		for i := range added {
			v.changed = append(v.changed, v.callIDs.Apply(added[i]))
		}
		added = v.changed
	}
	p.msgs = openai.AppendMessages(p.msgs, added, n == 0, &opts)
	clear(v.changed)
	v.sent = append(v.sent, r.Messages[n:]...)
	if len(p.tail) == 0 {
		p.tail = openai.AppendTail(nil)
	}
	v.encodeHeader(r)
}

// encodeHeader brings v.header up to req.
func (v *conversation) encodeHeader(r *lathe.Request) {
	if id := r.RequestID; id != v.headerID {
		h := v.c.header()
		if id != "" && len(id) <= maxRequestID && validHeaderValue(id) {
			h = maps.Clone(h) // its values are shared: nobody may change them
			if len(v.ids) == 0 {
				v.ids = make([]string, idsAtOnce)
			}
			h["X-Request-Id"], v.ids = v.ids[:1:1], v.ids[1:]
			h["X-Request-Id"][0] = id
		}
		v.setHeader(h)
		v.headerID = id
	}
}

// newRequest returns the HTTP request of an attempt with the given body.
func (v *conversation) newRequest(ctx context.Context, body *payloadReader) *http.Request {
	h := v.header()
	if t := lathe.TraceFrom(ctx); t.Parent != "" {
		h = maps.Clone(h) // its values are shared: nobody may change them
		h["Traceparent"] = []string{t.Parent}
	}
	var src io.ReadCloser = body
	if v.c.own != nil && v.request.size() <= maxTogether {
		src = v.request.together()
	}
	r := http.Request{Method: http.MethodPost, URL: v.c.url, Host: v.c.url.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: src, GetBody: v.request.get, ContentLength: v.request.size()}
	return r.WithContext(ctx)
}

// retry says whether the call is made again after attempt n failed with err, and after how long.
func (v *conversation) retry(n int, a *attempt, err *lathe.Error) (time.Duration, bool) {
	r := &v.c.opts.Retry
	var up *lathe.UpstreamError
	if a.begun || n >= r.Attempts || !errors.As(err, &up) || !up.Retryable {
		return 0, false
	}
	if up.Kind == lathe.UpstreamLoading && v.c.opts.LoadingTimeout > 0 {
		return 0, false // it was waited for
	}
	wait := up.RetryAfter
	if wait == 0 {
		wait = time.Duration(r.Jitter() * min(float64(r.Base)*math.Pow(2, float64(n-1)), float64(r.Max)))
	}
	if left, limited := v.watch.remaining(); wait > r.MaxAfter || limited && wait >= left {
		return 0, false
	}
	return wait, true
}

// sleep waits, and reports false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return ctx.Err() == nil
	}
}

func (c *Chat) log(ctx context.Context, n int, a *attempt, err *lathe.Error) {
	if c.opts.Log == nil || !c.opts.Log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	kind := ""
	var up *lathe.UpstreamError
	switch {
	case a.stopped:
		kind = "stopped"
	case err == nil:
	case errors.As(err, &up):
		kind = string(up.Kind)
	default:
		kind = string(err.Code)
	}
	line := []any{"provider", c.opts.Name, "model", c.model, "attempt", n, "status", a.status, "failure", kind, "upstream_request_id", a.requestID}
	if a.finish != nil && len(a.finish.Faults) > 0 {
		line = append(line, "faults", a.finish.Faults)
	}
	if a.reconnected {
		line = append(line, "reconnected", true)
	}
	c.opts.Log.DebugContext(ctx, "model call attempt", line...)
}

package provider

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/messages"
)

// encodeRequest encodes req into v.request. If req continues the conversation of the last request and the codec is [growing], only
// the new messages are encoded.
func (v *conversation) encodeRequest(req *lathe.Request) (err error) {
	r := &v.scratch
	*r = *req
	if r.Model == "" {
		r.Model = v.c.model
	}
	opts := &v.encode
	*opts = v.c.encode
	opts.Stream = !asksWhole(r)
	opts.Without = v.c.withheld()
	if len(v.without) > 0 {
		opts.Without = append(slices.Clone(opts.Without), v.without...)
	}
	if v.url, err = v.c.address(r.Model, opts.Stream); err != nil {
		return err
	}
	if !v.request.idle() { // an HTTP transport still reads it
		v.request = newPayload()
		v.head.forget()
		v.sent = v.sent[:0]
	}
	v.encodeHeader(r)
	opts.Takes = takes(v.c, r.Model, opts.Without)
	relayed := r.Relay != nil && r.Relay.Request != nil && !refusesRoles(v.c.accepts, r, opts)
	v.form.relayed = relayed
	if !relayed {
		v.betas = betas(v.c, r, opts)
		opts.Bound.Bindings = &v.c.bindings
	}
	opts.MaxCompletionTokens = opts.MaxCompletionTokens || !relayed && opts.Takes.TokenLimit == destination.MaxCompletionTokens
	if !relayed && v.c.grows != nil {
		v.grow(r)
		return nil
	}
	p := v.request
	p.shared = wire.Shared{}
	v.droppedHead, v.dropped = nil, nil
	if relayed {
		p.head = v.c.wire.AppendRelayed(p.head[:0], r.Relay.Request, r, opts)
	} else {
		opts.Shared = &p.shared
		v.form.unique.Forget()
		v.form.fit = opts.Takes.NewConversation()
		changed := opts.Takes.Fit(v.c.wire.Wire(), r)
		r.Messages = v.adapt(r.Messages, 0)
		p.head, v.droppedHead = v.c.wire.AppendRequest(p.head[:0], r, opts)
		v.placed(v.droppedHead)
		v.droppedHead = append(changed, v.droppedHead...)
		clear(v.form.changed)
	}
	p.msgs, p.tail = p.msgs[:0], p.tail[:0]
	v.head.forget()
	v.sent = v.sent[:0]
	return nil
}

// manyMessages is how many new messages make it worth while to compute their size before they are encoded.
const manyMessages = 16

// grow encodes the new messages of a conversation.
func (v *conversation) grow(r *lathe.Request) {
	p, c, opts := v.request, v.c.grows, &v.encode
	if !v.head.matches(r) || !v.form.fit.Follows(&opts.Takes) {
		p.shared = wire.Shared{}
		opts.Shared = &p.shared
		fitted := *r
		changed := opts.Takes.Fit(v.c.wire.Wire(), &fitted)
		p.head, v.droppedHead = c.AppendHead(p.head[:0], &fitted, opts)
		v.droppedHead = append(changed, v.droppedHead...)
		v.head.remember(r)
	}
	f, short := &v.form, v.c.shortIDs.Load()
	if n := len(v.sent); !samePrefix(v.sent, r.Messages) || short != f.short || !f.fit.Follows(&opts.Takes) || n < len(r.Messages) && f.fit.Joins(&r.Messages[n]) {
		v.sent = v.sent[:0]
	}
	f.short = short
	if len(v.sent) == 0 {
		p.msgs, v.dropped = p.msgs[:0], nil
		f.unique.Forget()
		f.callIDs.Forget()
		f.fit = opts.Takes.NewConversation()
	}
	n := len(v.sent)
	added := v.adapt(r.Messages[n:], n)
	if len(added) > manyMessages {
		room := 0
		for i := range added {
			room += added[i].Size()
		}
		p.msgs = slices.Grow(p.msgs, room)
	}
	before := len(v.dropped)
	p.msgs, v.dropped = c.AppendMessages(p.msgs, added, n, opts, v.dropped)
	v.placed(v.dropped[before:])
	clear(f.changed)
	v.sent = append(v.sent, r.Messages[n:]...)
	if len(p.tail) == 0 {
		p.tail = c.AppendTail(nil)
	}
}

// placed replaces the paths of messages that are encoded by those of the request's own messages.
func (v *conversation) placed(paths []string) {
	for i := range paths {
		paths[i] = v.form.fit.Place(paths[i])
	}
}

// adapt returns messages, which follow n others, in the form in which they are encoded: with the content that the wire has a form for, as
// the destination takes them, and with ids of calls that the server accepts. It appends to v.dropped. The result is valid until the next
// call.
func (v *conversation) adapt(messages []lathe.Message, n int) []lathe.Message {
	v.form.changed = v.form.changed[:0]
	messages, v.dropped = v.form.fit.Roles(messages, n, v.dropped, v.c.fit.Sends)
	for i := range messages {
		var m lathe.Message
		m, v.dropped = v.c.fit.Message(&messages[i], n+i, v.dropped)
		v.form.changed = append(v.form.changed, m)
	}
	out, dropped := v.form.fit.Join(v.form.changed, n, v.dropped)
	v.dropped = dropped
	for i := range out {
		if out[i] = v.form.unique.Apply(out[i]); v.form.short {
			out[i] = v.form.callIDs.Apply(out[i])
		}
	}
	return out
}

// encodeHeader sets v.header for req.
func (v *conversation) encodeHeader(r *lathe.Request) {
	v.betas, v.version = r.Betas, r.APIVersion
	if id := r.RequestID; id != v.headerID {
		h := v.c.header()
		if id != "" && len(id) <= maxRequestID && validHeaderValue(id) {
			h = maps.Clone(h) // its values are shared and must not be changed
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

// Headers by which requests to Anthropic's API enable beta features, and name the version of the API.
const (
	betaHeader    = "Anthropic-Beta"
	versionHeader = "Anthropic-Version"
)

// betas returns the betas of a request that is encoded with opts.
func betas(c *Chat, r *lathe.Request, opts *wire.EncodeOptions) []string {
	if c.wire.Wire() != lathe.WireMessages {
		return r.Betas
	}
	return append(slices.Clip(r.Betas), messages.Betas(r, &opts.Takes, opts.Without)...)
}

// withAPI returns h with the betas and the version of a request to Anthropic's API. h is not changed. Requests on other wires have
// neither.
func withAPI(h http.Header, w lathe.Wire, betas []string, version string) http.Header {
	if w != lathe.WireMessages {
		return h
	}
	if len(betas) > 0 {
		h = withBetas(h, betas)
	}
	if version != "" && validHeaderValue(version) {
		h = maps.Clone(h)
		h[versionHeader] = []string{version}
	}
	return h
}

// withBetas returns a copy of h with the values betas added to the header Anthropic-Beta. It omits values that are not valid in a
// header.
func withBetas(h http.Header, betas []string) http.Header {
	h = maps.Clone(h)
	all := slices.Clone(h[betaHeader])
	for _, beta := range betas {
		if validHeaderValue(beta) && !slices.Contains(all, beta) {
			all = append(all, beta)
		}
	}
	h[betaHeader] = []string{strings.Join(all, ",")}
	return h
}

// newRequest returns the HTTP request of an attempt with the given body.
func (v *conversation) newRequest(ctx context.Context, body *payloadReader) *http.Request {
	h := v.header()
	if t := event.TraceFrom(ctx); t.Parent != "" {
		h = maps.Clone(h) // its values are shared and must not be changed
		h["Traceparent"] = []string{t.Parent}
		if t.Baggage != "" {
			h["Baggage"] = []string{t.Baggage}
		}
	}
	h = withAPI(h, v.c.wire.Wire(), v.betas, v.version)
	var src io.ReadCloser = body
	if v.c.own != nil && v.request.size() <= maxTogether {
		src = v.request.together()
	}
	r := http.Request{Method: http.MethodPost, URL: v.url, Host: v.url.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: src, GetBody: v.request.get, ContentLength: v.request.size()}
	return r.WithContext(ctx)
}

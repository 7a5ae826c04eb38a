package provider

import (
	"cmp"
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/callid"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/messages"
)

// encodeRequest encodes req into v.request, and sets the fields that describe the request.
func (v *modelCall) encodeRequest(req *lathe.Request) error {
	r := &v.scratch
	*r = *req
	r.Model = cmp.Or(r.Model, v.chat.model)
	opts := &v.encode
	*opts = v.chat.encode
	opts.Stream = !asksWhole(r)
	opts.Without = slices.Concat(v.chat.withheld(), v.without)
	var err error
	if v.url, err = wire.CallURL(v.chat.base, v.chat.wire, r.Model, opts.Stream); err != nil {
		return lathe.CodeInvalidConfig.Wrap(v.chat.op, err)
	}
	opts.Takes = takes(v.chat, r.Model, opts.Without)
	v.request, v.dropped, v.betas = &payload{}, nil, r.Betas
	v.raw = r.Relay != nil && r.Relay.Request != nil && !refusesRoles(v.chat.accepts, r, opts)
	if v.raw {
		v.request.body = v.chat.wire.AppendRelayed(make([]byte, 0, len(r.Relay.Request)+headBytes), r.Relay.Request, r, opts)
	} else {
		v.encodeMessages(r, opts)
	}
	return nil
}

// encodeMessages encodes a request that is not the client's own bytes. It replaces the messages of r by those that are encoded.
func (v *modelCall) encodeMessages(r *lathe.Request, opts *wire.EncodeOptions) {
	v.betas = betas(v.chat, r, opts)
	opts.Bound.Bindings = &v.chat.bindings
	opts.MaxCompletionTokens = opts.MaxCompletionTokens || opts.Takes.TokenLimit == destination.MaxCompletionTokens
	opts.Shared = &v.request.shared
	v.short = v.chat.shortIDs.Load()
	changed := opts.Takes.Fit(v.chat.wire.Wire(), r)
	fit, ofMessages := adapt(v.chat, r, &opts.Takes)
	if v.short {
		var short callid.Short
		for i, m := range r.Messages {
			r.Messages[i] = short.Apply(m)
		}
	}
	size := headBytes
	eachText(r.Messages, func(text string) { size += len(text) + len(text)/8 + 64 })
	v.request.body, v.dropped = v.chat.wire.AppendRequest(make([]byte, 0, size), r, opts)
	for i, path := range v.dropped {
		v.dropped[i] = fit.Place(path)
	}
	v.dropped = slices.Concat(changed, v.dropped, ofMessages)
}

// headBytes is the memory that is reserved for a request in addition to its messages, so that the buffer need not grow.
const headBytes = 1 << 10

// adapt replaces the messages of r by those that are encoded: with the roles that the destination supports, the content that the wire has
// a form for, and unique ids of calls. It returns the paths of what changed, and the conversation that maps places of the new messages to the
// old ones.
func adapt(c *Chat, r *lathe.Request, takes *destination.Row) (fit destination.Conversation, changed []string) {
	fit = takes.NewConversation()
	messages, changed := fit.Roles(r.Messages, nil, c.fit.Sends)
	out := make([]lathe.Message, len(messages))
	for i := range messages {
		out[i], changed = c.fit.Message(&messages[i], i, changed)
	}
	r.Messages, changed = fit.Join(out, changed)
	var unique callid.Unique
	for i, m := range r.Messages {
		r.Messages[i] = unique.Apply(m)
	}
	return fit, changed
}

// Headers by which requests to Anthropic's API enable beta features, and name the version of the API.
const (
	betaHeader    = "Anthropic-Beta"
	versionHeader = "Anthropic-Version"
)

// betas returns the beta features of a request that is encoded with opts.
func betas(c *Chat, r *lathe.Request, opts *wire.EncodeOptions) []string {
	if c.wire.Wire() != lathe.WireMessages {
		return r.Betas
	}
	return append(slices.Clip(r.Betas), messages.Betas(r, &opts.Takes, opts.Without)...)
}

// setAPI adds the betas and the version of a request to Anthropic's API to h. It does nothing on other wires, and omits values that are
// not valid in a header.
func (c *Chat) setAPI(h http.Header, betas []string, version string) {
	if c.wire.Wire() != lathe.WireMessages {
		return
	}
	if len(betas) > 0 {
		all := slices.Clone(h[betaHeader])
		for _, beta := range betas {
			if validHeaderValue(beta) && !slices.Contains(all, beta) {
				all = append(all, beta)
			}
		}
		h[betaHeader] = []string{strings.Join(all, ",")}
	}
	if version != "" && validHeaderValue(version) {
		h[versionHeader] = []string{version}
	}
}

// newRequest returns the HTTP request of an attempt with the given body.
func (v *modelCall) newRequest(ctx context.Context, body watchedBody) *http.Request {
	h := maps.Clone(v.chat.header()) // the values are shared and must not be changed
	if id := v.scratch.RequestID; id != "" && len(id) <= maxRequestID && validHeaderValue(id) {
		h["X-Request-Id"] = []string{id}
	}
	if t := event.TraceFrom(ctx); t.Parent != "" {
		h["Traceparent"] = []string{t.Parent}
		if t.Baggage != "" {
			h["Baggage"] = []string{t.Baggage}
		}
	}
	v.chat.setAPI(h, v.betas, v.scratch.APIVersion)
	var src io.ReadCloser = body
	if v.chat.own != nil && v.request.size() <= maxTogether {
		src = v.request.together()
	}
	r := http.Request{Method: http.MethodPost, URL: v.url, Host: v.url.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: src, GetBody: v.request.get, ContentLength: v.request.size()}
	return r.WithContext(ctx)
}

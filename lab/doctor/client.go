package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/plain"
	"github.com/lathe-run/lathe/internal/reconnect"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/internal/wire/upstreams"
)

// A client sends requests to the server with post, ask or send, within the limits of the options, and counts them in the current probe. It
// omits from requests what the server has refused. The fields from opts to leave do not change.
type client struct {
	findings
	opts      Options
	codec     wire.Upstream
	base      *url.URL
	transport http.RoundTripper
	fresh     http.RoundTripper // opens a new connection for each request, unless the caller set the transport
	leave     func()            // closes idle connections if the transport belongs to this client
	left      *int              // requests that an Asker may still make, set by Asker.Limit; nil: no limit
	number    int               // number of the current probe, from 1; Run sets it and probes, for progress
	probes    int               // largest number of probes
	reach

	// What requests omit, or name otherwise: post changes it, and so do probeChat and Asker.adapt.
	without     []string // features that the server refuses
	noUsage     bool     // the server refuses stream_options
	maxComplete bool     // the server requires max_completion_tokens
}

// reach is how the server responds to requests. Only send and failed change it.
type reach struct {
	unreachable error // if set, the examination ends
	mistake     bool  // unreachable is an error of the URL or the certificate
	connected   bool  // the server has sent a response
	silent      int   // requests without a response, in a row
	timeouts    int
}

const (
	dialTimeout    = 10 * time.Second
	maxHeaderBytes = 64 << 10
)

// newClient returns a client without findings. The caller must call leave of the result.
func newClient(t Target, opts *Options) (*client, error) {
	codec := upstreams.Of(t.Wire)
	if codec == nil {
		return nil, fmt.Errorf("no wire %.40q", t.Wire)
	}
	u, err := wire.BaseURL(t.BaseURL, codec, t.Model)
	if err != nil {
		return nil, err
	}
	if t.Model == "" {
		return nil, errors.New("no model is named")
	}
	x := &client{findings: findings{target: t, report: &Report{Model: t.Model, Findings: []Finding{}}, found: map[string]*Finding{}},
		opts: opts.withDefaults(), codec: codec, base: u, leave: func() {}, noUsage: t.NoUsage, maxComplete: t.MaxCompletionTokens}
	x.transport, x.fresh = t.Transport, t.Transport
	if x.transport == nil {
		own := &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
			ForceAttemptHTTP2:      true,
			MaxResponseHeaderBytes: maxHeaderBytes,
			DisableCompression:     true, // the bytes are checked uncompressed
		}
		if u.Scheme == "https" {
			own.DialContext = plain.Dialer(own.DialContext)
		}
		x.leave = own.CloseIdleConnections
		x.transport, x.fresh = own, reconnect.Fresh(own)
	}
	return x, nil
}

// chat reports whether the protocol is chat completions.
func (x *client) chat() bool { return x.codec.Wire() == lathe.WireOpenAIChat }

func (x *client) progress(what string) { x.opts.Progress(what, x.number, x.probes) }

// request returns a request with one user message.
func (x *client) request(prompt string, tools ...*lathe.ToolSpec) *lathe.Request {
	req := &lathe.Request{Model: x.target.Model, Messages: []lathe.Message{lathe.User(prompt)}, Tools: tools, Overrides: x.target.Overrides}
	if !slices.ContainsFunc(req.Overrides, func(m lathe.Member) bool { return m.Name == "max_tokens" || m.Name == "max_completion_tokens" }) {
		req.Sampling.MaxTokens = new(x.opts.MaxTokens)
	}
	return req
}

// body encodes a request like Lathe, without the features that the server is known to refuse.
func (x *client) body(req *lathe.Request, stream bool) []byte {
	body, _ := x.codec.AppendRequest(nil, req, &wire.EncodeOptions{Stream: stream, IncludeUsage: stream && !x.noUsage, MaxCompletionTokens: x.maxComplete,
		MaxTokens: x.opts.MaxTokens, Without: x.without, ReasoningField: openai.ReasoningSame})
	return body
}

// callURL returns the URL of a model call.
func (x *client) callURL(model string, stream bool) *url.URL {
	u, err := wire.CallURL(x.base, x.codec, model, stream)
	if err != nil {
		return x.base // the server then responds that the path does not exist
	}
	return u
}

// maxWithout is the largest number of features that are left out because the server refuses them.
const maxWithout = 8

// post sends a request for an answer, and repeats it without each feature that the server refuses.
func (x *client) post(ctx context.Context, req *lathe.Request, stream bool) *exchange {
	send := func() *exchange {
		return x.ask(ctx, http.MethodPost, x.callURL(req.Model, stream), x.body(req, stream), x.target.Key)
	}
	e := send()
	for e.status >= 400 && len(x.without) < maxWithout {
		feature := x.codec.Refused(e.api)
		if feature == "" || slices.Contains(x.without, feature) {
			break
		}
		x.find("feature-refused", feature)
		x.without = append(x.without, feature)
		e = send()
	}
	if e.refused() && !x.maxComplete && strings.Contains(e.message(), "max_completion_tokens") {
		x.findAndMend("max-tokens-refused", "max_completion_tokens", "true", e.message())
		x.maxComplete = true
		e = send()
	}
	return e
}

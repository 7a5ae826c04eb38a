// Package provider implements [lathe.Model] for model servers over HTTP, on four wires (APIs): [OpenAI] for the chat completions
// of OpenAI and of compatible servers, [Responses] for OpenAI's Responses, [Anthropic] for Anthropic's Messages, and [Gemini]
// for Google's generateContent. All of them request streams.
//
// In addition to the contract of [lathe.Model]: keys are not printed and not sent to another origin; every wait and every size
// has a limit; a model call is repeated only before its first delta, and each failed attempt is reported as a
// [lathe.DeltaRetry]; stopping early or cancelling frees the connection before Generate returns; no goroutine is started for
// a model call.
package provider

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/httpname"
	"github.com/lathe-run/lathe/internal/plain"
	"github.com/lathe-run/lathe/internal/reconnect"
	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/upstreams"
	"github.com/lathe-run/lathe/secret"
)

// A Chat is a [lathe.Model] that calls a model server over HTTP on one of the wires. It may be used by several goroutines at once.
//
// The error of Generate is a *[lathe.Error]. If the server failed, it wraps a *[lathe.UpstreamError] and has the code upstream_error or
// upstream_protocol. If the caller's context is done, it wraps the error of that context and has the code cancelled. Before a request is
// sent, it has the code invalid_request for content that the wire cannot express, and invalid_config for a model name that cannot be part
// of the URL. A timeout of [Options] is an UpstreamError of kind timeout, never of kind aborted, and its code is not cancelled. The code
// for the kind rate_limited is upstream_error, too.
type Chat struct {
	model     string
	wire      wire.Upstream
	opts      Options // without BaseURL and Transport
	op        string
	base      *url.URL
	server    string // host and port of base
	header    sealed
	secrets   []secret.Secret
	transport http.RoundTripper
	own       *http.Transport          // nil if the caller passed the transport
	fresh     func() http.RoundTripper // a transport that opens a new connection for each request; the caller's transport if own is nil
	encode    wire.EncodeOptions
	fit       wire.Fit
	accepts   destination.Row // from Options.Accepts
	assemble  wire.AssemblerOptions
	events    sse.Options
	learned
}

// learned is what the answers of a server have shown so far. The zero value is for a server without answers.
type learned struct {
	// shortIDs is set once the server has refused ids of calls that are not nine letters and digits.
	shortIDs atomic.Bool
	// refused are the features that the server has refused, and that further requests omit. The slice is replaced, never changed.
	refused atomic.Pointer[[]string]
	// bindings record which messages precede the thinking that the server binds to them.
	bindings wire.Bindings
	// countsNot is set once the server has answered that it cannot count tokens.
	countsNot atomic.Bool
}

// withheld returns the features that the server has refused. The caller must not change the slice.
func (l *learned) withheld() []string {
	if refused := l.refused.Load(); refused != nil {
		return *refused
	}
	return nil
}

// sealed returns a header that contains keys. It is a function so that printing by reflection does not show the keys, as in
// secret.Secret.
type sealed func() http.Header

func seal(h http.Header) sealed { return func() http.Header { return h } }

var _ lathe.Model = (*Chat)(nil)

// New returns a Chat for a model on a server. w is the wire of the server; "" is [lathe.WireOpenAIChat]. model is the name of the model on
// the server and is required. opts may be nil. New makes no request. Its error has the code invalid_config, and names the invalid option
// without its value.
func New(w lathe.Wire, model string, opts *Options) (*Chat, error) {
	codec := upstreams.Of(w)
	if codec == nil {
		return nil, lathe.CodeInvalidConfig.Errorf("provider: set up a model", "no wire %.40q", w)
	}
	o := opts.withDefaults(codec)
	wrong := func(err error) (*Chat, error) {
		return nil, lathe.CodeInvalidConfig.Wrap("provider: set up "+o.Name, err)
	}
	if model == "" {
		return wrong(errors.New("no model is named"))
	}
	base, err := baseURL(o.BaseURL, codec, model)
	if err != nil {
		return wrong(err)
	}
	if _, err := wire.CallURL(base, codec, model, true); err != nil {
		return wrong(err)
	}
	header, err := o.header(codec)
	if err != nil {
		return wrong(err)
	}
	strict, err := o.Server.Strict.wire()
	if err != nil {
		return wrong(err)
	}
	accepts, err := destination.Accepts(o.Server.Accepts)
	if err != nil {
		return wrong(fmt.Errorf("accepts: %w", err))
	}
	c := &Chat{
		model: model, wire: codec, op: "provider: call " + o.Name, base: base, header: seal(header), secrets: secretsOf(&o),
		transport: o.Transport,
		encode: wire.EncodeOptions{Stream: true, IncludeUsage: !o.Server.NoUsage, ReasoningField: o.Server.ReasoningField,
			MaxCompletionTokens: o.Server.MaxCompletionTokens, TopK: o.Server.TopK, MaxTokens: o.MaxTokens, Entry: o.Entry, Strict: strict, Definitions: &wire.Definitions{},
			Takes: destination.For(codec.Wire(), o.Server.Kind, base.Host, model).With(&accepts)},
		accepts: accepts,
		// With RawUTF8, the assembler joins the parts of a character that a server split between events.
		assemble: wire.AssemblerOptions{MaxBytes: o.Limits.MaxAnswerBytes, MaxCalls: o.Limits.MaxAnswerCalls},
		events:   sse.Options{MaxLine: o.Limits.MaxLineBytes, MaxEvent: o.Limits.MaxEventBytes, RawUTF8: true},
	}
	c.fit = wire.Fit{Codec: codec, Drop: o.Server.DropContent, Marker: o.Server.ContentMarker}
	_, c.server, _ = strings.Cut(httpname.Origin(base), "://")
	if c.transport == nil {
		c.own = newTransport(nil)
		if base.Scheme == "https" {
			c.own.DialContext = plain.Dialer(c.own.DialContext)
		}
		c.transport = c.own
	}
	c.fresh = sync.OnceValue(func() http.RoundTripper {
		if c.own == nil {
			return c.transport
		}
		return reconnect.Fresh(c.own)
	})
	o.BaseURL, o.Transport = "", nil
	c.opts = o
	return c, nil
}

// newTransport returns the default transport of a Chat. Only tests pass a dial other than nil. It has no open timeout, because the watch
// of each call enforces that for every transport.
func newTransport(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Transport {
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dial,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    256,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true, // compressing servers delay events
	}
}

// Describe returns the description of the model. See [lathe.Model].
func (c *Chat) Describe() lathe.ModelInfo {
	return lathe.ModelInfo{Provider: c.opts.Name, Model: c.model, Wire: c.wire.Wire(), Server: c.server, NoTools: c.opts.Server.NoTools, NoParallel: c.opts.Server.NoParallel}
}

// CheckContent returns an error for the first content that the wire cannot express in the messages after the last answer of the model, such
// as audio, video, a file, or an image by reference. The error is a *[lathe.Error] with the code invalid_request; its text contains the
// place of the content, such as "messages[2].parts[0]". Generate returns the same error. In older messages, and in all messages if
// [Server].DropContent is set, such content is dropped instead: CheckContent then returns its places, at most 32.
func (c *Chat) CheckContent(msgs []lathe.Message) (dropped []string, err error) {
	row := takes(c, c.model, c.withheld())
	if err := checkContent(c, &row, msgs); err != nil {
		return nil, err
	}
	return c.fit.Dropped(roles(c, &row, msgs)), nil
}

// checkContent implements CheckContent for the row takes of a model.
func checkContent(c *Chat, takes *destination.Row, msgs []lathe.Message) error {
	if bad := c.fit.Check(roles(c, takes, msgs)); bad != nil {
		return lathe.CodeInvalidRequest.Wrap(c.op, bad)
	}
	return nil
}

// String returns the provider's label and the model's name.
func (c *Chat) String() string { return fmt.Sprintf("%s/%s", c.opts.Name, c.model) }

// CloseIdleConnections closes idle connections, unless the caller passed the transport. The Chat can still be used.
func (c *Chat) CloseIdleConnections() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// Generate makes one model call, with repeated attempts as [Retry] says. req.Model replaces the name that was passed to [New] for this call.
// See [lathe.Model].
func (c *Chat) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		(&modelCall{chat: c}).generate(ctx, req, yield)
	}
}

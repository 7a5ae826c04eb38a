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

// A Chat is a [lathe.Model] that a server provides on one of the wires. It may be used by several goroutines at once.
//
// Errors of Generate are a *[lathe.Error]: code upstream_error or upstream_protocol around a
// *[lathe.UpstreamError], or cancelled around the context's own error when the caller's context
// ended. A timeout set in [Options] is kind timeout, never cancelled or aborted.
type Chat struct {
	model     string
	wire      wire.Upstream
	opts      Options // BaseURL and Transport taken out
	op        string
	base      *url.URL
	server    string // host and port of base
	header    sealed
	secrets   []secret.Secret
	transport http.RoundTripper
	own       *http.Transport          // nil where the transport is the caller's
	fresh     func() http.RoundTripper // opens a connection for each request; the caller's transport if own is nil
	encode    wire.EncodeOptions
	fit       wire.Fit
	accepts   destination.Row // of the options
	assemble  wire.AssemblerOptions
	events    sse.Options
	learned
}

// learned is what the answers of a server have shown. The zero value is that of a server that has not answered yet.
type learned struct {
	// shortIDs is set once the server has refused ids of calls that are not nine letters and digits.
	shortIDs atomic.Bool
	// refused are the features that the server has refused and that requests therefore omit. The slice is replaced, not changed.
	refused atomic.Pointer[[]string]
	// bindings are of thinking that the server binds to what precedes it.
	bindings wire.Bindings
	// countsNot is set once the server has answered that it does not count tokens.
	countsNot atomic.Bool
}

// withheld returns the features that the server has refused. It must not be changed.
func (l *learned) withheld() []string {
	if refused := l.refused.Load(); refused != nil {
		return *refused
	}
	return nil
}

// sealed gives away a header with keys in it. It is a function for the reason that secret.Secret
// holds one: what is printed by reflection does not show it.
type sealed func() http.Header

func seal(h http.Header) sealed { return func() http.Header { return h } }

var (
	_ lathe.Model = (*Chat)(nil)
)

// New returns the named model of a server with wire w; "" is [lathe.WireOpenAIChat]. opts may be nil. New makes no request. The
// error names the invalid option without its value.
func New(w lathe.Wire, model string, opts *Options) (*Chat, error) {
	codec := upstreams.Of(w)
	if codec == nil {
		return nil, &lathe.Error{Code: lathe.CodeInvalidConfig, Op: "provider: set up a model", Err: fmt.Errorf("no wire %.40q", w)}
	}
	o := opts.withDefaults(codec)
	wrong := func(err error) (*Chat, error) {
		return nil, &lathe.Error{Code: lathe.CodeInvalidConfig, Op: "provider: set up " + o.Name, Err: err}
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
	strict, err := o.Strict.wire()
	if err != nil {
		return wrong(err)
	}
	accepts, err := destination.Accepts(o.Accepts)
	if err != nil {
		return wrong(fmt.Errorf("accepts: %w", err))
	}
	c := &Chat{
		model: model, wire: codec, op: "provider: call " + o.Name, base: base, header: seal(header), secrets: secretsOf(&o),
		transport: o.Transport,
		encode: wire.EncodeOptions{Stream: true, IncludeUsage: !o.NoUsage, ReasoningField: o.ReasoningField,
			MaxCompletionTokens: o.MaxCompletionTokens, TopK: o.TopK, MaxTokens: o.MaxTokens, Entry: o.Entry, Strict: strict, Definitions: &wire.Definitions{},
			Takes: destination.For(codec.Wire(), o.Server, base.Host, model).With(&accepts)},
		accepts: accepts,
		// The assembler puts characters together again that a server cut in two.
		assemble: wire.AssemblerOptions{MaxBytes: o.MaxAnswerBytes, MaxCalls: o.MaxAnswerCalls},
		events:   sse.Options{MaxLine: o.MaxLineBytes, MaxEvent: o.MaxEventBytes, RawUTF8: true},
	}
	c.fit = wire.Fit{Codec: codec, Drop: o.DropContent, Marker: o.ContentMarker}
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

// newTransport returns the transport of a Chat that is given none. dial is nil but in tests. The
// open timeout is not its business: the watch of each call sees to it for every transport.
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
		DisableCompression:     true, // compressors hold events back
	}
}

// Describe says what the model is.
func (c *Chat) Describe() lathe.ModelInfo {
	return lathe.ModelInfo{Provider: c.opts.Name, Model: c.model, Wire: c.wire.Wire(), Server: c.server, NoTools: c.opts.NoTools, NoParallel: c.opts.NoParallel}
}

// CheckContent returns a *[lathe.Error] with the code invalid_request for the first content that the wire has no form for (audio, video, a
// file, an image by reference) in the messages after the last answer: its text has the place, such as "messages[2].parts[0]". Generate
// returns the same error. In older messages, and in all if [Options].DropContent is set, such content is no error: its places are dropped,
// at most 32.
func (c *Chat) CheckContent(msgs []lathe.Message) (dropped []string, err error) {
	row := takes(c, c.model, c.withheld())
	if err := checkContent(c, &row, msgs); err != nil {
		return nil, err
	}
	return c.fit.Dropped(roles(c, &row, msgs)), nil
}

// checkContent is the check of CheckContent for a model with the given row.
func checkContent(c *Chat, takes *destination.Row, msgs []lathe.Message) error {
	if bad := c.fit.Check(roles(c, takes, msgs)); bad != nil {
		return &lathe.Error{Code: lathe.CodeInvalidRequest, Op: c.op, Err: bad}
	}
	return nil
}

// String returns the provider's label and the model's name.
func (c *Chat) String() string { return fmt.Sprintf("%s/%s", c.opts.Name, c.model) }

// CloseIdleConnections closes the connections that no call uses, unless the transport is the caller's.
func (c *Chat) CloseIdleConnections() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// Generate makes one call. See [lathe.Model].
func (c *Chat) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		(&modelCall{c: c}).generate(ctx, req, yield)
	}
}

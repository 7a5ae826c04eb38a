// Package provider reaches model servers over HTTP. [OpenAI] speaks the chat completions of OpenAI
// and of the many servers that took over its wire; it always streams.
//
// What it promises, besides what [lathe.Model] does: keys do not print and do not leave for another
// origin; every wait and every size has a limit; a call is made again only before its first delta,
// and each failed attempt is told as a [lathe.DeltaRetry]; stopping early or cancelling frees the
// connection before Generate returns, and no goroutine is started for a call.
package provider

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/plain"
	"github.com/lathe-run/lathe/internal/reconnect"
	"github.com/lathe-run/lathe/internal/sse"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// A Chat is a model behind an OpenAI-compatible chat completions server. It may be used by
// several goroutines at once.
//
// Errors of Generate are a *[lathe.Error]: code upstream_error or upstream_protocol around a
// *[lathe.UpstreamError], or cancelled around the context's own error when the caller's context
// ended. A timeout set in [Options] is kind timeout, never cancelled or aborted.
type Chat struct {
	model     string
	opts      Options // BaseURL and Transport taken out
	op        string
	url       *url.URL
	header    sealed
	secrets   []Secret
	transport http.RoundTripper
	own       *http.Transport          // nil where the transport is the caller's
	fresh     func() http.RoundTripper // opens a connection for each request; the caller's transport if own is nil
	encode    openai.EncodeOptions
	assemble  openai.AssemblerOptions
	events    sse.Options
	idle      sync.Pool // of *conversation
	// shortIDs is set once the server has refused ids of calls that are not nine letters and digits.
	shortIDs atomic.Bool
}

// sealed gives away a header with keys in it. It is a function for the reason that secret.Secret
// holds one: what is printed by reflection does not show it.
type sealed func() http.Header

func seal(h http.Header) sealed { return func() http.Header { return h } }

var (
	_ lathe.Model     = (*Chat)(nil)
	_ lathe.Describer = (*Chat)(nil)
	_ lathe.Opener    = (*Chat)(nil)
)

// OpenAI returns the model of that name on an OpenAI-compatible server. opts may be nil. It makes
// no request. The error says which option is wrong, without its value.
func OpenAI(model string, opts *Options) (*Chat, error) {
	o := opts.withDefaults()
	wrong := func(err error) (*Chat, error) {
		return nil, &lathe.Error{Code: lathe.CodeInvalidConfig, Op: "provider: set up " + o.Name, Err: err}
	}
	if model == "" {
		return wrong(errors.New("no model is named"))
	}
	u, err := endpoint(o.BaseURL)
	if err != nil {
		return wrong(err)
	}
	header, err := o.header()
	if err != nil {
		return wrong(err)
	}
	c := &Chat{
		model: model, op: "provider: call " + o.Name, url: u, header: seal(header), secrets: secretsOf(&o), transport: o.Transport,
		encode: openai.EncodeOptions{Stream: true, IncludeUsage: !o.NoUsage, ReasoningField: o.ReasoningField,
			MaxCompletionTokens: o.MaxCompletionTokens},
		// The assembler puts characters together again that a server cut in two.
		events: sse.Options{MaxLine: o.MaxLineBytes, MaxEvent: o.MaxEventBytes, RawUTF8: true},
	}
	if c.transport == nil {
		c.own = newTransport(nil)
		if u.Scheme == "https" {
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
	return lathe.ModelInfo{Provider: c.opts.Name, Model: c.model, NoTools: c.opts.NoTools, NoParallel: c.opts.NoParallel}
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
		v := c.take()
		defer c.giveBack(v)
		v.generate(ctx, req, yield)
	}
}

// Open returns the model for the turns of one run: it keeps the encoded conversation and encodes
// only the messages that are new. See [lathe.Opener]. A request whose messages do not go on from
// the last one's is encoded anew. The close function may be called more than once.
func (c *Chat) Open() (lathe.Model, func()) {
	s := &session{c: c, v: c.take()}
	return s, s.close
}

func (c *Chat) take() *conversation {
	if v, ok := c.idle.Get().(*conversation); ok {
		return v
	}
	return newConversation(c)
}

func (c *Chat) giveBack(v *conversation) {
	v.forget()
	c.idle.Put(v)
}

// A session is the handle of an open conversation, which goes to another user once it is closed.
type session struct {
	c *Chat
	v *conversation // nil once closed
}

// Generate makes the next call of the run.
func (s *session) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		if s.v == nil || s.v.busy {
			yield(lathe.Delta{}, &lathe.Error{Code: lathe.CodeInternal, Op: s.c.op,
				Err: errors.New("an opened model was used after it was closed, or twice at once")})
			return
		}
		v := s.v
		v.generate(ctx, req, yield)
		if s.v == nil { // closed meanwhile: nobody else will
			v.scope.close()
		}
	}
}

// Describe says what the model is.
func (s *session) Describe() lathe.ModelInfo { return s.c.Describe() }

func (s *session) close() {
	v := s.v
	s.v = nil
	if v != nil && !v.busy {
		s.c.giveBack(v)
	}
}

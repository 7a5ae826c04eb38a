// Package egress is an HTTP client that sends requests only where its rules allow. All tools that make requests use it.
//
// A request is checked twice. Before it is sent: scheme, host, port, and the spelling of the host. When the connection is
// made: the address itself, by the network layer, so that no answer of a name server can lead to an address that the rules
// have not checked. Redirects pass both checks again. They are
// bounded, never leave https, carry no body to another origin, and of the headers that the caller set only those that say
// what is accepted.
//
// Proxies of the environment are not used, cookies are not kept, and all parts of a response are bounded:
// headers, body, and what a body decompresses to. Errors are of fixed text: see [Error].
package egress

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Options adjust a client. Zero fields have the default in their comment.
type Options struct {
	Resolver       Resolver      // the system's
	Timeout        time.Duration // 60s; of one request with its redirects and body. Negative: none but the context's
	DialTimeout    time.Duration // 10s; name server, connection, all addresses
	HeaderTimeout  time.Duration // 60s; from the request to the first header. Negative: none
	MaxHeaderBytes int64         // 64 KiB
	MaxBodyBytes   int64         // 8 MiB, decoded. Negative: no limit, for streams that are read bit by bit
	MaxRedirects   int           // 5. Negative: none
	TLS            *tls.Config   // the system's roots; cloned. For tests and private authorities
}

// A Client sends requests where its rules allow. It may be used by several goroutines at once.
type Client struct {
	http  http.Client
	guard *guard
}

// New returns a client under the rules. nil rules are the zero Rules, which allow no request. The error names the rule that
// cannot be read.
func New(r *Rules, opts *Options) (*Client, error) {
	c, _, err := build(r, opts)
	return c, err
}

func build(r *Rules, opts *Options) (*Client, *dialer, error) {
	if r == nil {
		r = &Rules{}
	}
	rules, err := r.compile()
	if err != nil {
		return nil, nil, err
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	o.fill()
	d := &dialer{rules: rules, resolver: o.Resolver, timeout: o.DialTimeout}
	t := &http.Transport{
		Proxy:                  nil,
		DialContext:            d.dial,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    o.DialTimeout,
		ResponseHeaderTimeout:  max(o.HeaderTimeout, 0),
		MaxResponseHeaderBytes: o.MaxHeaderBytes,
		IdleConnTimeout:        30 * time.Second,
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    8,
		DisableCompression:     true, // decoded here, within limits
	}
	if o.TLS != nil {
		t.TLSClientConfig = o.TLS.Clone()
	}
	g := &guard{rules: rules, next: t, maxBody: o.MaxBodyBytes}
	return &Client{http.Client{Transport: g, CheckRedirect: redirects(max(o.MaxRedirects, 0)), Timeout: max(o.Timeout, 0)}, g}, d, nil
}

func (o *Options) fill() {
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	for p, def := range map[*time.Duration]time.Duration{&o.Timeout: time.Minute, &o.DialTimeout: 10 * time.Second, &o.HeaderTimeout: time.Minute} {
		if *p == 0 {
			*p = def
		}
	}
	if o.MaxHeaderBytes <= 0 {
		o.MaxHeaderBytes = 64 << 10
	}
	if o.MaxBodyBytes == 0 {
		o.MaxBodyBytes = 8 << 20
	}
	if o.MaxRedirects == 0 {
		o.MaxRedirects = 5
	}
}

// Do sends a request and follows redirects. An error is an *[Error], and so are those of reading the
// response's body. If the error is nil, the caller closes the body.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, Plain(err)
	}
	resp.Body = plainBody{resp.Body}
	return resp, nil
}

// plainBody has errors of fixed text only, also those of the client's timeout.
type plainBody struct{ io.ReadCloser }

func (b plainBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = Plain(err)
	}
	return n, err
}

// Check returns the error with which a request to the URL would be refused, as far as it is known without resolving the
// host. nil does not mean that the request will be sent: the host may lead to an address that is not allowed.
func (c *Client) Check(rawURL string) error {
	u, err := url.Parse(rawURL)
	if err != nil {
		return refuse(CodeURL)
	}
	if e := c.guard.rules.checkURL(u); e != nil {
		return e
	}
	return nil
}

// HTTP returns the client for libraries that take an [http.Client]. It follows the same rules; its errors wrap an
// *[Error] and their text names the URL, so show [Plain] of them instead. It must not be changed.
func (c *Client) HTTP() *http.Client { return &c.http }

// With returns a client with the same rules and connections. Each hop of its requests goes through the transport that
// wrap returns for the guard: one that adds credentials. If that transport fails by itself, the request fails with an
// [Error] of [CodeCredential] that wraps its error; the text of that error is not used.
func (c *Client) With(wrap func(http.RoundTripper) http.RoundTripper) *Client {
	out := &Client{c.http, c.guard}
	out.http.Transport = &credentials{wrap(c.guard), c.guard}
	return out
}

// credentials tell errors of what adds credentials from those of the guard.
type credentials struct {
	http.RoundTripper
	guard *guard
}

// RoundTrip sends one hop.
func (t *credentials) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(req)
	if err == nil {
		return resp, nil
	}
	// One of the guard's comes as it is. In the tree of another it is that of a request for credentials.
	if _, own := err.(*Error); own { //nolint:errorlint // see above
		return nil, err
	}
	if over := req.Context().Err(); over != nil {
		return nil, Plain(over)
	}
	return nil, &Error{Code: CodeCredential, Refused: true, Unsent: true, cause: err}
}

// CloseIdleConnections serves http.Client.CloseIdleConnections.
func (t *credentials) CloseIdleConnections() { t.guard.CloseIdleConnections() }

// Close closes connections that are kept for later requests. The client can be used on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// guard is the transport: every hop of a request comes through here.
type guard struct {
	rules   *rules
	next    *http.Transport
	maxBody int64
}

// CloseIdleConnections serves http.Client.CloseIdleConnections.
func (g *guard) CloseIdleConnections() { g.next.CloseIdleConnections() }

// RoundTrip sends one hop.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := g.check(req); err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper closes it, whatever happens
		}
		return nil, err
	}
	if req.Header.Get("Accept-Encoding") == "" && req.Header.Get("Range") == "" && !streams(req) {
		req = req.Clone(req.Context())
		req.Header.Set("Accept-Encoding", "gzip")
	}
	resp, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, plainTransport(err)
	}
	if err := bound(resp, g.maxBody); err != nil {
		_ = resp.Body.Close() // the response is given up
		return nil, err
	}
	return resp, nil
}

func (g *guard) check(req *http.Request) error {
	if err := g.rules.checkURL(req.URL); err != nil {
		return err
	}
	if req.Host != "" && !strings.EqualFold(req.Host, req.URL.Host) {
		return refuse(CodeHost) // the name in the request would differ from the one that was checked
	}
	return nil
}

// streams reports whether the answer may be a stream of events, which compression would hold back.
func streams(req *http.Request) bool {
	return strings.Contains(req.Header.Get("Accept"), "text/event-stream")
}

func plainTransport(err error) *Error {
	var (
		verify *tls.CertificateVerificationError
		record tls.RecordHeaderError
		alert  tls.AlertError
	)
	if errors.As(err, &verify) || errors.As(err, &record) || errors.As(err, &alert) {
		return unsent(CodeTLS)
	}
	return Plain(err)
}

// carried are the headers that go along to another origin. Everything else that the caller set may
// be a credential.
var carried = []string{"Accept", "Accept-Encoding", "Accept-Language", "User-Agent"}

// redirects decides about each hop, before the transport looks at its URL.
func redirects(most int) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if len(via) > most {
			return refuse(CodeRedirectLimit)
		}
		if req.URL.User != nil || req.URL.Host == "" {
			return refuse(CodeURL)
		}
		first, previous := via[0], via[len(via)-1]
		if previous.URL.Scheme == "https" && req.URL.Scheme != "https" {
			return refuse(CodeRedirectRefused)
		}
		if lostMethod(req, previous) {
			return refuse(CodeRedirectRefused)
		}
		home := origin(first.URL)
		abroad := origin(req.URL) != home || slices.ContainsFunc(via, func(r *http.Request) bool { return origin(r.URL) != home })
		if abroad && req.Method != http.MethodGet && req.Method != http.MethodHead {
			return refuse(CodeRedirectRefused) // with its body
		}
		req.Header.Del("Referer") // it would tell the query
		if abroad {
			for name := range req.Header {
				if !slices.Contains(carried, name) {
					delete(req.Header, name)
				}
			}
		}
		return nil
	}
}

// lostMethod reports whether the redirect would silently turn a request that writes into one that
// reads. Only 303 says that this is meant.
func lostMethod(req, previous *http.Request) bool {
	return req.Method != previous.Method && req.Response != nil && req.Response.StatusCode != http.StatusSeeOther
}

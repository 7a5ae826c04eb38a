// Package egress is an HTTP client that sends requests only where its rules allow. All tools that make requests use it.
// A request is checked twice: before it is sent, its scheme, host, port and the spelling of the host; when the connection is made, the
// address itself, so that no answer of a name server can lead to an address that the rules have not checked. Redirects pass both checks
// again. Their number is limited, they never leave https and carry no body to another origin, and another origin receives only the headers
// of the caller that say what is accepted, and the User-Agent.
//
// Proxies of the environment are not used and cookies are not stored. The headers, the body and the decoded size of a response are limited.
// Errors have fixed texts: see [Error].
package egress

import (
	"cmp"
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

// Options configure a [Client]. The zero value is usable.
type Options struct {
	Resolver       Resolver      // resolves host names; nil: the resolver of the system
	Timeout        time.Duration // limit of one request with its redirects and body; 0: 60 s. Negative: only the context limits it
	DialTimeout    time.Duration // limit of resolving a name and connecting to its addresses, and again of the TLS handshake; 0: 10 s
	HeaderTimeout  time.Duration // limit from the end of the request to the end of the response's headers; 0: 60 s. Negative: no limit
	MaxHeaderBytes int64         // maximum size of the response's headers; 0: 64 KiB
	MaxBodyBytes   int64         // maximum size of the response's body after decompression; 0: 8 MiB. Negative: no limit, for streams
	MaxRedirects   int           // maximum number of redirects of one request; 0: 5. Negative: none is followed
	TLS            *tls.Config   // for servers with private certificate authorities; it is cloned. nil: the system's roots
}

// A Client sends HTTP requests that its [Rules] allow. It may be used by several goroutines at once.
type Client struct {
	http  http.Client
	guard *guard
}

// New returns a client with the rules r. If r is nil, the client sends no request. opts may be nil. The error names the first rule that is
// not valid; it has no code.
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
		DisableCompression:     true, // body decodes gzip, with limits
	}
	if o.TLS != nil {
		t.TLSClientConfig = o.TLS.Clone()
	}
	g := &guard{rules: rules, next: t, maxBody: o.MaxBodyBytes}
	return &Client{http.Client{Transport: g, CheckRedirect: redirects(max(o.MaxRedirects, 0)), Timeout: max(o.Timeout, 0)}, g}, d, nil
}

func (o *Options) fill() {
	o.Resolver = cmp.Or[Resolver](o.Resolver, net.DefaultResolver)
	o.Timeout = cmp.Or(o.Timeout, time.Minute)
	o.DialTimeout = cmp.Or(o.DialTimeout, 10*time.Second)
	o.HeaderTimeout = cmp.Or(o.HeaderTimeout, time.Minute)
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, 8<<20)
	o.MaxRedirects = cmp.Or(o.MaxRedirects, 5)
	if o.MaxHeaderBytes <= 0 {
		o.MaxHeaderBytes = 64 << 10
	}
}

// Do sends a request, follows redirects, and blocks until the headers of the response have arrived. Its errors are *[Error], and so are
// those of reading the body of the response. If the error is nil, the caller must close the body; otherwise the response is nil.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, Plain(err)
	}
	resp.Body = plainBody{resp.Body}
	return resp, nil
}

// plainBody converts the errors of reading a body, such as those of http.Client.Timeout, into *Error.
type plainBody struct{ io.ReadCloser }

func (b plainBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = Plain(err)
	}
	return n, err
}

// Check returns an error if the rules refuse requests to the URL. It does not resolve the host. So a nil error does not mean that a request
// will be sent: the host may resolve to an address that is not allowed.
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

// HTTP returns an [http.Client] with the same rules, for libraries that require one. Callers must not change it. The text of its errors
// contains the URL: show [Plain] of an error instead.
func (c *Client) HTTP() *http.Client { return &c.http }

// With returns a client with the same rules and connections that adds credentials to its requests. wrap receives the transport of c and
// must return one that adds credentials to a request and then calls the transport it received. The returned transport sends all requests,
// including redirects. It replaces the transport of an earlier With. If it fails by itself, the request fails with an [Error] of
// [CodeCredential] that wraps the error of the transport without using its text.
func (c *Client) With(wrap func(http.RoundTripper) http.RoundTripper) *Client {
	out := &Client{c.http, c.guard}
	out.http.Transport = &credentials{wrap(c.guard), c.guard}
	return out
}

// credentials is the transport of a client of With. It separates the errors of the transport that adds credentials from those of the guard.
type credentials struct {
	http.RoundTripper
	guard *guard
}

// RoundTrip implements [http.RoundTripper]. It is called once for a request and once for each redirect.
func (t *credentials) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(req)
	if err == nil {
		return resp, nil
	}
	// An *Error itself is of the guard. An *Error wrapped in another error is of the request by which the transport obtains credentials.
	if _, own := err.(*Error); own { //nolint:errorlint // see above
		return nil, err
	}
	if over := req.Context().Err(); over != nil {
		return nil, Plain(over)
	}
	return nil, &Error{Code: CodeCredential, Refused: true, Unsent: true, cause: err}
}

// CloseIdleConnections is called by [http.Client.CloseIdleConnections].
func (t *credentials) CloseIdleConnections() { t.guard.CloseIdleConnections() }

// Close closes the idle connections, including those of the clients that [Client.With] returned. The client can still be used.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// guard is the innermost transport of a client: it checks each request, redirects included, and limits its response.
type guard struct {
	rules   *rules
	next    *http.Transport
	maxBody int64
}

// CloseIdleConnections is called by [http.Client.CloseIdleConnections].
func (g *guard) CloseIdleConnections() { g.next.CloseIdleConnections() }

// RoundTrip implements [http.RoundTripper]. It is called once for a request and once for each redirect.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := g.check(req); err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper closes the body also if it fails
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
		_ = resp.Body.Close() // the error of bound is returned instead
		return nil, err
	}
	return resp, nil
}

func (g *guard) check(req *http.Request) error {
	if err := g.rules.checkURL(req.URL); err != nil {
		return err
	}
	if req.Host != "" && !strings.EqualFold(req.Host, req.URL.Host) {
		return refuse(CodeHost) // the Host header differs from the host that was checked
	}
	return nil
}

// streams reports whether the response may be a stream of events, whose events compression would delay.
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

// carried are the headers that a redirect to another origin keeps. Any other header of the caller may contain a credential.
var carried = []string{"Accept", "Accept-Encoding", "Accept-Language", "User-Agent"}

// redirects returns the CheckRedirect function of a client that follows at most most redirects.
func redirects(most int) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if len(via) > most {
			return refuse(CodeRedirectLimit)
		}
		if req.URL.User != nil || req.URL.Host == "" {
			return refuse(CodeURL)
		}
		previous := via[len(via)-1]
		if previous.URL.Scheme == "https" && req.URL.Scheme != "https" {
			return refuse(CodeRedirectRefused)
		}
		if lostMethod(req, previous) {
			return refuse(CodeRedirectRefused)
		}
		first := origin(via[0].URL)
		isOther := func(r *http.Request) bool { return origin(r.URL) != first }
		leftOrigin := isOther(req) || slices.ContainsFunc(via, isOther)
		if leftOrigin && req.Method != http.MethodGet && req.Method != http.MethodHead {
			return refuse(CodeRedirectRefused) // the request may have a body
		}
		req.Header.Del("Referer") // it contains the query of the previous URL
		if leftOrigin {
			for name := range req.Header {
				if !slices.Contains(carried, name) {
					delete(req.Header, name)
				}
			}
		}
		return nil
	}
}

// lostMethod reports whether the redirect replaced the method of the request, as with POST to GET, without status 303, which requires that.
func lostMethod(req, previous *http.Request) bool {
	return req.Method != previous.Method && req.Response != nil && req.Response.StatusCode != http.StatusSeeOther
}

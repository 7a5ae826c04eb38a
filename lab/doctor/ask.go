package doctor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lathe-run/lathe/internal/plain"
	"github.com/lathe-run/lathe/internal/reconnect"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/secret"
)

// An exchange is one request and its response.
type exchange struct {
	status   int // 0: no response
	header   http.Header
	body     []byte
	api      *wire.APIError // the error in the body; nil: no response
	err      error          // error of the transport, or of reading the body
	timedOut bool
	tooLarge bool
	first    time.Duration // time until the first byte of the body
}

// lost reports whether the connection failed before a response.
func (e *exchange) lost() bool { return e.status == 0 && e.err != nil && !e.timedOut }

// media returns the media type of the response without parameters.
func (e *exchange) media() string {
	m, _, _ := strings.Cut(e.header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(m))
}

// textOf returns the text of an error response, and whether the response has the form of an error.
func (e *exchange) textOf() (string, bool) {
	api := e.api
	if api == nil {
		return "", false
	}
	return api.Message, api.Message != "" && bytes.HasPrefix(bytes.TrimSpace(e.body), []byte("{"))
}

func (e *exchange) explain() string {
	switch {
	case e.timedOut:
		return "no answer in time"
	case e.status == 0 && e.err != nil:
		return e.err.Error()
	}
	words, _ := e.textOf()
	if words == "" {
		return "HTTP " + strconv.Itoa(e.status)
	}
	return "HTTP " + strconv.Itoa(e.status) + ": " + words
}

// ask makes a request, and repeats it once after a temporary failure. It records findings about the failure.
func (x *examiner) ask(ctx context.Context, method string, u *url.URL, body []byte, key secret.Secret) *exchange {
	e := x.send(ctx, method, u, body, key)
	if e.lost() && x.unreachable == nil && ctx.Err() == nil {
		first := e
		e = x.send(ctx, method, u, body, key)
		if !e.lost() && !e.timedOut {
			x.find("connection-lost-once", first.err.Error())
		}
	}
	if !passes(e.status) {
		return e
	}
	if e = x.awaitLoading(ctx, e, func() *exchange { return x.send(ctx, method, u, body, key) }); !passes(e.status) {
		return e
	}
	first := e.status
	if reconnect.Wait(ctx, x.wait(e.header)) != nil {
		return e
	}
	e = x.send(ctx, method, u, body, key)
	words, _ := e.textOf()
	if passes(e.status) && bytes.Contains(body, []byte(`"tools":[`)) && strings.Contains(strings.ToLower(words), "tool") {
		return e // the server refuses the tools, with a status for failures
	}
	if passes(e.status) {
		x.find(statusID(e.status, "-always"), e.explain())
	} else {
		x.find(statusID(first, ""), "HTTP "+strconv.Itoa(first))
	}
	return e
}

// loadingPause is the time between two requests to a server that is loading its model.
const loadingPause = time.Second

// awaitLoading repeats a request as long as the server responds that it is loading the model, for at most Options.Loading. It returns the
// last response.
func (x *examiner) awaitLoading(ctx context.Context, e *exchange, again func() *exchange) *exchange {
	until := time.Now().Add(x.opts.Loading)
	for {
		words, _ := e.textOf()
		if !openai.Loading(e.status, words) || ctx.Err() != nil || !time.Now().Before(until) {
			return e
		}
		x.find("loading", words)
		x.progress(x.probe.Name + " (the server loads the model)")
		if reconnect.Wait(ctx, loadingPause) != nil {
			return e
		}
		e = again()
	}
}

// passes reports whether a status is a temporary failure, after which Lathe repeats a model call.
func passes(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
}

func (x *examiner) wait(h http.Header) time.Duration {
	d := x.opts.Wait
	if s, err := strconv.Atoi(h.Get("Retry-After")); err == nil && s >= 0 {
		d = time.Duration(min(s, 3600)) * time.Second
	}
	return min(d, x.opts.MaxWait)
}

// mayAsk reports whether the request limit of an Asker allows another request.
func (x *examiner) mayAsk() bool { return x.left == nil || *x.left > 0 }

// spend counts a request.
func (x *examiner) spend() {
	x.probe.Requests++
	if x.left != nil {
		*x.left--
	}
}

// send makes one request and reads the response, both within Timeout.
func (x *examiner) send(ctx context.Context, method string, u *url.URL, body []byte, key secret.Secret) *exchange {
	x.spend()
	started := time.Now()
	defer func() { x.probe.Millis += time.Since(started).Milliseconds() }()
	ctx, cancel := context.WithTimeout(ctx, x.opts.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return &exchange{err: errors.New("the request cannot be written")}
	}
	req.Header.Set("User-Agent", "lathe-doctor")
	req.Header.Set("Accept", "text/event-stream, application/json")
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	vendor := x.codec.Vendor()
	if vendor.Header != "" {
		req.Header.Set(vendor.Header, vendor.Value)
	}
	if !key.IsZero() {
		req.Header.Set(vendor.KeyHeader, vendor.KeyPrefix+key.Reveal())
	}
	for name, value := range x.target.Headers {
		req.Header.Set(name, value.Reveal())
	}
	var travel reconnect.Record
	req = req.WithContext(httptrace.WithClientTrace(ctx, travel.Trace(nil)))
	resp, err := x.transport.RoundTrip(req)                   // follows no redirects: the key must not be sent to another host
	if travel.Closed(err) && ctx.Err() == nil && x.mayAsk() { // like package provider: a reused connection that was closed is not a failure
		x.spend()
		again := req.Clone(req.Context())
		again.Body, _ = req.GetBody() // does not fail for a bytes.Reader
		resp, err = x.fresh.RoundTrip(again)
	}
	if err != nil {
		return x.failed(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }() // the body has been read, or is not needed
	x.connected, x.silent = true, 0
	e := &exchange{status: resp.StatusCode, header: resp.Header}
	e.body, e.err = io.ReadAll(io.LimitReader(&firstByte{Reader: resp.Body, started: started, at: &e.first}, int64(x.opts.MaxBytes)+1))
	if len(e.body) > x.opts.MaxBytes {
		e.body, e.tooLarge = e.body[:x.opts.MaxBytes], true
	}
	e.api = x.codec.ParseError(e.status, e.body)
	if e.timedOut = e.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded); e.timedOut {
		x.timeouts++
	}
	return e
}

// firstByte is a reader that records when the first byte is read.
type firstByte struct {
	io.Reader
	started time.Time
	at      *time.Duration
}

func (r *firstByte) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 && *r.at == 0 {
		*r.at = time.Since(r.started)
	}
	return n, err
}

// failed returns the exchange of a request without a response. After two failed connections in a row, before any response, the server
// counts as unreachable.
func (x *examiner) failed(ctx context.Context, err error) *exchange {
	e := &exchange{err: bare(err), timedOut: errors.Is(ctx.Err(), context.DeadlineExceeded), header: http.Header{}}
	if e.timedOut {
		x.timeouts++
	}
	x.silent++
	if fault := plain.Fault(err); fault != "" {
		x.unreachable, x.mistake = errors.New(fault), true
	} else if !x.connected && !e.timedOut && x.silent >= 2 {
		x.unreachable = errors.New(clip(secret.Scrub(e.err.Error(), x.secrets()...)))
	}
	return e
}

// bare returns the error without the URL, whose query may contain credentials.
func bare(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}

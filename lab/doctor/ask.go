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

// refused reports whether the server refused the request as wrong.
func (e *exchange) refused() bool { return e.status >= 400 && e.status < 500 }

// media returns the media type of the response without parameters.
func (e *exchange) media() string {
	m, _, _ := strings.Cut(e.header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(m))
}

// message returns the text of an error response, or "".
func (e *exchange) message() string {
	if e.api == nil {
		return ""
	}
	return e.api.Message
}

// isError reports whether the response has the form of an error.
func (e *exchange) isError() bool {
	return e.message() != "" && bytes.HasPrefix(bytes.TrimSpace(e.body), []byte("{"))
}

func (e *exchange) explain() string {
	switch {
	case e.timedOut:
		return "no answer in time"
	case e.status == 0 && e.err != nil:
		return e.err.Error()
	}
	status := "HTTP " + strconv.Itoa(e.status)
	if e.message() == "" {
		return status
	}
	return status + ": " + e.message()
}

// ask makes a request, and repeats it after temporary failures: once if the connection was lost, while the server loads the model, and once
// after a status that isTemporary. It records findings about the failure.
func (x *client) ask(ctx context.Context, method string, u *url.URL, body []byte, key secret.Secret) *exchange {
	send := func() *exchange { return x.send(ctx, method, u, body, key) }
	e := x.sendReconnecting(ctx, send)
	if isTemporary(e.status) {
		e = x.awaitLoading(ctx, e, send)
	}
	if !isTemporary(e.status) || reconnect.Wait(ctx, x.wait(e.header)) != nil {
		return e
	}
	first := e.status
	e = send()
	aboutTools := bytes.Contains(body, []byte(`"tools":[`)) && strings.Contains(strings.ToLower(e.message()), "tool")
	switch {
	case !isTemporary(e.status):
		x.find(statusID(first, ""), "HTTP "+strconv.Itoa(first))
	case !aboutTools: // otherwise the server refuses the tools, with a status for failures
		x.find(statusID(e.status, "-always"), e.explain())
	}
	return e
}

// sendReconnecting sends a request, and sends it once more if the connection was lost.
func (x *client) sendReconnecting(ctx context.Context, send func() *exchange) *exchange {
	first := send()
	if !first.lost() || x.unreachable != nil || ctx.Err() != nil {
		return first
	}
	second := send()
	if !second.lost() && !second.timedOut {
		x.find("connection-lost-once", first.err.Error())
	}
	return second
}

// loadingPause is the time between two requests to a server that is loading its model.
const loadingPause = time.Second

// awaitLoading repeats a request as long as the server responds that it is loading the model, for at most Options.Loading. It returns the
// last response.
func (x *client) awaitLoading(ctx context.Context, e *exchange, again func() *exchange) *exchange {
	until := time.Now().Add(x.opts.Loading)
	for {
		words := e.message()
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

// isTemporary reports whether a status is a temporary failure, after which Lathe repeats a model call.
func isTemporary(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
}

func (x *client) wait(h http.Header) time.Duration {
	d := x.opts.Wait
	if s, err := strconv.Atoi(h.Get("Retry-After")); err == nil && s >= 0 {
		d = time.Duration(min(s, 3600)) * time.Second
	}
	return min(d, x.opts.MaxWait)
}

// mayAsk reports whether the request limit of an Asker allows another request.
func (x *client) mayAsk() bool { return x.left == nil || *x.left > 0 }

// spend counts a request.
func (x *client) spend() {
	x.probe.Requests++
	if x.left != nil {
		*x.left--
	}
}

// send makes one request and reads the response, both within Timeout.
func (x *client) send(ctx context.Context, method string, u *url.URL, body []byte, key secret.Secret) *exchange {
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
	e.timedOut = e.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded)
	if e.timedOut {
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
func (x *client) failed(ctx context.Context, err error) *exchange {
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

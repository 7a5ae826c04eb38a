package provider

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/plain"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/secret"
)

// Limits on the parts of an error that come from the server.
const (
	maxMessage      = 500 // bytes of UpstreamError.Message
	maxProviderCode = 64
	maxRequestID    = 128
	maxRetryAfter   = 24 * time.Hour // a longer Retry-After is shortened to it
)

// failure wraps an upstream failure in a *lathe.Error.
func (c *Chat) failure(e *lathe.UpstreamError) *lathe.Error {
	code := lathe.CodeUpstream
	if e.Kind == lathe.UpstreamBadProtocol {
		code = lathe.CodeUpstreamProtocol
	}
	return code.Wrap(c.op, e)
}

// protocol returns the failure of a server that violates the protocol of the wire. what is a text of this package.
func (c *Chat) protocol(status int, what string, err error) *lathe.UpstreamError {
	return &lathe.UpstreamError{Kind: lathe.UpstreamBadProtocol, Status: status, Message: what, Err: err}
}

// fromStatus returns the failure that a response with an error status and this body reports.
func (c *Chat) fromStatus(resp *http.Response, api *wire.APIError, body []byte) *lathe.UpstreamError {
	e := c.fromAPI(api, resp.StatusCode)
	e.Status = resp.StatusCode
	e.RetryAfter = resetOf(e, resp.Header, body, time.Now())
	switch resp.Header.Get("X-Should-Retry") {
	case "false":
		e.Retryable = false
	case "true":
		e.Retryable = e.Retryable || !lasting(e)
	}
	return e
}

// fromRedirect returns the failure of a server that redirects. It names the other origin only, because the rest of a Location may contain
// secrets.
func (c *Chat) fromRedirect(resp *http.Response) *lathe.UpstreamError {
	what := "the server redirects, and redirects are not followed: set the base URL to where it leads"
	if to, err := c.base.Parse(resp.Header.Get("Location")); err == nil && to.Host != "" {
		what += " (" + to.Scheme + "://" + to.Host + ")"
	}
	return c.protocol(resp.StatusCode, c.clean(what), nil)
}

// fromInBand returns the failure that a server reports in a response with status 200.
func (c *Chat) fromInBand(api *wire.APIError, body []byte) *lathe.UpstreamError {
	status := 0
	if api.Status >= 400 {
		status = api.Status
	}
	e := c.fromAPI(api, status)
	e.Status, e.InBand = status, true
	e.RetryAfter = resetOf(e, nil, body, time.Now())
	return e
}

// fromAPI converts an error of the wire. status is 0 if the server sent it without a status.
func (c *Chat) fromAPI(api *wire.APIError, status int) *lathe.UpstreamError {
	e := &lathe.UpstreamError{Message: c.clean(api.Message), Kind: kindOf(status), RetryAfter: bounded(api.RetryAfter * float64(time.Second))}
	if status == 0 {
		e.Kind = kindOfWords(api.Code, api.Type)
	}
	code := api.Code
	if api.Type != "" && isNumber(code) { // the number repeats the status, and the type names the kind
		code = api.Type
	}
	e.ProviderCode = c.cleanCode(code)
	text := strings.ToLower(api.Message) // e.Message may be shortened
	switch {
	case e.Kind == lathe.UpstreamRateLimited: // here "maximum" and "exceeds" refer to the account
	case exceedsContext(api.Code, api.Type, text):
		e.Kind, e.ProviderCode = lathe.Upstream4xx, lathe.CodeContextLength
	case openai.Loading(status, text):
		e.Kind = lathe.UpstreamLoading
	case e.Kind == lathe.Upstream5xx && isRequestFault(status, api.Type, text):
		e.Kind = lathe.Upstream4xx
	}
	e.Retryable = retryable(e, status)
	e.Unparsed = isOutputFault(api)
	return e
}

// isNumber reports whether s consists of digits, or is empty.
func isNumber(s string) bool { return strings.Trim(s, "0123456789") == "" }

// fromTransport returns the failure of an attempt that a timeout or the network ended.
func (c *Chat) fromTransport(ctx context.Context, err error, until progress) *lathe.UpstreamError {
	e := &lathe.UpstreamError{Kind: lathe.UpstreamAborted, Err: err, Connect: until == notSent}
	// A failure before the response's header can be retried: no part of an answer was read.
	e.Retryable = until != responded
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errOpenTimeout):
		e.Kind, e.Err = lathe.UpstreamTimeout, cause
	case errors.Is(cause, errClientTimeout), errors.Is(cause, errReadTimeout):
		e.Kind, e.Err, e.Retryable = lathe.UpstreamTimeout, cause, false
	default:
		var ne net.Error
		if errors.As(err, &ne) && ne.Timeout() {
			e.Kind, e.Retryable = lathe.UpstreamTimeout, e.Connect
		}
	}
	e.Detail = causeOf(e.Err)
	if wrong := plain.Fault(err); wrong != "" && e.Kind == lathe.UpstreamAborted {
		e.Err, e.Detail, e.Retryable = &cleaned{wrong, err}, wrong, false
	}
	e.Message = c.clean(e.Err.Error())
	if e.Err.Error() != e.Message {
		e.Err = &cleaned{e.Message, e.Err}
	}
	return e
}

// A cleaned error has the text of its cause without keys; errors.Is and errors.As still find the cause.
type cleaned struct {
	text string
	err  error
}

func (e *cleaned) Error() string { return e.text }
func (e *cleaned) Unwrap() error { return e.err }

// cancelled returns the error of a call whose own context ended.
func (c *Chat) cancelled(ctx context.Context) *lathe.Error {
	return lathe.CodeCancelled.Wrap(c.op, ctx.Err())
}

func kindOf(status int) lathe.UpstreamKind {
	switch {
	case status == http.StatusRequestTimeout:
		return lathe.UpstreamTimeout
	case status == http.StatusTooManyRequests:
		return lathe.UpstreamRateLimited
	case status >= 500:
		return lathe.Upstream5xx
	case status >= 400:
		return lathe.Upstream4xx
	}
	return lathe.UpstreamBadProtocol
}

// kindOfWords returns the kind of an error without a status, by words of its code or type. Unknown words are errors of the server.
func kindOfWords(words ...string) lathe.UpstreamKind {
	for _, w := range words {
		w = strings.ToLower(w)
		switch {
		case containsAny(w, []string{"rate_limit", "usage_limit", "too_many_requests", "quota", "resource_exhausted"}):
			return lathe.UpstreamRateLimited
		case containsAny(w, []string{"timeout", "deadline_exceeded"}):
			return lathe.UpstreamTimeout
		case containsAny(w, []string{"invalid", "not_found", "authenticat", "permission", "billing", "too_large", "context_length", "content_policy",
			"failed_precondition"}):
			return lathe.Upstream4xx
		}
	}
	return lathe.Upstream5xx
}

// retryable reports whether a repeated request may succeed soon.
func retryable(e *lathe.UpstreamError, status int) bool {
	switch e.Kind {
	case lathe.UpstreamRateLimited:
		return !lasting(e)
	case lathe.Upstream5xx, lathe.UpstreamTimeout, lathe.UpstreamLoading:
		return true
	case lathe.Upstream4xx:
		return status == http.StatusConflict && !lasting(e)
	case lathe.UpstreamAborted, lathe.UpstreamBadProtocol:
	}
	return false
}

// lasting reports whether the same request fails again, whatever the header of the server says: the quota of the account is used up, or
// the conversation is too long.
func lasting(e *lathe.UpstreamError) bool {
	return e.ProviderCode == "insufficient_quota" || e.ProviderCode == lathe.CodeContextLength
}

func bounded(ns float64) time.Duration {
	return time.Duration(min(max(ns, 0), float64(maxRetryAfter)))
}

// requestIDHeaders are the headers in which servers and proxies return their id of a request, in canonical form and order of preference.
var requestIDHeaders = [...]string{"X-Request-Id", "Request-Id", "X-Litellm-Call-Id", "X-Generation-Id", "Cf-Ray"}

// requestID returns the server's id of the request, printable and of limited length; "" if none exists.
func (c *Chat) requestID(h http.Header) string {
	for _, name := range requestIDHeaders {
		if v := h[name]; len(v) > 0 && v[0] != "" {
			return c.cleanID(v[0])
		}
	}
	return ""
}

func (c *Chat) cleanID(id string) string {
	id = id[:min(len(id), maxRequestID)]
	for i := range len(id) {
		if id[i] < '!' || id[i] > '~' {
			return ""
		}
	}
	for _, s := range c.secrets {
		if v := s.Reveal(); len(v) >= 4 && strings.Contains(id, v) {
			return ""
		}
	}
	return id
}

// clean returns text of the server without secrets and control characters, of at most maxMessage bytes, for UpstreamError.Message.
func (c *Chat) clean(message string) string {
	message = secret.Scrub(message, c.secrets...) // before the text is shortened, because half a key would not be found
	message = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return ' '
		}
		return r
	}, message)
	return text.Cut(strings.TrimSpace(message), maxMessage)
}

func (c *Chat) cleanCode(code string) string {
	code = secret.Scrub(code, c.secrets...)
	b := []byte(code[:min(len(code), maxProviderCode)])
	for i, ch := range b {
		if !(ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z' || ch >= '0' && ch <= '9' || ch == '_' || ch == '.' || ch == '-') {
			b[i] = '_'
		}
	}
	return string(b)
}

// secretsOf returns all values that must not be in an error: the key and the values of the headers.
func secretsOf(o *Options) []secret.Secret {
	var out []secret.Secret
	if !o.Key.IsZero() {
		out = append(out, o.Key)
	}
	for _, v := range o.Headers {
		if !v.IsZero() {
			out = append(out, v)
		}
	}
	return out
}

package provider

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/lathe-run/lathe/internal/secret"
	"github.com/lathe-run/lathe/internal/wire/openai"
)

// A Secret is a key that does not print: fmt, encoding/json and log/slog show "[redacted]".
type Secret = secret.Secret

// NewSecret returns a Secret that holds s.
func NewSecret(s string) Secret { return secret.New(s) }

// Options set up a model server. The zero value reaches OpenAI without a key. Every limit and
// timeout has the default in its comment.
type Options struct {
	// Name is the provider's label in events and metrics; "openai".
	Name string
	// BaseURL is the address under which /chat/completions lies, version included;
	// https://api.openai.com/v1. An address without a path gets /v1, so http://localhost:11434
	// works; any other path is taken as it is, with or without /chat/completions at its end. A
	// query is kept (api-version). A key or password in it is refused.
	BaseURL string
	// Key is sent as a bearer token; the zero Secret sends none.
	Key Secret
	// Headers are sent with each request. Their values are Secrets because some servers take the
	// key in a header of their own (api-key).
	Headers map[string]Secret
	// Transport makes the requests; nil: one of this Chat's own, which uses the proxies of the
	// environment (HTTPS_PROXY, NO_PROXY) as net/http does. It must close request bodies, as
	// every http.RoundTripper must. Redirects are never followed, so that the key goes nowhere else.
	Transport http.RoundTripper

	// ClientTimeout bounds the time to the first delta, attempts and the waits between them included; 120 s. It does
	// not bound a stream that moves: there, ReadTimeout and the caller's context do. An answer that comes in one
	// piece is bounded as a whole.
	ClientTimeout time.Duration
	// OpenTimeout bounds each attempt until the connection takes the request: look-up, connecting
	// and TLS; 10 s.
	OpenTimeout time.Duration
	// ReadTimeout bounds the wait for the response and for each further byte; ClientTimeout.
	ReadTimeout time.Duration
	// LoadingTimeout bounds the wait for a server that answers that it is loading the model; 2 min. That time is not part of
	// ClientTimeout. A negative value turns any of the four off.
	LoadingTimeout time.Duration

	Retry Retry

	// ReasoningField is the member under which reasoning is sent back to the model, such as
	// "reasoning_content"; "*": the member it came in; "none": it is not sent back. Empty counts as "*".
	ReasoningField string
	// NoUsage leaves out stream_options.include_usage, for servers that refuse it.
	NoUsage bool
	// MaxCompletionTokens sends Sampling.MaxTokens as max_completion_tokens, which OpenAI's
	// reasoning models ask for.
	MaxCompletionTokens bool
	// NoTools and NoParallel say what the model cannot do; see lathe.ModelInfo.
	NoTools, NoParallel bool

	MaxResponseBytes int64 // 64 MiB; of one response, unpacked
	MaxErrorBytes    int64 // 64 KiB; read of an error's body
	MaxLineBytes     int   // 1 MiB; of one line of a stream
	MaxEventBytes    int   // 8 MiB; of one event of a stream

	// Log gets one debug line for each attempt: status, kind of failure and request id; nil: none.
	Log *slog.Logger
}

// Retry says how a call is made again that failed with 408, 429 or 5xx, or without any response,
// before its first delta. A call that timed out after it was sent is not made again.
type Retry struct {
	Attempts int           // 3, the first one included
	Base     time.Duration // 500 ms; the first wait is at most this, and it doubles with each attempt
	Max      time.Duration // 8 s; the longest wait that the server did not ask for
	// MaxAfter is the longest Retry-After that is waited for; 60 s. A server that asks for more
	// is not called again: the error, which holds its wish, ends the call.
	MaxAfter time.Duration
	// Jitter returns a number in [0, 1) that each wait (but not a Retry-After) is multiplied by;
	// math/rand/v2.Float64. It may be called from several goroutines at once.
	Jitter func() float64
}

// Defaults and fixed limits.
const (
	defaultBaseURL          = "https://api.openai.com/v1"
	defaultClientTimeout    = 120 * time.Second
	defaultOpenTimeout      = 10 * time.Second
	defaultLoadingTimeout   = 2 * time.Minute
	noReasoning             = "none"
	defaultMaxResponseBytes = 64 << 20
	defaultMaxErrorBytes    = 64 << 10

	defaultMaxEvent = 8 << 20  // also of a response that is not a stream
	maxHeaderBytes  = 64 << 10 // of a response's header, with the transport made here
)

// withDefaults returns a copy of o with its zero fields filled. A timeout that is off is 0 in it.
func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	def(&c.Name, "openai")
	def(&c.BaseURL, defaultBaseURL)
	def(&c.ClientTimeout, defaultClientTimeout)
	def(&c.OpenTimeout, defaultOpenTimeout)
	def(&c.ReadTimeout, c.ClientTimeout)
	def(&c.LoadingTimeout, defaultLoadingTimeout)
	c.ClientTimeout = max(c.ClientTimeout, 0)
	c.OpenTimeout = max(c.OpenTimeout, 0)
	c.ReadTimeout = max(c.ReadTimeout, 0)
	def(&c.ReasoningField, openai.ReasoningSame)
	if c.ReasoningField == noReasoning {
		c.ReasoningField = ""
	}
	def(&c.Retry.Attempts, 3)
	def(&c.Retry.Base, 500*time.Millisecond)
	def(&c.Retry.Max, 8*time.Second)
	def(&c.Retry.MaxAfter, 60*time.Second)
	if c.Retry.Jitter == nil {
		c.Retry.Jitter = rand.Float64
	}
	def(&c.MaxResponseBytes, defaultMaxResponseBytes)
	def(&c.MaxErrorBytes, defaultMaxErrorBytes)
	return c
}

func def[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// endpoint returns the address of chat completions under base. Its errors do not quote base,
// which may hold a password.
func endpoint(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, errors.New("base URL is not a URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("base URL must start with http:// or https:// and name a host")
	}
	if u.User != nil {
		return nil, errors.New("base URL holds a user or password: use the key or a header")
	}
	for name := range u.Query() {
		for _, word := range [...]string{"key", "token", "secret", "password", "sig"} {
			if strings.Contains(strings.ToLower(name), word) {
				return nil, errors.New("base URL holds a key in its query: use the key or a header")
			}
		}
	}
	u.Fragment, u.RawFragment = "", ""
	path := strings.TrimRight(u.EscapedPath(), "/")
	if path == "" {
		path = "/v1"
	}
	const tail = "/chat/completions"
	path = strings.TrimSuffix(path, tail) + tail
	if u.Path, err = url.PathUnescape(path); err != nil {
		return nil, errors.New("base URL has a bad path")
	}
	u.RawPath = path
	return u, nil
}

// header returns the header of each request.
func (o *Options) header() (http.Header, error) {
	h := http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {"text/event-stream, application/json"},
		"User-Agent":   {"lathe"},
	}
	if !o.Key.IsZero() {
		if !validHeaderValue(o.Key.Reveal()) {
			return nil, errors.New("the key holds a byte that cannot stand in a header, such as a line end")
		}
		h.Set("Authorization", "Bearer "+o.Key.Reveal())
	}
	for name, value := range o.Headers {
		if !validHeaderName(name) {
			return nil, fmt.Errorf("header %.40q: not a header name", name)
		}
		if !validHeaderValue(value.Reveal()) {
			return nil, fmt.Errorf("header %s: the value holds a byte that cannot stand in a header", name)
		}
		switch key := http.CanonicalHeaderKey(name); key {
		case "Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection", "Accept", "Accept-Encoding":
			return nil, fmt.Errorf("header %s cannot be set", key)
		case "Authorization":
			if !o.Key.IsZero() {
				return nil, errors.New("both a key and an Authorization header are set")
			}
			h[key] = []string{value.Reveal()}
		default:
			h[key] = []string{value.Reveal()}
		}
	}
	return h, nil
}

func validHeaderName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

func validHeaderValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

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

	"github.com/lathe-run/lathe/internal/httpname"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/openai"
	"github.com/lathe-run/lathe/secret"
)

// Options configure the access to a model server. The zero value uses the vendor's server without a key.
type Options struct {
	// Name is the provider's label in events and metrics. The default is "openai", "anthropic" or "gemini", depending on the wire.
	Name string
	// BaseURL is the URL to which the path of the wire is appended, such as /chat/completions. The default is that of the vendor,
	// such as https://api.openai.com/v1. It includes the API version, which is added on the wires of Anthropic and Google if it
	// is missing (/v1, /v1beta). A URL without a path gets the vendor's path, so http://localhost:11434 works. Any other path is
	// used unchanged; the path of the wire at its end is removed. A query is kept (api-version). A URL that contains a key or a
	// password is an error.
	BaseURL string
	// Key is sent in the header of the wire: as a bearer token, in x-api-key or in x-goog-api-key. With the zero Secret no key
	// is sent.
	Key secret.Secret
	// Headers are sent with each request, in place of a header of the wire with the same name, such as anthropic-version. Their values are
	// Secrets because some servers take the key in a header of their own (api-key). [New] returns an error for the header of Key if Key is
	// set too, and for headers that HTTP or the Chat sets, such as Host and Content-Type.
	Headers map[string]secret.Secret
	// Transport makes the requests. nil: the Chat creates one, which uses the proxies of the environment (HTTPS_PROXY, NO_PROXY) as
	// net/http does. It must close request bodies, as every http.RoundTripper must. Redirects are never followed, so that the key is not
	// sent to another server.
	Transport http.RoundTripper

	Timeouts Timeouts // of a model call: connection, first delta, reads
	Retry    Retry    // of model calls that failed before their first delta
	Server   Server   // what the server supports; the zero value leaves that to its kind
	Limits   Limits   // of what is read from the server
	// MaxTokens is the token limit of requests that have none, on wires that require one; 0: 8192. On other wires it is not used.
	MaxTokens int
	// Entry is stored with the reasoning that this model writes. Reasoning with an Entry is sent only to a model with the same Entry;
	// reasoning without one may be sent to any model.
	Entry string
	// Log receives one debug line for each attempt, with status, kind of failure and request id; nil: no log.
	Log *slog.Logger
}

// Timeouts are the timeouts of one model call. 0 is the default, which the comment of each field states. A negative value disables a
// timeout.
type Timeouts struct {
	// Client is the timeout until the first delta, including all attempts and the pauses between them; default: 120 s. Once a stream has
	// begun, only Read and the caller's context limit it. An answer that is not streamed must be complete within Client.
	Client time.Duration
	// Open is the timeout of an attempt until its connection accepts the request: name resolution, TCP and TLS; default: 10 s.
	Open time.Duration
	// Read is the timeout for the header of the response, and for each further read; default: Client.
	Read time.Duration
	// Loading is the maximum time to wait for a server that answers that it is loading the model; default: 2 min. This time does not count
	// towards Client.
	Loading time.Duration
}

// A Server says what the model server accepts, where that differs from the rules for its kind of server. Requests follow these rules.
type Server struct {
	// Kind names the kind of server, which determines the rules for requests: a name in docs/internals/destinations.md, or a profile of
	// package preset for that server. "" derives the kind from the host of BaseURL or the model's name. For an unknown server only the
	// rules of the wire apply.
	Kind string
	// Accepts overrides single rules, by their names in docs/internals/destinations.md, such as "system": "one".
	Accepts map[string]string
	// ReasoningField is the JSON member in which reasoning is sent back to the model, such as "reasoning_content". "*", the default, stands
	// for the member in which the server sent the reasoning. With "none", no reasoning is sent back.
	ReasoningField string
	// NoUsage says that requests do not contain stream_options.include_usage, which some servers reject.
	NoUsage bool
	// MaxCompletionTokens says that Sampling.MaxTokens is sent as max_completion_tokens, which OpenAI's reasoning models require.
	MaxCompletionTokens bool
	// TopK says that Sampling.TopK is sent as top_k in chat completions. OpenAI itself rejects that member.
	TopK bool
	// Strict selects the tools of [lathe.OwnerServer] that are sent with strict: true, so that the model server constrains the arguments of
	// their calls to the schema. The default selects none. The member strict of a client's own tool is sent in any case.
	Strict StrictTools
	// DropContent omits content of a user that the wire cannot express: audio, video, files, images by reference. By default, a request
	// with such content after the last answer is an error, and ContentMarker replaces the content in older messages.
	DropContent bool
	// ContentMarker is the text that replaces content which the wire cannot express; {type} in it is replaced by the type of the content.
	// The default text says that the content was not sent.
	ContentMarker string
	// NoTools says that the model cannot use tools, NoParallel that it makes at most one call in a turn. See [lathe.ModelInfo].
	NoTools, NoParallel bool
}

// Limits bound what is read from the model server. 0 is the default, which the comment of each field states.
type Limits struct {
	MaxResponseBytes int64 // of one response, decompressed; default: 64 MiB
	MaxErrorBytes    int64 // of the body of an error, whose rest is not read; default: 64 KiB
	MaxLineBytes     int   // of one line of a stream; default: 1 MiB
	MaxEventBytes    int   // of one event of a stream, and of a response that is not a stream; default: 8 MiB
	MaxAnswerBytes   int   // of the text, reasoning and arguments of one answer; default: 32 MiB
	MaxAnswerCalls   int   // number of tool calls of one answer; default: 256
	// MaxContinuations is the maximum number of further requests for one answer that the server interrupts (stop reason pause_turn of
	// Messages); default: 8.
	MaxContinuations int
}

// StrictTools selects the tools that are sent with the member strict set.
type StrictTools string

// The values of StrictTools. They have no effect on the wire of Gemini, which has no member strict.
const (
	StrictOff StrictTools = "" // on none
	// StrictSubset sets strict on each tool whose schema can be reduced to the keywords that the wire's vendor accepts. Arguments are
	// still validated against the whole schema. The omitted keywords are listed as dropped, and so are tools that cannot be strict: for
	// OpenAI a tool with an optional property, for both vendors a tool with an object that allows any members.
	StrictSubset StrictTools = "subset"
	// StrictWhole sets strict on all tools, with their own schemas, for servers that accept every schema, such as vLLM.
	StrictWhole StrictTools = "whole"
)

// wire converts s for the codecs.
func (s StrictTools) wire() (wire.Strict, error) {
	switch s {
	case StrictOff:
		return wire.StrictOff, nil
	case StrictSubset:
		return wire.StrictSubset, nil
	case StrictWhole:
		return wire.StrictWhole, nil
	}
	return 0, fmt.Errorf("no choice of strict %q; there are %q, %q and %q", s, StrictOff, StrictSubset, StrictWhole)
}

// Retry configures how failed model calls are repeated. 0 is the default, which the comment of each field states.
//
// A call is repeated if it failed before its first delta, with status 408, 409, 429 or 5xx or without a response; the server's header
// x-should-retry overrides the status. A call is not repeated if it timed out after it was sent, if the quota of the account is used up, if
// the conversation is too long, or if the pause would exceed Timeouts.Client. A repetition without a feature that the server has refused,
// and the wait for a server that loads the model, do not count as attempts.
type Retry struct {
	Attempts int           // number of attempts, the first included; default: 3; 1: calls are not repeated
	Base     time.Duration // longest first pause, which doubles with each attempt; default: 500 ms
	Max      time.Duration // longest pause, unless the server requests one; default: 8 s
	// MaxAfter is the longest pause that the server may request, in Retry-After or as a time in the error; default: 30 s. If the server
	// requests a longer one, the call ends with an error that contains the requested pause.
	MaxAfter time.Duration
	// Jitter returns a number in [0, 1) by which each pause is multiplied, unless the server requests the pause; default:
	// math/rand/v2.Float64. It may be called from several goroutines at once.
	Jitter func() float64
}

// Defaults and fixed limits.
const (
	defaultClientTimeout    = 120 * time.Second
	defaultOpenTimeout      = 10 * time.Second
	defaultLoadingTimeout   = 2 * time.Minute
	noReasoning             = "none"
	defaultMaxResponseBytes = 64 << 20
	defaultMaxErrorBytes    = 64 << 10

	defaultMaxEvent = 8 << 20  // also of a response that is not a stream
	maxHeaderBytes  = 64 << 10 // of a response's header, with the Chat's own transport
)

// withDefaults returns a copy of o with its zero fields set to their defaults. Disabled timeouts are 0 in the copy.
func (o *Options) withDefaults(codec wire.Upstream) Options {
	var c Options
	if o != nil {
		c = *o
	}
	def(&c.Name, vendors[codec.Wire()])
	def(&c.BaseURL, codec.Vendor().BaseURL)
	def(&c.Timeouts.Client, defaultClientTimeout)
	def(&c.Timeouts.Open, defaultOpenTimeout)
	def(&c.Timeouts.Read, c.Timeouts.Client)
	def(&c.Timeouts.Loading, defaultLoadingTimeout)
	c.Timeouts.Client = max(c.Timeouts.Client, 0)
	c.Timeouts.Open = max(c.Timeouts.Open, 0)
	c.Timeouts.Read = max(c.Timeouts.Read, 0)
	def(&c.Server.ReasoningField, openai.ReasoningSame)
	if c.Server.ReasoningField == noReasoning {
		c.Server.ReasoningField = ""
	}
	def(&c.Retry.Attempts, 3)
	def(&c.Retry.Base, 500*time.Millisecond)
	def(&c.Retry.Max, 8*time.Second)
	def(&c.Retry.MaxAfter, 30*time.Second)
	if c.Retry.Jitter == nil {
		c.Retry.Jitter = rand.Float64
	}
	def(&c.Limits.MaxContinuations, defaultContinuations)
	def(&c.Limits.MaxResponseBytes, defaultMaxResponseBytes)
	def(&c.Limits.MaxErrorBytes, defaultMaxErrorBytes)
	return c
}

// def sets *p to v if it is the zero value.
func def[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// baseURL returns the URL of the server. A key in its query is an error, which does not quote the key.
func baseURL(base string, codec wire.Upstream, model string) (*url.URL, error) {
	u, err := wire.BaseURL(base, codec, model)
	if err != nil {
		return nil, err
	}
	for name := range u.Query() {
		for _, word := range [...]string{"key", "token", "secret", "password", "sig"} {
			if strings.Contains(strings.ToLower(name), word) {
				return nil, errors.New("base URL holds a key in its query: use the key or a header")
			}
		}
	}
	return u, nil
}

// header returns the header that all requests share.
func (o *Options) header(codec wire.Upstream) (http.Header, error) {
	vendor := codec.Vendor()
	keyName := http.CanonicalHeaderKey(vendor.KeyHeader)
	h := http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {"text/event-stream, application/json"},
		"User-Agent":   {"lathe"},
	}
	if vendor.Header != "" {
		h.Set(vendor.Header, vendor.Value)
	}
	if !o.Key.IsZero() {
		if !validHeaderValue(o.Key.Reveal()) {
			return nil, errors.New("the key holds a byte that cannot stand in a header, such as a line end")
		}
		h[keyName] = []string{vendor.KeyPrefix + o.Key.Reveal()}
	}
	for name, value := range o.Headers {
		if !httpname.IsToken(name) {
			return nil, fmt.Errorf("header %.40q: not a header name", name)
		}
		if !validHeaderValue(value.Reveal()) {
			return nil, fmt.Errorf("header %s: the value holds a byte that cannot stand in a header", name)
		}
		switch key := http.CanonicalHeaderKey(name); key {
		case "Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection", "Accept", "Accept-Encoding":
			return nil, fmt.Errorf("header %s cannot be set", key)
		case keyName:
			if !o.Key.IsZero() {
				return nil, fmt.Errorf("both a key and the header %s, which has the key, are set", keyName)
			}
		}
		h.Set(name, value.Reveal())
	}
	return h, nil
}

func validHeaderValue(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}

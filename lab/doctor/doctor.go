// Package doctor examines a model server: it makes a few requests, looks at the answers, and says in plain words what it
// found, what Lathe does about it, and what to set. Of servers that speak OpenAI's chat completions, which differ most, it
// looks at the bytes, with more probes than for the other wires.
//
// [Run] examines, the [Report] holds the probes, the findings and a [Profile]: the keys of a
// configuration with which Lathe reaches that model. [Catalogue] lists every finding there is.
//
// Each request has a limit and a timeout. Keys are in no report and no error.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/plain"
	"github.com/lathe-run/lathe/internal/reconnect"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/internal/wire"
	"github.com/lathe-run/lathe/internal/wire/upstreams"
	"github.com/lathe-run/lathe/secret"
)

// A Target is the model that is examined.
type Target struct {
	// BaseURL is the URL of which the path of the wire is a subpath, such as /chat/completions: see [VendorURL]. A URL
	// without a path gets the path of the vendor's.
	BaseURL string
	// Wire is the protocol of the server; "": chat completions. On another wire the probes of chat completions alone are
	// skipped.
	Wire    lathe.Wire
	Model   string // the server's name of it
	Key     secret.Secret
	Headers map[string]secret.Secret // sent with each request
	// Transport sends the requests; nil: a transport for this examination only.
	Transport http.RoundTripper
	// Overrides are further members of each request for an answer. NoUsage omits
	// stream_options, and MaxCompletionTokens sends the token limit under that name.
	Overrides                    []lathe.Member
	NoUsage, MaxCompletionTokens bool
	// Name is the model's entry in the profile; default: Model.
	Name string
	// Entry are the keys for reaching the model. They are the first lines of the profile.
	Entry []Setting
}

// VendorURL returns the URL of the vendor of a wire; "": there is no such wire.
func VendorURL(w lathe.Wire) string {
	if codec := upstreams.Of(w); codec != nil {
		return codec.DefaultBaseURL()
	}
	return ""
}

// Options bound an examination. A zero field has the default in its comment.
type Options struct {
	Timeout  time.Duration // 60 s; of one request, including its answer
	MaxBytes int           // 8 MiB; of one answer
	// Wait is the pause before a request that failed with 408, 429 or 5xx is repeated, if
	// the server sends no Retry-After, and MaxWait the longest pause; 1 s and 15 s.
	Wait, MaxWait time.Duration
	// MaxTokens bounds each answer; 1024. Some probes set a lower limit.
	MaxTokens int
	// Loading is how long the doctor waits for a server that is loading the model; 2 min.
	Loading time.Duration
	// Quick makes the first probes alone: the list of models, a plain answer, whole and streamed, and a tool call likewise.
	Quick bool
	// Progress is called with the name of each probe before it starts, or with what the probe waits for, its number from 1 on and
	// how many probes there are at most; nil: not called.
	Progress func(probe string, number, of int)
}

// quickProbes is how many of the probes a quick examination makes.
const quickProbes = 5

func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	for _, d := range []struct {
		p   *time.Duration
		def time.Duration
	}{{&c.Timeout, 60 * time.Second}, {&c.Wait, time.Second}, {&c.MaxWait, 15 * time.Second}, {&c.Loading, 2 * time.Minute}} {
		if *d.p <= 0 {
			*d.p = d.def
		}
	}
	if c.MaxTokens <= 0 {
		c.MaxTokens = 1024
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = 8 << 20
	}
	if c.Progress == nil {
		c.Progress = func(string, int, int) {}
	}
	return c
}

// A Report is what an examination found.
type Report struct {
	Model    string    `json:"model"`
	Probes   []Probe   `json:"probes"`   // in the order in which they were made
	Findings []Finding `json:"findings"` // in the order of the catalogue
	Profile  Profile   `json:"profile"`
}

// Broken reports whether something was found that ends runs.
func (r *Report) Broken() bool { return r.Count(Broken) > 0 }

// Count returns how many findings have the severity.
func (r *Report) Count(s Severity) int {
	n := 0
	for i := range r.Findings {
		if r.Findings[i].Severity == s {
			n++
		}
	}
	return n
}

// Find returns the finding of that id.
func (r *Report) Find(id string) (Finding, bool) {
	for _, f := range r.Findings {
		if f.ID == id {
			return f, true
		}
	}
	return Finding{}, false
}

// A Probe is one question to the server, and how it went.
type Probe struct {
	Name     string   `json:"name"`
	Asks     string   `json:"asks"`    // what was tried, in a few words
	Outcome  Severity `json:"outcome"` // the worst of its findings, ok, or skipped
	Why      string   `json:"why,omitempty"`
	Requests int      `json:"requests"`
	Millis   int64    `json:"latency_ms"`
	Findings []string `json:"findings,omitempty"` // ids
}

// UnreachableError says that the server did not answer.
type UnreachableError struct {
	Host    string
	Err     error
	Mistake bool // the address or the certificate is wrong, and Err says what to set
}

// Error names the host, never the path or query of the address.
func (e *UnreachableError) Error() string {
	if e.Mistake {
		return fmt.Sprintf("%s: %v", e.Host, e.Err)
	}
	return fmt.Sprintf("nothing answers at %s: %v", e.Host, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// Run examines the model. opts may be nil. The error is a *[lathe.Error] around an
// *[UnreachableError] when the server cannot be reached at all, around the context's error when it
// ended, or of an address that is none; then there is no report.
func Run(ctx context.Context, t Target, opts *Options) (*Report, error) {
	fail := func(code lathe.Code, err error) (*Report, error) {
		return nil, &lathe.Error{Code: code, Op: "doctor", Err: err}
	}
	x, err := newExaminer(t, opts)
	if err != nil {
		return fail(lathe.CodeInvalidConfig, err)
	}
	defer x.leave()
	list := probes
	if x.opts.Quick {
		list = probes[:quickProbes]
	}
	for i, p := range list {
		x.number, x.probes = i+1, len(list)
		x.run(ctx, p)
		if err := ctx.Err(); err != nil {
			return fail(lathe.CodeCancelled, err)
		}
		if x.unreachable != nil {
			return fail(lathe.CodeUpstream, &UnreachableError{Host: x.base.Scheme + "://" + x.base.Host, Err: x.unreachable, Mistake: x.mistake})
		}
	}
	x.close()
	return x.report, nil
}

// newExaminer prepares an examination. leave closes its connections.
func newExaminer(t Target, opts *Options) (*examiner, error) {
	codec := upstreams.Of(t.Wire)
	if codec == nil {
		return nil, fmt.Errorf("no wire %.40q", t.Wire)
	}
	u, err := wire.BaseURL(t.BaseURL, codec, t.Model)
	if err != nil {
		return nil, err
	}
	if t.Model == "" {
		return nil, errors.New("no model is named")
	}
	x := &examiner{target: t, opts: opts.withDefaults(), codec: codec, base: u, report: &Report{Model: t.Model, Findings: []Finding{}},
		found: map[string]*Finding{}, leave: func() {}, noUsage: t.NoUsage, maxComplete: t.MaxCompletionTokens}
	if x.transport, x.fresh = t.Transport, t.Transport; x.transport == nil {
		own := &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
			ForceAttemptHTTP2:      true,
			MaxResponseHeaderBytes: maxHeaderBytes,
			DisableCompression:     true, // the bytes are looked at as they are
		}
		if u.Scheme == "https" {
			own.DialContext = plain.Dialer(own.DialContext)
		}
		x.leave = own.CloseIdleConnections
		x.transport, x.fresh = own, reconnect.Fresh(own)
	}
	return x, nil
}

const (
	dialTimeout    = 10 * time.Second
	maxHeaderBytes = 64 << 10
	maxDetail      = 240 // bytes of what a finding quotes
	maxTimeouts    = 3   // requests without an answer in time, after which no more are made
)

// An examiner is one examination under way.
type examiner struct {
	target      Target
	opts        Options
	codec       wire.Upstream
	base        *url.URL
	transport   http.RoundTripper
	leave       func()            // closes idle connections of a transport of this examination only
	fresh       http.RoundTripper // opens a connection for each request, unless the transport is the caller's
	report      *Report
	found       map[string]*Finding
	probe       *Probe // under way
	number      int    // of the probe
	probes      int    // that are made at most
	unreachable error  // set: the examination ends
	mistake     bool   // what the address or the certificate shows
	left        *int   // requests that an Asker may make yet; nil: no bound

	// What earlier probes taught.
	connected    bool     // a response came
	listed       []string // the models that the server lists
	answered     bool     // a completion came
	silent       int      // requests without any answer
	timeouts     int
	without      []string // features that the server refuses
	noUsage      bool     // the server refuses stream_options
	maxComplete  bool     // it wants max_completion_tokens
	toolsRefused bool
	nativeCalls  bool           // it has tool calls of its own
	textProbes   []string       // that saw calls in the text
	textCalls    map[string]int // answers with calls that a dialect reads, by dialect
	marked       string         // the dialect that a mark identified
	ownCall      *answer        // an answer with a call, to answer it
	refusedWith  string         // why the server refused a history
	remedies     []remedy       // what a history needs
	mends        []Setting
}

// run makes one probe.
func (x *examiner) run(ctx context.Context, p probe) {
	x.report.Probes = append(x.report.Probes, Probe{Name: p.name, Asks: p.asks, Outcome: OK})
	x.probe = &x.report.Probes[len(x.report.Probes)-1]
	if why := x.skips(p); why != "" {
		x.probe.Outcome, x.probe.Why = Skipped, why
		return
	}
	x.progress(p.name)
	p.run(ctx, x)
	x.decide()
}

func (x *examiner) progress(what string) { x.opts.Progress(what, x.number, x.probes) }

// decide makes the outcome of the probe under way the worst of its findings.
func (x *examiner) decide() {
	for _, id := range x.probe.Findings {
		if s := x.found[id].Severity; rank(s) > rank(x.probe.Outcome) {
			x.probe.Outcome = s
		}
	}
}

// skips returns why a probe has no result.
func (x *examiner) skips(p probe) string {
	switch {
	case p.chatOnly && !x.chat():
		return "not made on the wire " + string(x.codec.Wire())
	case x.timeouts >= maxTimeouts:
		return "too many requests got no answer in time"
	case p.needs >= needsAnswer && !x.answered:
		return "no answer came before"
	case p.needs == needsTools && x.toolsRefused:
		return "the server refuses tools"
	case p.needs == needsRefusal && !x.toolsRefused:
		return "the server takes tools"
	case p.needs == needsKey && x.target.Key.IsZero():
		return "no key is given"
	}
	return ""
}

// chat reports whether the server speaks chat completions.
func (x *examiner) chat() bool { return x.codec.Wire() == lathe.WireOpenAIChat }

// find notes a finding in the probe under way. The details, if any, are shown after what was seen; they may hold
// what the server said.
func (x *examiner) find(id string, details ...string) {
	f := x.found[id]
	if f == nil {
		f = newFinding(id)
		x.found[id] = f
	}
	if detail := strings.Join(details, ""); detail != "" && f.Detail == "" {
		f.Detail = clip(secret.Scrub(detail, x.secrets()...))
	}
	if !slices.Contains(f.Probes, x.probe.Name) {
		f.Probes = append(f.Probes, x.probe.Name)
		x.probe.Findings = append(x.probe.Findings, id)
	}
}

func (x *examiner) secrets() []secret.Secret {
	list := []secret.Secret{x.target.Key}
	for _, v := range x.target.Headers {
		list = append(list, v)
	}
	return list
}

// clip returns a text on one line, at most maxDetail bytes of it.
func clip(s string) string {
	return text.Clip(strings.Join(strings.Fields(s), " "), maxDetail)
}

// close puts the findings into order and writes the profile.
func (x *examiner) close() {
	x.judgeText()
	for _, f := range Catalogue() {
		if got := x.found[f.ID]; got != nil {
			x.report.Findings = append(x.report.Findings, *got)
		}
	}
	x.report.Profile = x.profile()
}

// Package doctor examines a model server: it makes a few requests, checks the responses, and reports in plain words what it found, how
// Lathe handles it, and what to set. For chat completions, the protocol whose servers differ most, it checks the bytes, with more probes
// than for the other protocols.
//
// [Run] examines a server. The [Report] has the probes, the findings and a [Profile]: the configuration with which Lathe can use the model.
// [Catalogue] returns all possible findings.
//
// Each request has a limit and a timeout. Reports and errors never contain keys.
package doctor

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/wire/upstreams"
	"github.com/lathe-run/lathe/secret"
)

// A Target is a model on a server. BaseURL and Model are required.
type Target struct {
	// BaseURL is the URL to which the paths of the protocol are appended, such as /chat/completions. A URL without a path gets that of
	// [VendorURL].
	BaseURL string
	// Wire is the protocol of the server; "": chat completions. For another protocol, probes that apply only to chat completions are
	// skipped.
	Wire    lathe.Wire
	Model   string                   // name of the model on the server
	Key     secret.Secret            // the API key; zero: requests have none
	Headers map[string]secret.Secret // sent with each request
	// Transport sends the requests; nil: a new one.
	Transport http.RoundTripper
	// Overrides are further members of each request. NoUsage says that requests do not contain stream_options. MaxCompletionTokens says
	// that the token limit is sent as max_completion_tokens.
	Overrides                    []lathe.Member
	NoUsage, MaxCompletionTokens bool
	// Name is the name of the model in the profile; "": Model.
	Name string
	// Entry contains the configuration keys that are needed to reach the model; they begin the profile. nil: base_url and model.
	Entry []Setting
}

// VendorURL returns the base URL of the vendor of a protocol; "" if the protocol is unknown or has none.
func VendorURL(w lathe.Wire) string {
	if codec := upstreams.Of(w); codec != nil {
		return codec.Vendor().BaseURL
	}
	return ""
}

// Options limit an examination. A number or time of 0 or less has the default that its comment states.
type Options struct {
	Timeout  time.Duration // of one request with its response; 0: 60 s
	MaxBytes int           // size of one response; 0: 8 MiB
	// Wait is the pause before a request is repeated that failed with 408, 429 or 5xx without Retry-After; 0: 1 s. MaxWait limits each
	// pause; 0: 15 s.
	Wait, MaxWait time.Duration
	// MaxTokens is the maximum number of tokens of each answer; 0: 1,024. Some probes use less.
	MaxTokens int
	// Loading is the maximum time to wait for a server that is loading the model; 0: 2 min.
	Loading time.Duration
	// Quick says that only the first probes are made: the list of models, a plain answer and a tool call, each whole and streamed.
	Quick bool
	// Progress, if not nil, is called before each probe with the name of the probe, its number from 1 and the maximum number of probes.
	// While a probe waits, it is called with the reason in place of the name. It is called on the goroutine of Run.
	Progress func(probe string, number, of int)
}

// quickProbes is the number of probes of a quick examination.
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

// A Report is the result of [Run].
type Report struct {
	Model    string    `json:"model"`
	Probes   []Probe   `json:"probes"`   // in the order in which they were made
	Findings []Finding `json:"findings"` // in the order of the catalogue
	Profile  Profile   `json:"profile"`
}

// Broken reports whether any finding has severity [Broken]: runs would fail.
func (r *Report) Broken() bool { return r.Count(Broken) > 0 }

// Count returns the number of findings with this severity.
func (r *Report) Count(s Severity) int {
	n := 0
	for i := range r.Findings {
		if r.Findings[i].Severity == s {
			n++
		}
	}
	return n
}

// Find returns the finding with this id; false if the report does not have it.
func (r *Report) Find(id string) (Finding, bool) {
	for _, f := range r.Findings {
		if f.ID == id {
			return f, true
		}
	}
	return Finding{}, false
}

// A Probe is one test of the server, with its result.
type Probe struct {
	Name     string   `json:"name"`
	Asks     string   `json:"asks"`               // what is tested, in a few words
	Outcome  Severity `json:"outcome"`            // the worst severity of its findings, ok, or skipped
	Why      string   `json:"why,omitempty"`      // why it was skipped
	Requests int      `json:"requests"`           // number of requests, repeated ones included
	Millis   int64    `json:"latency_ms"`         // milliseconds
	Findings []string `json:"findings,omitempty"` // ids of findings
}

// An UnreachableError says that the server did not respond.
type UnreachableError struct {
	Host    string
	Err     error
	Mistake bool // the URL or the certificate is wrong; Err contains the setting to change
}

// Error returns the host and the cause, without path and query of the URL.
func (e *UnreachableError) Error() string {
	if e.Mistake {
		return fmt.Sprintf("%s: %v", e.Host, e.Err)
	}
	return fmt.Sprintf("nothing answers at %s: %v", e.Host, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// Run examines the model. Findings are no error. The error is a *[lathe.Error]: it wraps an *[UnreachableError] if the server does not
// respond, or the error of ctx or of an invalid URL; the report is nil then. opts may be nil.
func Run(ctx context.Context, t Target, opts *Options) (*Report, error) {
	r, err := newReader(t, opts)
	if err != nil {
		return nil, lathe.CodeInvalidConfig.Wrap("doctor", err)
	}
	defer r.leave()
	x := &examiner{reader: r}
	list := probes
	if x.opts.Quick {
		list = probes[:quickProbes]
	}
	for i, p := range list {
		x.number, x.probes = i+1, len(list)
		x.run(ctx, p)
		if err := ctx.Err(); err != nil {
			return nil, lathe.CodeCancelled.Wrap("doctor", err)
		}
		if x.unreachable != nil {
			return nil, lathe.CodeUpstream.Wrap("doctor", &UnreachableError{Host: x.base.Scheme + "://" + x.base.Host, Err: x.unreachable, Mistake: x.mistake})
		}
	}
	x.judgeText()
	for _, f := range catalogue() {
		if got := x.found[f.ID]; got != nil {
			x.report.Findings = append(x.report.Findings, *got)
		}
	}
	x.report.Profile = x.profile()
	return x.report, nil
}

// maxTimeouts is the number of timeouts after which no more requests are made.
const maxTimeouts = 3

// An examiner is the state of one examination: a reader, which has the client and the findings, and what the probes have learned about the
// server, for later probes. The probes send requests with post, ask or send, and read the responses with read; they record findings with
// find, and settings with mend.
type examiner struct {
	*reader
	listed       []string // models that the server lists
	answered     bool     // the server has sent a completion
	toolsRefused bool     // see refuseTools
	ownCall      *answer  // an answer with a call, for a probe that answers the call
	refusedWith  string   // why the server refused a history
	remedies     []remedy // changes of a history that the server requires
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

// skips returns why a probe must be skipped, or "".
func (x *examiner) skips(p probe) string {
	switch {
	case slices.Contains(chatOnly, p.name) && !x.chat():
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

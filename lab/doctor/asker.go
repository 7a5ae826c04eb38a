package doctor

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/reconnect"
)

// An Asker sends single requests to a model server, as the probes of [Run] do, and reports findings about each response. Only one goroutine
// may use it at a time.
type Asker struct {
	base      *reader
	connected bool
}

// NewAsker returns an Asker for the model t. opts may be nil; only Timeout, MaxBytes, MaxTokens, Wait and MaxWait are used. The error has
// the code invalid_config: the URL or the protocol is not valid. The caller must call Close.
func NewAsker(t Target, opts *Options) (*Asker, error) {
	r, err := newReader(t, opts)
	if err != nil {
		return nil, lathe.CodeInvalidConfig.Wrap("doctor", err)
	}
	return &Asker{base: r}, nil
}

// Close closes idle connections. Ask must not be in progress.
func (a *Asker) Close() { a.base.leave() }

// Limit sets how many more requests Ask may send; a repeated request counts again. When no requests are left, Ask sends nothing and returns
// an Answer with Status 0 and Requests 0.
func (a *Asker) Limit(requests int) { a.base.left = &requests }

// Host returns the origin of the server URL, such as "http://127.0.0.1:11434".
func (a *Asker) Host() string { return a.base.base.Scheme + "://" + a.base.base.Host }

// Wire returns the protocol of the server.
func (a *Asker) Wire() lathe.Wire { return a.base.codec.Wire() }

// An Answer is the result of one [Asker.Ask].
type Answer struct {
	Status int // HTTP status; 0: no response
	// NoConnection says that the server has never responded, to this request or an earlier one.
	NoConnection bool
	TimedOut     bool
	Message      string // error text of the server, if it refused the request
	// Finish is the assembled answer; nil: the response contained none.
	Finish *lathe.Finish
	// Findings are the ids of the findings about the response, as in the [Catalogue].
	Findings []string
	// First is the time until the first byte of the body arrived (0: none arrived), and Elapsed the time until its end.
	First, Elapsed time.Duration
	// Requests is the number of requests that were sent. It is 2 or more if one was repeated, as [Asker.Ask] describes.
	Requests int
	// Sent and Received are the sizes in bytes of all request and response bodies.
	Sent, Received int
}

// adapt records what an error text of the server refuses: max_tokens in place of max_completion_tokens, or stream_options. It reports
// whether the request must be repeated in another form.
func (a *Asker) adapt(words string, stream bool) bool {
	switch x := a.base; {
	case !x.chat():
		return false
	case !x.maxComplete && strings.Contains(words, "max_completion_tokens"):
		x.maxComplete = true
	case stream && !x.noUsage && strings.Contains(words, "stream_options"):
		x.noUsage = true
	default:
		return false
	}
	return true
}

// Ask sends the request and reads the response; it never returns nil. It repeats the request once after status 429 with Retry-After. It
// also repeats it, in another form, if the server requires max_completion_tokens or refuses stream_options.
//
// The model of the target replaces that of req. Overrides of the target are added to those of req, which take precedence. A request without
// a token limit gets MaxTokens of the options.
func (a *Asker) Ask(ctx context.Context, req *lathe.Request, stream bool) *Answer {
	return a.ask(ctx, req, stream, nil)
}

// AskWithoutTools does what [Asker.Ask] does, but sends the request without its tools. It still sends tool_choice.
func (a *Asker) AskWithoutTools(ctx context.Context, req *lathe.Request, stream bool) *Answer {
	// The member has this name in all protocols.
	return a.ask(ctx, req, stream, func(body []byte) []byte { return rawjson.Without(body, "tools") })
}

// ask sends the request. edit changes its body; nil: no change.
func (a *Asker) ask(ctx context.Context, req *lathe.Request, stream bool, edit func([]byte) []byte) *Answer {
	x := a.newReader()
	full, base := *req, x.request("")
	full.Model, full.Overrides = base.Model, slices.Concat(base.Overrides, req.Overrides)
	if full.Sampling.MaxTokens == nil {
		full.Sampling.MaxTokens = base.Sampling.MaxTokens
	}
	out := &Answer{}
	var started time.Time
	send := func() *exchange {
		body := x.body(&full, stream)
		if edit != nil {
			body = edit(body)
		}
		started = time.Now()
		e := x.send(ctx, http.MethodPost, x.callURL(full.Model, stream), body, x.target.Key)
		out.Sent += len(body)
		out.Received += len(e.body)
		return e
	}
	if !x.mayAsk() {
		return out
	}
	e := send()
	if e.status == http.StatusTooManyRequests && e.header.Get("Retry-After") != "" {
		x.find("status-429")
		if x.mayAsk() && reconnect.Wait(ctx, x.wait(e.header)) == nil {
			e = send()
		}
	}
	if e.refused() && x.mayAsk() && a.adapt(e.message(), stream) {
		x.maxComplete, x.noUsage = a.base.maxComplete, a.base.noUsage
		e = send()
	}
	out.First, out.Elapsed = e.first, time.Since(started)
	out.Status, out.TimedOut, out.Message = e.status, e.timedOut, e.message()
	out.NoConnection = e.status == 0 && !e.timedOut && !a.connected
	a.connected = a.connected || e.status != 0
	out.Finish = finishOf(x, e, &full, stream)
	out.Requests, out.Findings = x.probe.Requests, x.probe.Findings
	return out
}

// newReader returns a copy of base with a report of its own, so that Ask returns only the findings about its request.
func (a *Asker) newReader() *reader {
	x := *a.base
	x.report, x.found = &Report{Probes: []Probe{{Name: "ask", Outcome: OK}}}, map[string]*Finding{}
	x.probe = &x.report.Probes[0]
	return &x
}

// finishOf records findings about the last response, and returns the assembled answer, or nil if the response contains no complete one.
func finishOf(x *reader, e *exchange, req *lathe.Request, stream bool) (finish *lathe.Finish) {
	switch {
	case e.status == http.StatusOK:
		answer := x.read(e, req, stream)
		if answer != nil && !answer.failed && !answer.cut {
			finish = answer.fin
		}
		if len(x.textProbes) > 0 {
			x.find("calls-in-text")
		}
	case e.timedOut:
		x.find("hang")
	case e.status == 0:
		x.find("connection-lost")
	case e.status >= 300 && e.status < 400:
		x.find("redirect")
	case isTemporary(e.status):
		x.find(statusID(e.status, "-always"))
	}
	return finish
}

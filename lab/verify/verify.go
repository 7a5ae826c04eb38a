// Package verify measures how well an endpoint calls tools: whether a server of a model does it as the wire promises, and as well
// as another server of the same model. It sends requests with a [doctor.Asker], counts the findings in their answers, and compares by the
// statistics of package eval.
//
// [Run] makes a fixed number of requests, which [Plan] states before. The [Report] has one [Metric] for each property. A request
// that fails lowers one metric: what did not arrive is not judged for its arguments, arguments that are invalid are not judged
// for their exactness, and so on. No request is made again because its answer was wrong.
package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/lab/doctor"
)

// Options say what is asked, and what passes. The zero value is useful.
type Options struct {
	// Trials is how often each check of a contract is made; 4. Checks with cases of their own make each once.
	Trials int
	// Limits bisects how many tools, how large arguments and how long a context the server takes.
	Limits bool
	// MaxTools, MaxArguments and MaxContext are the largest that Limits tries: 512 tools, 1 MiB, 128 KiB.
	MaxTools, MaxArguments, MaxContext int
	// MinRate is the rate below which a metric fails; 0.95. With a reference, a metric that is worse than the reference's by more
	// than noise fails, too.
	MinRate float64
	// Doctor bounds each request. Its MaxTokens is 4096 here.
	Doctor doctor.Options
	// Version is written into the report.
	Version string
	// Progress is called before each request, with how many there were and how many there are at most.
	Progress func(what string, done, of int)
	Now      func() time.Time // time.Now
}

func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	def := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	def(&c.Trials, 4)
	def(&c.MaxTools, 512)
	def(&c.MaxArguments, 1<<20)
	def(&c.MaxContext, 128<<10)
	def(&c.Doctor.MaxTokens, 4096)
	if c.MinRate <= 0 {
		c.MinRate = 0.95
	}
	if c.Progress == nil {
		c.Progress = func(string, int, int) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// A Budget is the most that a verification asks for.
type Budget struct {
	Requests int `json:"requests"`
	// InputTokens is an estimate, at four bytes each. OutputTokens is what the answers may have by their limit; most use far less.
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`
}

// bytesPerToken is what the estimate of a budget goes by.
const bytesPerToken = 4

// requestBytes is about what a request without the texts of limits has.
const requestBytes = 1200

// Plan returns the budget of [Run] with these options, and with a reference or without.
func Plan(opts *Options, reference bool) Budget {
	o := opts.withDefaults()
	one, bytes := 0, 0
	for _, s := range steps {
		if s.limits && !o.Limits {
			continue
		}
		n := s.requests(&o)
		one += n
		bytes += n * requestBytes
		if s.bytes != nil {
			bytes += s.bytes(&o)
		}
	}
	b := Budget{Requests: one, InputTokens: bytes / bytesPerToken}
	if reference {
		b.Requests, b.InputTokens = 2*one+len(triggers), 2*b.InputTokens+len(triggers)*requestBytes/bytesPerToken
	}
	b.OutputTokens = b.Requests * o.Doctor.MaxTokens
	return b
}

// Run measures the target, and with a reference both, one after the other. The error is a *[lathe.Error] around the context's error
// when it ended, around a *[doctor.UnreachableError] when a server cannot be reached, or of an address that is none.
func Run(ctx context.Context, target doctor.Target, reference *doctor.Target, opts *Options) (*Report, error) {
	o := opts.withDefaults()
	rep := &Report{Version: 1, Lathe: o.Version, Started: o.Now().UTC(), Trials: o.Trials, MinRate: o.MinRate, Budget: Plan(opts, reference != nil), Suite: suiteHash()}
	counter := 0
	measure := func(t doctor.Target) (*side, error) {
		asker, err := doctor.NewAsker(t, &o.Doctor)
		if err != nil {
			return nil, err
		}
		defer asker.Close()
		s := &side{asker: asker, opts: &o, tallies: map[string]*Tally{}, deviations: map[string]map[string]int{},
			about: Side{Server: asker.Host(), Model: t.Model, Wire: wireName(asker.Wire())}, made: &counter, of: rep.Budget.Requests}
		for _, step := range steps {
			if step.limits && !o.Limits {
				continue
			}
			s.step = step.name
			step.run(ctx, s)
		}
		if reference != nil && len(rep.sides) == 1 { // the reference against itself
			s.step, s.again = "trigger", true
			askTriggers(ctx, s)
		}
		if err := ctx.Err(); err != nil {
			return nil, &lathe.Error{Code: lathe.CodeCancelled, Op: "verify", Err: err}
		}
		if s.answers == 0 && s.unreached > 0 {
			return nil, &lathe.Error{Code: lathe.CodeUpstream, Op: "verify", Err: &doctor.UnreachableError{Host: asker.Host(), Err: errors.New("no connection")}}
		}
		return s, nil
	}
	for _, t := range []*doctor.Target{&target, reference} {
		if t == nil {
			continue
		}
		s, err := measure(*t)
		if err != nil {
			return nil, err
		}
		rep.sides = append(rep.sides, s)
	}
	rep.finish(&o)
	return rep, nil
}

func wireName(w lathe.Wire) string { return string(w) }

// maxSilent is how many requests in a row may fail without any answer, or be refused for the key, before no more are made.
const maxSilent = 3

// A side is one endpoint under measurement.
type side struct {
	asker *doctor.Asker
	opts  *Options
	about Side
	step  string
	made  *int // requests of both sides
	of    int

	tallies    map[string]*Tally
	deviations map[string]map[string]int // by metric and finding
	called     []trigger                 // by prompt of triggers
	second     []trigger                 // the same asked again
	again      bool
	first      []time.Duration // of streamed answers
	elapsed    []time.Duration
	limits     map[string]Limit
	requests   int
	answers    int // responses of any status
	unreached  int
	dead       int // in a row
	skipped    int // requests that were not made, since the server was dead
	input      int64
	output     int64
}

func (s *side) tally(metric string) *Tally {
	t := s.tallies[metric]
	if t == nil {
		t = &Tally{}
		s.tallies[metric] = t
	}
	return t
}

// count adds one case to a metric.
func (s *side) count(metric string, ok bool) {
	t := s.tally(metric)
	t.N++
	if ok {
		t.OK++
	}
}

// deviate notes what an answer showed.
func (s *side) deviate(metric, id string) {
	if s.deviations[metric] == nil {
		s.deviations[metric] = map[string]int{}
	}
	s.deviations[metric][id]++
}

// An outcome says what a request can be judged for.
type outcome uint8

const (
	unmeasured outcome = iota // no connection was made, or the server was given up
	undelivered
	refused // with a status that says no to the request
	cut     // stopped by the server's limit or filter
	whole
)

// longLine is the length of a line that the doctor calls long.
const longLine = 64 << 10

// ask sends a request and counts what every answer is judged for: that it is accepted, arrives whole, is in the form of the wire,
// ends with the right reason, and counts its tokens. mayRefuse says that a refusal is an answer to the check, not a failure.
func (s *side) ask(ctx context.Context, req *lathe.Request, stream, mayRefuse bool) (*doctor.Answer, outcome) {
	if ctx.Err() != nil || s.dead >= maxSilent {
		s.skipped++
		return &doctor.Answer{}, unmeasured
	}
	s.opts.Progress(s.step, *s.made, s.of)
	a := s.asker.Ask(ctx, req, stream)
	*s.made += a.Requests
	s.requests += a.Requests
	if ctx.Err() != nil {
		return a, unmeasured
	}
	if a.Status == 0 || a.Status == 401 || a.Status == 403 {
		s.dead++
	} else {
		s.dead = 0
	}
	if a.NoConnection {
		s.unreached++
		return a, unmeasured
	}
	s.answers++
	if refusal := a.Status >= 400 && a.Status < 500 && a.Status != 408 && a.Status != 429; refusal {
		if !mayRefuse {
			s.count(metricAccepted, false)
			s.deviate(metricAccepted, fmt.Sprintf("status-%d", a.Status))
		}
		return a, refused
	}
	if !mayRefuse && a.Status != 0 {
		s.count(metricAccepted, true)
	}
	lowered := map[string]bool{}
	limited := false
	huge := a.Finish != nil && slices.ContainsFunc(a.Finish.Message.Calls(), func(c lathe.ToolCall) bool { return len(c.Arguments) > longLine })
	for _, id := range a.Findings {
		if huge && id == "long-line" {
			continue // of the arguments
		}
		if m := metricOf(id); m != "" {
			s.deviate(m, id)
			lowered[m] = true
		}
		limited = limited || id == "length" || id == "content-filter" || id == "rambles"
	}
	if a.Finish == nil && !lowered[metricDelivery] {
		lowered[metricDelivery] = true
		s.deviate(metricDelivery, "not-a-completion")
	}
	s.count(metricDelivery, !lowered[metricDelivery])
	if a.Finish == nil {
		return a, undelivered
	}
	if s.asker.Wire() != lathe.WireOpenAIChat { // chat completions are judged by their bytes
		for _, f := range a.Finish.Faults {
			m := faultMetric(f.Kind)
			if m != "" && !lowered[m] {
				s.deviate(m, f.Kind)
				lowered[m] = true
			}
		}
	}
	for _, m := range []string{metricShape, metricFinish, metricUsage} {
		s.count(m, !lowered[m])
	}
	s.input += a.Finish.Usage.InputTokens
	s.output += a.Finish.Usage.OutputTokens
	if a.Finish.Model != "" {
		s.about.Answered = a.Finish.Model
	}
	if stream {
		s.first, s.elapsed = append(s.first, a.First), append(s.elapsed, a.Elapsed)
	}
	if limited {
		return a, cut
	}
	return a, whole
}

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
	"github.com/lathe-run/lathe/internal/text"
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
	// MaxTokens bounds the tokens in and out of both endpoints, by which [Plan] bounds them, too; 0: by Plan alone.
	MaxTokens int64
	// Progress is called before each request.
	Progress func(Progress)
	Now      func() time.Time // time.Now
}

// Progress says how far a verification is.
type Progress struct {
	Step             string // what is tried
	Requests, Of     int    // how many were made, and the most of the budget
	Tokens, OfTokens int64  // likewise
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
		c.Progress = func(Progress) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Run measures the target, and with a reference both, one after the other. The error is a *[lathe.Error] around the context's error
// when it ended, around a *[doctor.UnreachableError] when a server cannot be reached, or of an address that is none.
func Run(ctx context.Context, target doctor.Target, reference *doctor.Target, opts *Options) (*Report, error) {
	o := opts.withDefaults()
	whole := Plan(opts, reference != nil)
	rep := &Report{Version: 1, Lathe: o.Version, Started: o.Now().UTC(), Trials: o.Trials, MinRate: o.MinRate, Budget: whole, Suite: suiteHash()}
	first, second := o.plans()
	made := Progress{Of: whole.Requests, OfTokens: whole.Tokens}
	for _, one := range []struct {
		target *doctor.Target
		budget Budget
		again  bool // its triggers are asked again, to compare the reference with itself
	}{{&target, first, false}, {reference, second, true}} {
		if one.target == nil {
			continue
		}
		s, err := measure(ctx, *one.target, one.budget.share(whole), one.again, &o, &made)
		if err != nil {
			return nil, err
		}
		rep.sides = append(rep.sides, s)
	}
	rep.finish(&o)
	return rep, nil
}

// measure makes the requests to one endpoint. made counts those of both.
func measure(ctx context.Context, t doctor.Target, budget Budget, again bool, o *Options, made *Progress) (*side, error) {
	asker, err := doctor.NewAsker(t, &o.Doctor)
	if err != nil {
		return nil, err
	}
	defer asker.Close()
	asker.Limit(budget.Requests)
	s := &side{asker: asker, opts: o, tallies: map[string]*Tally{}, deviations: map[string]map[string]int{}, budget: budget, made: made,
		about: Side{Server: asker.Host(), Model: t.Model, Wire: string(asker.Wire())}}
	for _, step := range steps {
		if step.limits && !o.Limits {
			continue
		}
		s.step = step.name
		step.run(ctx, s)
	}
	if again {
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

// maxSilent is how many requests in a row may have no answer that ends in time, or be refused for the key, before no more are made.
const maxSilent = 3

// maxName is the length in bytes to which the name is cut under which a server answers.
const maxName = 200

// Why no more requests are made.
const (
	stoppedSilent   = "silent"
	stoppedRequests = "requests"
	stoppedTokens   = "tokens"
)

// A side is one endpoint under measurement.
type side struct {
	asker *doctor.Asker
	opts  *Options
	about Side
	step  string
	made  *Progress // of both sides

	budget  Budget
	used    int64  // tokens
	stopped string // why no more requests are made

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
	skipped    int // requests that were not made, since the server did not respond or the budget was used up
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
	return s.askBy(ctx, s.asker.Ask, req, stream, mayRefuse)
}

func (s *side) askBy(ctx context.Context, send func(context.Context, *lathe.Request, bool) *doctor.Answer, req *lathe.Request, stream, mayRefuse bool) (*doctor.Answer, outcome) {
	switch {
	case s.stopped != "":
	case s.dead >= maxSilent:
		s.stopped = stoppedSilent
	case s.requests >= s.budget.Requests:
		s.stopped = stoppedRequests
	case s.used+sizeOf(req)+int64(s.opts.Doctor.MaxTokens) > s.budget.Tokens:
		s.stopped = stoppedTokens
	}
	if ctx.Err() != nil || s.stopped != "" {
		s.skipped++
		return &doctor.Answer{}, unmeasured
	}
	s.made.Step = s.step
	s.opts.Progress(*s.made)
	a := send(ctx, req, stream)
	tokens := used(a)
	s.requests, s.used = s.requests+a.Requests, s.used+tokens
	s.made.Requests, s.made.Tokens = s.made.Requests+a.Requests, s.made.Tokens+tokens
	if ctx.Err() != nil {
		return a, unmeasured
	}
	if a.Status == 0 || a.TimedOut || a.Status == 401 || a.Status == 403 {
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
	s.input += min(max(a.Finish.Usage.InputTokens, 0), maxCounted)
	s.output += min(max(a.Finish.Usage.OutputTokens, 0), maxCounted)
	if a.Finish.Model != "" {
		s.about.Answered = text.Clip(text.OneLine(a.Finish.Model), maxName)
	}
	if stream {
		s.first, s.elapsed = append(s.first, a.First), append(s.elapsed, a.Elapsed)
	}
	if limited {
		return a, cut
	}
	return a, whole
}

// Package verify measures how well an endpoint calls tools: whether the server of a model follows its protocol, and does so as well as
// another server of the same model. It sends requests with a [doctor.Asker], counts the findings in their answers, and compares the counts
// with the statistics of package eval.
//
// [Run] makes a fixed number of requests, which [Plan] returns in advance. The [Report] has one [Metric] for each property. A failed
// request lowers only one metric: an answer that was not delivered is not checked for its arguments, invalid arguments are not checked for
// exactness, and so on. No request is repeated because its answer was wrong.
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

// Options configure [Run]. The zero value is usable.
type Options struct {
	// Trials is the number of tests of each [doctor.Contract]; 0: 4. Steps that have their own cases test each case once.
	Trials int
	// Limits says that the verification also finds out, by bisection, how many tools, how large arguments and how long a context the server
	// accepts.
	Limits bool
	// MaxTools, MaxArguments and MaxContext are the largest values that Limits tries; 0: 512 tools, 1 MiB and 128 KiB.
	MaxTools, MaxArguments, MaxContext int
	// MinRate is the rate, from 0 to 1, below which a metric fails; 0: 0.95. A metric also fails if it is worse than that of the reference
	// by more than noise.
	MinRate float64
	// Doctor limits each request. If its MaxTokens is 0, it is 4,096.
	Doctor doctor.Options
	// Version is written into the report.
	Version string
	// MaxTokens is the maximum of input and output tokens at both endpoints together; 0: the budget of [Plan].
	MaxTokens int64
	// Progress, if not nil, is called before each request, on the goroutine of Run.
	Progress func(Progress)
	Now      func() time.Time // nil: time.Now
}

// A Progress is the state of a verification.
type Progress struct {
	Step             string // name of the current step
	Requests, Of     int    // requests so far, and the maximum
	Tokens, OfTokens int64  // tokens so far, and the maximum
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

// Run measures the target and then, if reference is not nil, the reference. A metric that fails is no error. The error is a *[lathe.Error]
// that wraps the error of ctx, a *[doctor.UnreachableError] if a server does not respond, or the error of an invalid URL. opts may be nil.
func Run(ctx context.Context, target doctor.Target, reference *doctor.Target, opts *Options) (*Report, error) {
	o := opts.withDefaults()
	whole := Plan(opts, reference != nil)
	rep := &Report{Version: 1, Lathe: o.Version, Started: o.Now().UTC(), Trials: o.Trials, MinRate: o.MinRate, Budget: whole, Suite: suiteHash()}
	first, second := o.plans()
	made := Progress{Of: whole.Requests, OfTokens: whole.Tokens}
	for _, one := range []struct {
		target *doctor.Target
		budget Budget
		again  bool // the triggers are sent again, to compare the reference with itself
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

// measure makes the requests to one endpoint. made counts the requests to both.
func measure(ctx context.Context, t doctor.Target, budget Budget, again bool, o *Options, made *Progress) (*side, error) {
	asker, err := doctor.NewAsker(t, &o.Doctor)
	if err != nil {
		return nil, err
	}
	defer asker.Close()
	asker.Limit(budget.Requests)
	s := &side{asker: asker, opts: o, tallies: map[string]*Tally{}, deviations: map[string]map[string]int{}, totals: totals{budget: budget}, made: made,
		about: Side{Server: asker.Host(), Model: t.Model, Wire: string(asker.Wire())}}
	for _, step := range steps {
		if step.limits && !o.Limits {
			continue
		}
		s.step = step.name
		step.run(ctx, s)
	}
	if again {
		s.step = "trigger"
		s.second = askTriggers(ctx, s)
	}
	if err := ctx.Err(); err != nil {
		return nil, lathe.CodeCancelled.Wrap("verify", err)
	}
	if s.answers == 0 && s.unreached > 0 {
		return nil, lathe.CodeUpstream.Wrap("verify", &doctor.UnreachableError{Host: asker.Host(), Err: errors.New("no connection")})
	}
	return s, nil
}

// maxSilent is the number of consecutive requests without a complete response in time, or refused because of the key, after which no more
// requests are made.
const maxSilent = 3

// maxName is the number of bytes to which the model name in a response is cut.
const maxName = 200

// Reasons why no more requests are made.
const (
	stoppedSilent   = "silent"
	stoppedRequests = "requests"
	stoppedTokens   = "tokens"
)

// A side is the state of the measurement of one endpoint. The steps send requests by [side.ask] and add cases and deviations.
type side struct {
	asker *doctor.Asker
	opts  *Options
	about Side
	step  string    // name of the current step; measure sets it
	made  *Progress // progress of both sides

	totals
	tallies    map[string]*Tally
	deviations map[string]map[string]int // metric → finding → number of answers
	limits     map[string]*Limit
	called     []trigger // by index in triggers
	second     []trigger // of the second time; nil for the target
}

// totals counts the requests to one endpoint. Only side.askBy and the methods that it calls change it.
type totals struct {
	budget    Budget
	used      int64  // tokens used so far
	stopped   string // why no more requests are made
	requests  int
	answers   int // responses with any status
	unreached int
	dead      int // consecutive requests without a usable response, see maxSilent
	skipped   int // requests that were not made, because the server did not respond or the budget was used up
	input     int64
	output    int64
	first     []time.Duration // times of streamed answers to the first byte
	elapsed   []time.Duration // to the end
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

// check adds one case to a metric, and counts the deviation id if the case failed.
func (s *side) check(metric, id string, ok bool) {
	s.count(metric, ok)
	if !ok {
		s.deviate(metric, id)
	}
}

// deviate counts a deviation in an answer.
func (s *side) deviate(metric, id string) {
	if s.deviations[metric] == nil {
		s.deviations[metric] = map[string]int{}
	}
	s.deviations[metric][id]++
}

// An outcome determines which properties of an answer can be checked.
type outcome uint8

const (
	unmeasured outcome = iota // no connection, or no more requests are made
	undelivered
	refused // refused with a status about the request
	cut     // truncated by a limit or filter of the server
	whole
)

// longLine is the length of a line above which the doctor reports long-line.
const longLine = 64 << 10

// A mode says how a request is sent.
type mode struct {
	stream    bool
	mayRefuse bool // a refusal is a valid result, not a failure
}

// ofTrial returns the mode of trial i of a feature that the server may refuse.
func ofTrial(i int) mode { return mode{stream: i%2 == 0, mayRefuse: true} }

// ask sends a request and counts the properties that every answer must have: it is accepted, complete, in the form of the protocol, ends
// with the correct reason, and has usage.
func (s *side) ask(ctx context.Context, req *lathe.Request, m mode) (*doctor.Answer, outcome) {
	return s.askBy(ctx, s.asker.Ask, req, m)
}

// stop sets the reason to stop if a limit forbids the next request.
func (s *side) stop(next *lathe.Request) {
	switch {
	case s.stopped != "":
	case s.dead >= maxSilent:
		s.stopped = stoppedSilent
	case s.requests >= s.budget.Requests:
		s.stopped = stoppedRequests
	case s.used+sizeOf(next)+int64(s.opts.Doctor.MaxTokens) > s.budget.Tokens:
		s.stopped = stoppedTokens
	}
}

// askBy is ask with another method of the asker.
func (s *side) askBy(ctx context.Context, send func(context.Context, *lathe.Request, bool) *doctor.Answer, req *lathe.Request, m mode) (*doctor.Answer, outcome) {
	s.stop(req)
	if ctx.Err() != nil || s.stopped != "" {
		s.skipped++
		return &doctor.Answer{}, unmeasured
	}
	s.made.Step = s.step
	s.opts.Progress(*s.made)
	a := send(ctx, req, m.stream)
	tokens := used(a)
	s.requests, s.used = s.requests+a.Requests, s.used+tokens
	s.made.Requests, s.made.Tokens = s.made.Requests+a.Requests, s.made.Tokens+tokens
	if ctx.Err() != nil {
		return a, unmeasured
	}
	return a, s.countResponse(a, m)
}

// countResponse counts whether the server responded and accepted the request, and the properties of the answer.
func (s *side) countResponse(a *doctor.Answer, m mode) outcome {
	if a.Status == 0 || a.TimedOut || a.Status == 401 || a.Status == 403 {
		s.dead++
	} else {
		s.dead = 0
	}
	if a.NoConnection {
		s.unreached++
		return unmeasured
	}
	s.answers++
	isRefused := a.Status >= 400 && a.Status < 500 && a.Status != 408 && a.Status != 429
	if !m.mayRefuse && a.Status != 0 {
		s.check(metricAccepted, fmt.Sprintf("status-%d", a.Status), !isRefused)
	}
	if isRefused {
		return refused
	}
	limited := s.countAnswer(a)
	if a.Finish == nil {
		return undelivered
	}
	s.input += counted(a.Finish.Usage.InputTokens)
	s.output += counted(a.Finish.Usage.OutputTokens)
	if a.Finish.Model != "" {
		s.about.Answered = text.Clip(text.OneLine(a.Finish.Model), maxName)
	}
	if m.stream {
		s.first, s.elapsed = append(s.first, a.First), append(s.elapsed, a.Elapsed)
	}
	if limited {
		return cut
	}
	return whole
}

// countAnswer counts the delivery of an answer and, if it was delivered, its form, finish reason and usage. It reports whether a limit or
// filter of the server truncated the answer.
func (s *side) countAnswer(a *doctor.Answer) (limited bool) {
	lowered := map[string]bool{} // metrics for which the answer is a failed case
	huge := a.Finish != nil && slices.ContainsFunc(a.Finish.Message.Calls(), func(c lathe.ToolCall) bool { return len(c.Arguments) > longLine })
	for _, id := range a.Findings {
		if huge && id == "long-line" {
			continue // the arguments make the line long
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
		return limited
	}
	if s.asker.Wire() != lathe.WireOpenAIChat { // chat completions are checked by their bytes
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
	return limited
}

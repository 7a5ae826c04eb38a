package enginetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// An Engine is an engine in [Conform]: it executes the runs of one scenario in one process at a time. Its processes are made of the hosts
// of the scenario's [Environment]. One goroutine calls its methods.
type Engine interface {
	// Start starts a run and returns its id.
	Start(ctx context.Context, in *loop.Input) (string, error)
	// Answer stores the answer to the request for approval of a call.
	Answer(ctx context.Context, runID, callID, digest string, a *approval.Answer) error
	// Result stores the result of a client's tool.
	Result(ctx context.Context, runID, callID string, out lathe.Output) error
	// Cancel requests the end of a run.
	Cancel(ctx context.Context, runID string) error
	// Resume resumes a run that is parked, `interrupted`.
	Resume(ctx context.Context, runID string) error
	// Await blocks until the run has ended or waits, and its log has events after the given one. It returns the state of the run.
	Await(ctx context.Context, runID string, after int64) (*loop.State, error)
	// Restart replaces the process by another one. If kill is set, it first calls [Host.Kill]: what the process was doing is lost.
	Restart(ctx context.Context, kill bool) error
	// Store is the store of the runs.
	Store() store.RunIndex
	// Close ends the process. No goroutine of the engine is left.
	Close()
}

// ConformOptions configure [Conform]. Open is required.
type ConformOptions struct {
	// Open returns the engine with its first process, for one scenario. The test is that of the scenario.
	Open func(t *testing.T, s *Environment) Engine
	// RealTime is for an engine outside of the test process: its scenarios do not run in a synctest bubble.
	RealTime bool
}

// Conform tests that an engine executes runs as every engine does. It runs each scenario: a client starts a run, answers it, cancels it,
// or the process of the engine is lost. After each scenario [History.Check] must find nothing, and the events of the run must be
// those of [engine.Supervisor] on a store in memory, apart from the ids of runs, times, digests of approvals, and who executes the run.
//
// A scenario takes as long as its limits, up to 15 s. In a bubble that time is simulated.
func Conform(t *testing.T, opts *ConformOptions) {
	t.Helper()
	for i := range scenarios {
		sc := &scenarios[i]
		t.Run(strings.ReplaceAll(sc.name, " ", "_"), func(t *testing.T) {
			reference := sc.runIn(t, &ConformOptions{Open: func(t *testing.T, s *Environment) Engine { return Supervised(t, s, store.NewMemory(nil), nil) }})
			got := sc.runIn(t, opts)
			if !t.Failed() && got != reference {
				t.Errorf("the events differ from those of the supervisor:\n%s", difference(reference, got))
			}
		})
	}
}

// runIn plays the scenario once and returns the events of its runs.
func (sc *scenario) runIn(t *testing.T, opts *ConformOptions) (events string) {
	t.Helper()
	do := func(t *testing.T) {
		p := &execution{T: t, environment: newEnvironment(sc)}
		p.engine = opts.Open(t, p.environment)
		defer p.engine.Close()
		sc.client(p)
		events = p.check()
	}
	if opts.RealTime {
		do(t)
	} else {
		synctest.Test(t, do)
	}
	return events
}

// An execution executes one scenario as the client of its runs. start begins the next run; the other methods are about the last one.
type execution struct {
	*testing.T
	environment *Environment
	engine      Engine
	runs        []RunLog
	id          string      // of the last run
	state       *loop.State // of the last run, as Await returned it
	unordered   bool        // calls run in parallel, and the order of their events differs each time
}

func (p *execution) must(what string, err error) {
	p.Helper()
	if err != nil {
		p.Fatalf("%s: %v", what, err)
	}
}

// start starts a run from the messages, or from the name of the scenario.
func (p *execution) start(messages ...lathe.Message) {
	p.Helper()
	if messages == nil {
		messages = []lathe.Message{lathe.User(p.environment.scenario.name)}
	}
	script := &p.environment.scenario.script
	limits := script.Limits
	in := &loop.Input{Run: lathe.RunInfo{SessionID: "session", Principal: "ann"}, Messages: messages, ClientTools: clientTools(),
		Settings: &lathe.Settings{MaxParallel: script.Parallel}, Limits: &limits, Park: true}
	id, err := p.engine.Start(p.Context(), in)
	p.must("start", err)
	p.id, p.state = id, &loop.State{}
	p.runs = append(p.runs, RunLog{ID: id, Acked: true, Limits: limits})
}

// await waits until the run has ended or waits again, for the reason.
func (p *execution) await(want lathe.Reason) {
	p.Helper()
	s, err := p.engine.Await(p.Context(), p.id, p.state.LastID)
	p.must("await", err)
	p.state = s
	reason := s.Paused
	if s.Finished != nil {
		reason = s.Finished.Reason
	}
	if reason != want {
		p.Fatalf("the run has ended or waits: %s, want %s", reason, want)
	}
}

// answer answers the request for approval of a call.
func (p *execution) answer(callID string, a approval.Answer) {
	p.Helper()
	i := slices.IndexFunc(p.state.Open, func(o loop.OpenCall) bool { return o.ID == callID && o.Asked })
	if i < 0 {
		p.Fatalf("%s does not wait for an approval", callID)
	}
	a.By = "bob"
	p.must("answer", p.engine.Answer(p.Context(), p.id, callID, p.state.Open[i].Digest, &a))
}

// results compares the results that the model received with want, in order: the id of the call and its code, such as "c1_0 ok".
func (p *execution) results(want ...string) {
	p.Helper()
	var got []string
	for _, m := range p.state.Messages {
		for _, part := range m.Parts {
			if r, ok := part.(lathe.ToolResult); ok {
				got = append(got, r.CallID+" "+resultCode(r))
			}
		}
	}
	if !slices.Equal(got, want) {
		p.Errorf("results %q, want %q", got, want)
	}
}

func resultCode(r lathe.ToolResult) string {
	if r.Code == "" {
		return "ok"
	}
	return string(r.Code)
}

// countDeeds returns how often a call was executed. All its executions have the same idempotency key, which no other call has.
func (p *execution) countDeeds(callID string) int {
	p.Helper()
	key, n := "", 0
	for _, d := range p.environment.world.deedsOf(p.id) {
		switch {
		case d.Key == "":
			p.Errorf("%s has no idempotency key", d.CallID)
		case d.CallID == callID:
			key = d.Key
			n++
		}
	}
	if n == 0 {
		return 0
	}
	for _, d := range p.environment.world.allDeeds() {
		isOther := d.RunID != p.id || d.CallID != callID
		if isOther && d.Key == key {
			p.Errorf("%s and %s have one idempotency key", callID, d.CallID)
		}
	}
	return n
}

// check checks the history of the scenario and returns the events of its runs.
func (p *execution) check() string {
	p.Helper()
	h := &History{Deeds: p.environment.world.allDeeds(), Tools: map[string]Tool{}}
	for name, effect := range environmentEffects {
		h.Tools[name] = Tool{Effect: effect, Asks: asks(name)}
	}
	var lines []string
	for i := range p.runs {
		r := &p.runs[i]
		for e, err := range p.engine.Store().Read(p.Context(), r.ID, 0) {
			p.must("read", err)
			r.Events = append(r.Events, e)
			lines = append(lines, p.normalise(&e))
		}
		rows, _, err := p.engine.Store().Runs(p.Context(), &store.RunFilter{RunID: r.ID})
		p.must("index", err)
		if len(rows) == 1 {
			r.Row = &rows[0]
		}
		r.Asked = -1
		h.Runs = append(h.Runs, *r)
		h.Tails = append(h.Tails, p.environment.tail(r.ID))
	}
	for _, v := range h.Check() {
		p.Error(v)
	}
	if p.unordered {
		slices.Sort(lines)
	}
	return strings.Join(lines, "")
}

// volatile are the members, and token the parts of texts, that differ in each execution of a run.
var (
	volatile = []string{"time", "run_id", "request_id", "latency_ms", "first_token_ms", "expires_at", "args_digest", "started_from", "child_run_id", "executor"}
	token    = regexp.MustCompile(`\[\[secret:[^\]]*\]\]`)
)

// normalise returns the event in one line, with its content and without what differs in each execution.
func (p *execution) normalise(e *event.Event) string {
	p.Helper()
	line, err := e.MarshalJSON()
	p.must("encode", err)
	var v map[string]any
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	p.must("decode", d.Decode(&v))
	if p.unordered {
		delete(v, "event_id")
	}
	out, err := json.Marshal(strip(v))
	p.must("encode", err)
	return e.Data.EventType() + " " + string(token.ReplaceAll(out, []byte("[[secret]]"))) + "\n"
}

// strip removes the volatile members of a decoded event.
func strip(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if slices.Contains(volatile, name) {
				delete(v, name)
			} else {
				v[name] = strip(member)
			}
		}
	case []any:
		for i := range v {
			v[i] = strip(v[i])
		}
	}
	return v
}

// difference describes the first line in which two different logs differ.
func difference(want, got string) string {
	wantLines, gotLines := strings.SplitAfter(want, "\n"), strings.SplitAfter(got, "\n")
	i := 0
	for i < max(len(wantLines), len(gotLines)) && lineAt(wantLines, i) == lineAt(gotLines, i) {
		i++
	}
	a, b := lineAt(wantLines, i), lineAt(gotLines, i)
	from := 0
	for from < min(len(a), len(b)) && a[from] == b[from] {
		from++
	}
	excerpt := func(line string) string { return line[max(0, from-100):min(len(line), from+300)] }
	return fmt.Sprintf("event %d, wanted\n%s\nand got\n%s\nof these events\n%s", i+1, excerpt(a), excerpt(b), types(got))
}

// lineAt returns a line of a log, or a text that says that the log ends before it.
func lineAt(lines []string, i int) string {
	if i < len(lines) && lines[i] != "" {
		return lines[i]
	}
	return "(the log ends)\n"
}

// types returns the types of the events of a log.
func types(log string) string {
	var out []string
	for line := range strings.Lines(log) {
		name, _, _ := strings.Cut(line, " ")
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

// waitFor returns an error if the event of the environment does not happen within a minute.
func waitFor(happened <-chan struct{}, what string) error {
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	select {
	case <-happened:
		return nil
	case <-timer.C:
		return fmt.Errorf("%s does not happen", what)
	}
}

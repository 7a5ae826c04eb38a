package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// Clients and their libraries send a request again when it fails or when the connection breaks. The run of the
// first request may have called a tool that writes. So that a retry does not have it called again:
//
//   - Before the first such call of a run, the gateway records in the store that this run answers the request.
//     The request is known by a digest. See [tracked].
//   - A request that finds a record, and whose run is active, waits for the end of that run and gets its answer. If
//     the run has ended with an answer that no client received, the request gets that answer. See [Server.awaitAttached].
//   - If the run failed, or was cancelled because its client left, a new run continues it: the new run takes over the
//     calls and their results, and asks the model next. See [Server.takeOver].
//   - Of several requests that arrive before such a record, one gets it. The run of another one ends before its first call
//     that may write, and its request attaches to the run of the record. See [chatHandler.answer].
//   - When a client has received the answer, the gateway marks the record as delivered. A delivered record matches
//     only requests that arrived before the delivery.
//
// The id of a run that continues another one is derived from the id of the other. So the store, which takes one
// first event for each run id, decides which of several processes continues the run; the others attach.

// newRunHeader is the header of a request that is to start a run of its own, whatever was asked before.
const newRunHeader = "X-Lathe-New-Run"

// A tracked request is one whose run may call tools that write. It is a sink of its run.
type tracked struct {
	earlier *earlierRuns
	digest  store.RequestDigest
	arrived time.Time
	// mayWrite reports whether a call to the tool, by its name in events, may do more than read.
	mayWrite func(tool string) bool
	// durable is set where the run does not end with its client or its process: it is recorded at its start.
	durable bool
	fresh   bool // the client asks for a new run
	before  bool // the request came before the answer was delivered
	// continued counts the runs that the run continues, each the one before, and failed is the code of the last one's failure.
	continued int
	failed    string

	// Of the run, by its goroutine.
	start    int // messages of the request
	executed map[string]bool
	stored   bool // the log has an event after the record was made

	mu     sync.Mutex
	runID  string // of the record; "": nothing is recorded
	unsure bool   // the store could not say whether there is a record
	looked bool   // the store has said which record there is
	known  string // the run of that record, which does not answer the request; "": there was none
	outrun bool   // another run has recorded that it answers the request
	cancel func() // ends the run
}

var _ engine.Recorder = (*tracked)(nil)

// asksAnew reports whether the request is to have a run of its own, whatever was asked before.
func asksAnew(r *http.Request) (bool, *problem) {
	switch given := r.Header.Values(newRunHeader); {
	case len(given) == 0:
		return false, nil
	case len(given) == 1 && (given[0] == "true" || given[0] == "false"):
		return given[0] == "true", nil
	}
	return false, badRequest(newRunHeader, "%s may be true or false.", newRunHeader)
}

// trackChat has a repetition of the request looked for, unless no tool that may write is offered, or the window is
// closed.
func (h *planner) trackChat(a *chat) {
	c := a.caller
	if h.opts.Limits.RetryWindow < 0 || !c.offersWrites(&a.settings, a.in.Allow) {
		return
	}
	a.job.track = &tracked{earlier: h.earlier, digest: store.RequestDigest(a.digest()), arrived: c.arrived, mayWrite: c.setup.mayWrite,
		durable: a.job.due == nil, fresh: a.fresh, runID: a.job.follow}
}

// offersWrites reports whether a run under these settings may call a tool of this server that may write.
func (c *access) offersWrites(s *lathe.Settings, allow []string) bool {
	return offersTool(c, s, allow, func(t *lathe.ToolSpec) bool { return t.Effect != lathe.ReadOnly })
}

// offersTool reports whether a run of the caller under these settings may call a tool of this server of the kind.
func offersTool(c *access, s *lathe.Settings, allow []string, kind func(*lathe.ToolSpec) bool) bool {
	return s.ToolUseMode != lathe.ModeDisabled && s.Executor != lathe.ExecutorNoop && c.hasTool(allow, kind)
}

// hasTool reports whether the caller has a tool of this server of the kind, among those that allow names; nil: all.
func (c *access) hasTool(allow []string, kind func(*lathe.ToolSpec) bool) bool {
	return c.setup.Tools != nil && slices.ContainsFunc(c.setup.Tools.Specs(), func(t *lathe.ToolSpec) bool {
		return kind(t) && t.For(c.key.Name, c.key.Profile) && (allow == nil || slices.Contains(allow, t.Name))
	})
}

// Record implements [engine.Recorder].
func (t *tracked) Record(ctx context.Context, e event.Event) error { return t.take(ctx, &e) }

// Emit implements [event.Sink].
func (t *tracked) Emit(ctx context.Context, e event.Event) {
	if t.take(ctx, &e) != nil { // of an engine without a store, which does not call Record
		t.cancel()
	}
	switch d := e.Data.(type) {
	case *event.RunStarted:
		t.start = len(d.Messages) - d.TakenOver
	case *event.ToolCallExecuted:
		if t.executed == nil {
			t.executed = map[string]bool{}
		}
		t.executed[d.ToolCallID] = true
	default: // nothing that a run which continues this one needs
	}
	if !event.IsDelta(e.Data) && e.ID > 0 && !t.stored {
		t.stored = t.recorded()
	}
	res := loop.Ended(e.Data)
	switch {
	case res == nil || !t.recorded():
	case !t.stored && t.runID != e.RunID: // the record is that of the run that this one was to continue: it stays
	case !t.stored: // the store took the record, and then not the run
		t.withdraw(ctx)
	default:
		t.earlier.results.put(e.RunID, res, t.start, t.earlier.opts.Now(), t.executed)
	}
}

// withdraw has no repetition find the run.
func (t *tracked) withdraw(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliverTimeout)
	defer cancel()
	if err := t.earlier.requests.DeliverRequest(ctx, t.digest, t.runID, time.Now()); err != nil {
		t.earlier.opts.Log.Warn("the record of a request could not be withdrawn: a repetition is refused", "run_id", t.runID, "code", lathe.CodeOf(err))
	}
	t.forget()
}

// take records the run at its first event, or before its first call that may write.
func (t *tracked) take(ctx context.Context, e *event.Event) error {
	switch d := e.Data.(type) {
	case *event.RunStarted, *event.RunResumed:
		if !t.durable {
			return nil
		}
	case *event.ToolCallPlanned:
		if !t.mayWrite(d.Tool) {
			return nil
		}
	default:
		return nil
	}
	return t.record(ctx, e.RunID)
}

// record records that the run answers the request, once.
func (t *tracked) record(ctx context.Context, runID string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runID != "" {
		return nil
	}
	for range maxReplaced {
		if !t.looked { // the request asks for a new run, or the store did not answer when it arrived
			r, err := t.earlier.requests.FindRequest(ctx, t.digest)
			if err != nil && lathe.CodeOf(err) != lathe.CodeNotFound {
				return err
			}
			t.known = r.RunID
			if t.outrun = t.unsure && !t.fresh && err == nil && !r.Delivered; t.outrun {
				break
			}
		}
		err := t.earlier.requests.PutRequest(ctx, t.digest, runID, t.known)
		if err == nil {
			t.runID = runID
			return nil
		}
		if lathe.CodeOf(err) != lathe.CodeConflict {
			return err
		}
		if t.outrun = t.looked; t.outrun {
			break
		}
	}
	return &lathe.Error{Code: lathe.CodeInternal, Op: "gateway: record the request", Err: fmt.Errorf("another run answers the request: %w", engine.ErrSuperseded)}
}

// maxReplaced bounds how often a run whose request asks for a new run tries to replace a record that others replace.
const maxReplaced = 100

// lost reports whether another run has recorded that it answers the request.
func (t *tracked) lost() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.outrun
}

// found notes the run of the record that there is, which does not answer the request; "": there is none.
func (t *tracked) found(runID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looked, t.known, t.outrun = true, runID, false
}

// recorded reports whether a repetition of the request finds the run.
func (t *tracked) recorded() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.runID != ""
}

// deliver has write send the last bytes of the answer, and marks the record as delivered if they were written without an
// error. ctx is that of the request: an answer is not delivered if the client had left before the write began, since a kernel
// accepts a small write after that. What ctx is afterwards says nothing: net/http cancels it when a client that has read the
// whole answer closes its connection. That a run waits is no answer.
func (t *tracked) deliver(ctx context.Context, res *event.Result, write func() error) error {
	if !t.recorded() || res.Reason.Status() == "parked" {
		return write()
	}
	er := t.earlier
	defer er.deliveries.begin(t.digest)()
	began, left := time.Now(), ctx.Err() != nil
	if err := write(); err != nil || left {
		return err
	}
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliverTimeout)
	defer cancel()
	if err := er.requests.DeliverRequest(own, t.digest, t.runID, began); err != nil {
		er.opts.Log.Warn("the delivery of an answer could not be recorded: the same request gets the same answer", "run_id", t.runID, "code", lathe.CodeOf(err))
	}
	return nil
}

// deliverTimeout bounds the record of a delivery.
const deliverTimeout = 5 * time.Second

// permit lifts the advice not to retry from the failure of a run that a retry continues. The model server has failed in the same
// way in all of maxRepeatedFailures runs, with all attempts of each: then the status is one that clients do not retry by
// themselves, or each of their retries would be multiplied by those attempts.
func (t *tracked) permit(res *event.Result, p *problem) {
	if p == nil || !t.recorded() || res.Reason != lathe.ReasonUpstreamError && res.Reason != lathe.ReasonInterrupted {
		return
	}
	if p.NoRetry = false; p.OfUpstream && p.Status >= 500 && t.failed == p.Code && t.continued+1 >= maxRepeatedFailures {
		p.Status, p.NoRetry = http.StatusBadRequest, true
		p.Message += " It has done so in " + strconv.Itoa(t.continued+1) + " runs of this request. The same request continues the last one."
	}
}

// maxRepeatedFailures is the number of runs, each of which continues the one before, after whose failure clients are not to retry.
const maxRepeatedFailures = 3

// deliveries are requests whose answers are being sent. The zero value has none.
type deliveries struct {
	mu     sync.Mutex
	active map[store.RequestDigest]*delivery
}

// A delivery stands for all that are under way for equal requests. nil stands for none.
type delivery struct {
	count int
	over  chan struct{}
}

// begin notes a delivery until end is called.
func (d *deliveries) begin(digest store.RequestDigest) (end func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.active == nil {
		d.active = map[store.RequestDigest]*delivery{}
	}
	one := d.active[digest]
	if one == nil {
		one = &delivery{over: make(chan struct{})}
		d.active[digest] = one
	}
	one.count++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if one.count--; one.count == 0 {
			delete(d.active, digest)
			close(one.over)
		}
	}
}

// of returns the delivery that is under way for a request; nil: none.
func (d *deliveries) of(digest store.RequestDigest) *delivery {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.active[digest]
}

// wait waits for the end of the delivery, until ctx is done. It reports whether there was one.
func (d *delivery) wait(ctx context.Context) bool {
	if d == nil {
		return false
	}
	select {
	case <-d.over:
	case <-ctx.Done():
	}
	return true
}

package server

import (
	"context"
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

// Clients and their libraries send a request again when it fails or when the connection breaks. The run of the first
// request may already have called a tool that writes. A retry must not cause that call again:
//
//   - Before the first such call of a run, the gateway records in the store that this run answers the request.
//     The request is identified by a digest. See [tracked].
//   - If a request finds a record whose run is active, it waits for the end of that run and gets its answer. If the
//     run has ended with an answer that no client received, the request gets that answer. See [earlierRuns.answerRepeated].
//   - If the run failed, or was cancelled because its client left, a new run continues it: the new run takes over the
//     calls and their results, and calls the model next. See [earlierRuns.takeOver].
//   - If several requests arrive before there is a record, the run of one of them is recorded. The runs of the others end
//     before their first call that may write, and those requests attach to the recorded run. See [runStarter.stream].
//   - When a client has received the answer, the gateway marks the record as delivered. A delivered record matches
//     only requests that arrived before the delivery.
//
// The id of a run that continues another run is derived from the id of that run. The store accepts only one first event for
// each run id. So if several processes continue the same run, one succeeds, and the requests of the others attach to its
// run.

// newRunHeader is the request header that requires a new run, even if an equal request has one.
const newRunHeader = "X-Lathe-New-Run"

// A tracked is a request whose run may call tools that write. It is a sink of that run, and records the run in the store.
type tracked struct {
	earlier  *earlierRuns
	caller   *caller
	messages []lathe.Message // of the request
	digest   store.RequestDigest
	// durable is set if the run continues when its client leaves or its process stops. Such a run is recorded at its start.
	durable       bool
	requiresNew   bool // the client requires a new run
	arrivedBefore bool // the request arrived before the answer of the earlier run was delivered; set by the lookup
	// continued is the number of runs in the chain that the run continues. failed is the error code of the last of them;
	// "": it did not fail.
	continued int
	failed    string
	cancel    func() // cancels the run; set before the run begins

	// Only the goroutine of the run uses these fields.
	start    int // number of messages of the request
	executed map[string]bool
	stored   bool // the log of the run has an event that was stored after the record was made

	// mu guards the fields below. Only one goroutine at a time changes runID: that of the run while the run is active, else that of
	// the request. Emit, withdraw, deliver and markDelivered are called on that goroutine, so they read runID without mu.
	mu sync.Mutex

	// The record of the request. The request is in the first of these states that applies:
	//
	//   - Answered (runID is set): record made the record of the new run; or the lookup called answeredBy with the run that answers
	//     the request, or that the new run continues; or the request attached to a run from the beginning. record does nothing.
	//   - Lost (outrun is set): record found that another run answers the request. A lookup that does not fail ends this state.
	//   - Looked up (looked is set): the lookup called found, so no earlier run answers the request. record replaces the record of
	//     known.
	//   - Not looked up: the client requires a new run, or the lookup called lookupFailed, which sets unsure. record looks up known.
	//
	// forget changes the state from answered to looked up, so that the next run replaces the record.
	looked bool   // the record was looked up, so known is valid
	known  string // the run of the stored record, which does not answer this request; "": there is no record
	unsure bool   // the lookup of a record failed, so there may be one
	runID  string // the recorded run, which answers the request; "": no record was made
	outrun bool   // a record of another run, which answers the request, exists
}

var _ engine.Recorder = (*tracked)(nil)

func asksAnew(r *http.Request) (bool, *problem) {
	switch given := r.Header.Values(newRunHeader); {
	case len(given) == 0:
		return false, nil
	case len(given) == 1 && (given[0] == "true" || given[0] == "false"):
		return given[0] == "true", nil
	}
	return false, badRequest(newRunHeader, "%s may be true or false.", newRunHeader)
}

// trackChat sets a.job.track, so that an earlier run of an equal request is looked up and the new run is recorded. It does
// nothing if no tool that may write is offered, or if RetryWindow is negative.
func (h *planner) trackChat(a *chat) {
	c := a.caller
	if h.opts.Limits.RetryWindow < 0 || !c.offersWrites(&a.settings, a.in.Allow) {
		return
	}
	a.job.track = &tracked{earlier: h.earlier, caller: c, messages: a.req.Messages, digest: store.RequestDigest(a.digest()),
		durable: a.job.due == nil, requiresNew: a.requiresNew, runID: a.job.follow.id}
}

// offersWrites reports whether a run under these settings may call a tool of this server that may write.
func (c *access) offersWrites(s *lathe.Settings, allow []string) bool {
	return offersTool(c, s, allow, func(t *lathe.ToolSpec) bool { return t.Effect != lathe.ReadOnly })
}

// offersTool reports whether a run of the caller with these settings may call a tool of this server for which kind returns
// true.
func offersTool(c *access, s *lathe.Settings, allow []string, kind func(*lathe.ToolSpec) bool) bool {
	return s.ToolUseMode != lathe.ModeDisabled && s.Executor != lathe.ExecutorNoop && c.hasTool(allow, kind)
}

// hasTool reports whether the caller may use a tool of this server for which kind returns true. Only the tools in allow
// count; nil: all.
func (c *access) hasTool(allow []string, kind func(*lathe.ToolSpec) bool) bool {
	return slices.ContainsFunc(c.setup.tools(), func(t *lathe.ToolSpec) bool {
		return kind(t) && t.For(c.key.Name, c.key.Profile) && (allow == nil || slices.Contains(allow, t.Name))
	})
}

// Record implements [engine.Recorder]. An error ends the run before the call is executed.
func (t *tracked) Record(ctx context.Context, e event.Event) error { return t.recordAt(ctx, &e) }

// Emit implements [event.Sink]. When the run has ended, Emit stores its result for repetitions, or removes the record if
// the run was never stored.
func (t *tracked) Emit(ctx context.Context, e event.Event) {
	if t.recordAt(ctx, &e) != nil { // an engine without a store does not call Record
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
	default: // a run that continues this one needs no other event
	}
	if !event.IsDelta(e.Data) && e.ID > 0 && !t.stored {
		t.stored = t.recorded()
	}
	res := loop.Ended(e.Data)
	if res == nil || !t.recorded() {
		return
	}
	switch {
	case t.stored:
		// The time is that of opts.Now, with which lookups compare it. The time of a delivery is that of time.Now, with which stores do.
		t.earlier.results.put(e.RunID, res, t.start, t.earlier.opts.Now(), t.executed)
	case t.runID == e.RunID: // the store accepted the record of this run and then failed to store the run
		t.withdraw(ctx)
		// Otherwise runID is the run that this one was to continue. Its record stays.
	}
}

// withdraw marks the record as delivered, so that no repetition of the request finds the run.
func (t *tracked) withdraw(ctx context.Context) {
	if err := t.markDelivered(ctx, time.Now()); err != nil {
		t.earlier.opts.Log.Warn("the record of a request could not be withdrawn: a repetition is refused", "run_id", t.runID, "code", lathe.CodeOf(err))
	}
	t.forget()
}

// recordAt makes the record when the run needs it: at the first event of a durable run, and before the first call that may write
// of any other run.
func (t *tracked) recordAt(ctx context.Context, e *event.Event) error {
	switch d := e.Data.(type) {
	case *event.RunStarted, *event.RunResumed:
		if !t.durable {
			return nil
		}
	case *event.ToolCallPlanned:
		if !t.caller.setup.mayWrite(d.Tool) {
			return nil
		}
	default:
		return nil
	}
	return t.record(ctx, e.RunID)
}

// record stores that the run answers the request, in place of the record of the run known. It does nothing if a record was
// made or found before (runID is set). It returns an error that wraps [engine.ErrSuperseded] if another run answers the request.
func (t *tracked) record(ctx context.Context, runID string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runID != "" {
		return nil
	}
	for range maxReplaced { // a further pass follows only if !t.looked and another request changed the record within this one
		if !t.looked { // the client requires a new run, or the lookup failed when the request arrived
			r, err := t.earlier.requests.FindRequest(ctx, t.digest)
			if err != nil && lathe.CodeOf(err) != lathe.CodeNotFound {
				return err
			}
			t.known = r.RunID
			// If the lookup of the request had not failed, it would have found that the run of an undelivered record answers the
			// request. A client that requires a new run gets one in any case.
			t.outrun = err == nil && !r.Delivered && t.unsure && !t.requiresNew
			if t.outrun {
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
		if t.looked { // another run made its record after the lookup, so it answers the request
			t.outrun = true
			break
		}
	}
	return lathe.CodeInternal.Errorf("gateway: record the request", "another run answers the request: %w", engine.ErrSuperseded)
}

// maxReplaced is the maximum number of attempts to replace a record that other requests replace at the same time, for a
// request that requires a new run.
const maxReplaced = 100

// lost reports whether another run has recorded that it answers the request. It returns false for nil.
func (t *tracked) lost() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.outrun
}

// found sets the result of a lookup: the run of the stored record, which does not answer the request; "": there is no
// record.
func (t *tracked) found(runID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looked, t.known, t.outrun = true, runID, false
}

// lookupFailed notes that the store could not be read, so that record looks again.
func (t *tracked) lookupFailed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unsure = true
}

// answeredBy notes the recorded run, which answers the request.
func (t *tracked) answeredBy(runID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runID, t.outrun = runID, false
}

// forget makes the next run of the request replace the record.
func (t *tracked) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looked, t.known, t.runID = true, t.runID, ""
}

// recorded reports whether a repetition of the request finds the run. It returns false for nil.
func (t *tracked) recorded() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.runID != ""
}

// deliver calls write, which sends the last bytes of the answer, and marks the record as delivered if write returns no
// error. ctx is the context of the request. If ctx is done before the write, the answer does not count as delivered, since
// the kernel accepts a small write after the client has left. ctx is not checked after the write: net/http cancels it also
// when a client that has read the whole answer closes its connection. A result of a suspended run is not an answer.
func (t *tracked) deliver(ctx context.Context, res *event.Result, write func() error) error {
	if !t.recorded() || res.Reason.Status() == "parked" {
		return write()
	}
	er := t.earlier
	over, release := er.deliveries.acquire(t.digest, func() chan struct{} { return make(chan struct{}) })
	defer func() {
		if release() {
			close(over)
		}
	}()
	began, left := time.Now(), ctx.Err() != nil
	if err := write(); err != nil || left {
		return err
	}
	if err := t.markDelivered(ctx, began); err != nil {
		er.opts.Log.Warn("the delivery of an answer could not be recorded: the same request gets the same answer", "run_id", t.runID, "code", lathe.CodeOf(err))
	}
	return nil
}

// markDelivered marks the record as delivered, even if ctx is done.
func (t *tracked) markDelivered(ctx context.Context, at time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliverTimeout)
	defer cancel()
	return t.earlier.requests.DeliverRequest(ctx, t.digest, t.runID, at)
}

// deliverTimeout bounds the store operation that records a delivery.
const deliverTimeout = 5 * time.Second

// adviseRetry sets in p, the problem of a run, whether clients retry the request. If a retry would continue the run, they do, unless the
// model server has failed with the same code in maxRepeatedFailures runs: each retry costs all attempts of a model call. p then gets
// a status that clients do not retry.
func (t *tracked) adviseRetry(res *event.Result, p *problem) {
	mayPass := res.Reason == lathe.ReasonUpstreamError || res.Reason == lathe.ReasonInterrupted
	if p == nil || !mayPass || !t.recorded() {
		return
	}
	p.NoRetry = false
	if p.OfUpstream && p.Status >= 500 && t.failed == p.Code && t.continued+1 >= maxRepeatedFailures {
		p.Status, p.NoRetry = http.StatusBadRequest, true
		p.Message += " It has done so in " + strconv.Itoa(t.continued+1) + " runs of this request. The same request continues the last one."
	}
}

// maxRepeatedFailures is the number of consecutive runs of a chain that must fail with the same code before clients are
// advised not to retry.
const maxRepeatedFailures = 3

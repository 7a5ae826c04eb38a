package server

import (
	"context"
	"crypto/sha256"
	"net/http"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/pairs"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

const (
	// maxContinued is the maximum length of a chain of runs, each of which continues the one before: a request that is
	// repeated more often is refused.
	maxContinued = 100
	// A lookup that finds a delivered record may leave open whether the request arrived before the delivery. It is then
	// repeated: at once if it took at most slowLookup, else after a pause. At most maxFastLookups fast and maxLookups slow
	// ones are made.
	slowLookup     = 5 * time.Millisecond
	maxLookups     = 100
	maxFastLookups = 10
	// beginGrace is the time in which a recorded run must appear in the store, which writes the record first. A busy
	// database takes seconds.
	beginGrace = 30 * time.Second
	// goneGrace is added to RetryWindow for the age of a record whose run was deleted: it bounds how long the run may have
	// taken.
	goneGrace = time.Hour
	// deliverGrace is the time after the end of a run in which another process may still record the delivery of its answer.
	deliverGrace = time.Second
	// findPause is the pause between two lookups of a request that waits for another process.
	findPause = 25 * time.Millisecond
)

// An earlierRun is the run of an earlier equal request.
type earlierRun struct {
	id        string
	over      bool          // the run has ended or is suspended
	res       *event.Result // the result; nil unless over
	base      int           // number of messages of res.History that were in the request
	after     int64         // the event after which the answer begins, as in [runlog.AnswerID]
	continues string
	continued int // number of runs in the chain before this one
	updated   time.Time
	ran       func(callID string) bool // reports whether the tool of a call may have run
}

// completed reports whether the run has ended or is suspended without a failure, so that there is an answer for its client.
func (e *earlierRun) completed() bool { return e.over && problems.Failure(e.res) == nil }

// abandoned reports whether the run ended because its client left or its process stopped.
func (e *earlierRun) abandoned() bool {
	return e.over && (e.res.Reason == lathe.ReasonCancelled || e.res.Reason == lathe.ReasonInterrupted)
}

// earlierRuns finds the runs of earlier equal requests.
type earlierRuns struct {
	*runViews
	requests   store.RequestStore                        // the store if it implements the interface; else the records are in memory
	deliveries inUse[store.RequestDigest, chan struct{}] // the answers that this process sends, by request; a channel is closed when the last one has ended
	results    results                                   // results of ended runs, if the server has no store of runs
}

func newEarlierRuns(views *runViews) *earlierRuns {
	er := &earlierRuns{runViews: views, requests: requestStore(views.opts.Index)}
	if views.opts.Index == nil {
		er.results.max, er.results.maxBytes = views.opts.Limits.MaxKept, views.opts.Limits.MaxKeptBytes
	}
	return er
}

// findEarlier returns the run that answers the request; nil if the request needs a new run.
func (er *earlierRuns) findEarlier(ctx context.Context, t *tracked) (*earlierRun, *problem) {
	l := &lookup{earlierRuns: er, track: t, began: time.Now()}
	for {
		switch l.look(ctx) {
		case lookDone:
			return l.run, l.bad
		case lookLater:
			if p := pause(ctx, nil, findPause); p != nil {
				return nil, p
			}
		}
	}
}

// A lookup is the state of one call of [earlierRuns.findEarlier]. Its methods return the next step; before lookDone they set run
// or bad, or neither if the request needs a new run.
type lookup struct {
	*earlierRuns
	track      *tracked
	began      time.Time
	slow, fast int         // number of lookups that left open whether the request arrived before a delivery
	run        *earlierRun // the run that answers the request
	bad        *problem    // the problem of the request
}

// A nextLook is the step that follows a lookup.
type nextLook int

const (
	lookDone  nextLook = iota // the lookup is complete
	lookAgain                 // look again at once
	lookLater                 // look again after findPause
)

func (l *lookup) look(ctx context.Context) nextLook {
	t := l.track
	waited := time.Since(t.caller.arrived)
	delivered := l.deliveries.get(t.digest) // read before the record: if the delivery ends in between, the record does not have it yet
	record, err := l.requests.FindRequest(ctx, t.digest)
	switch {
	case lathe.CodeOf(err) == lathe.CodeNotFound:
		t.found("")
		return lookDone
	case err != nil: // record looks again before the first call that may write
		l.opts.Log.Warn("the store could not say whether a request is a repetition", "request_id", t.caller.requestID, "code", lathe.CodeOf(err))
		t.lookupFailed()
		return lookDone
	case record.Delivered && !t.arrivedBefore && waited+l.opts.Limits.RepeatWindow <= record.DeliveredAge:
		return l.delivered(&record, waited)
	}
	e, p := l.followEarlier(ctx, t, record.RunID)
	if p != nil {
		return l.missing(&record, p)
	}
	if !e.completed() {
		t.arrivedBefore = true // the earlier run had no answer yet, so none was delivered
	}
	return l.judge(ctx, e, &record, delivered)
}

// delivered is the step after a lookup that found an answer delivered before the request arrived. The lookup may have waited
// for a connection to the store, and the answer may have been delivered in that time. The record does not show that, so only a
// faster lookup can decide.
func (l *lookup) delivered(record *store.RequestRecord, waited time.Duration) nextLook {
	after := time.Since(l.track.caller.arrived)
	isSlow := after-waited > slowLookup
	if isSlow {
		l.slow++
	} else {
		l.fast++
	}
	switch {
	case after+l.opts.Limits.RepeatWindow <= record.DeliveredAge || l.slow >= maxLookups || l.fast >= maxFastLookups:
		l.track.found(record.RunID)
		return lookDone
	case isSlow:
		return lookLater
	}
	return lookAgain
}

// missing is the step after a lookup that found a record whose run could not be read.
func (l *lookup) missing(record *store.RequestRecord, p *problem) nextLook {
	switch {
	case p.Code == noRun().Code && record.Age < beginGrace:
		return lookLater
	case !p.Absent():
		l.bad = p
	case record.Age > l.opts.Limits.RetryWindow+goneGrace:
		l.track.found(record.RunID)
	default: // no client library retries the status
		l.bad = &problem{Status: http.StatusBadRequest, Code: "retry_run_gone", NoRetry: true,
			Message: "This request repeats one whose run called tools that may write, and that run is no longer kept: it cannot be continued. Send " + newRunHeader + ": true to run the request anew."}
	}
	return lookDone
}

// judge is the step after a lookup that found the run e. delivered is closed when this process has sent an answer to the
// request; nil: it sends none.
func (l *lookup) judge(ctx context.Context, e *earlierRun, record *store.RequestRecord, delivered <-chan struct{}) nextLook {
	age := l.opts.Now().Sub(e.updated)
	isPending := e.completed() && !record.Delivered // its answer may be on the way to another client
	switch {
	case e.over && age > l.opts.Limits.RetryWindow:
		l.track.found(record.RunID)
		return lookDone
	case isPending && delivered != nil:
		select {
		case <-delivered:
		case <-ctx.Done():
		}
		return lookAgain
	case isPending && l.shared != nil && age < deliverGrace && time.Since(l.began) < deliverGrace:
		return lookLater
	}
	l.track.answeredBy(record.RunID)
	l.run = e
	return lookDone
}

// pause blocks for d, or until notified has a value. It returns a problem if ctx is done first. notified may be nil.
func pause(ctx context.Context, notified <-chan struct{}, d time.Duration) *problem {
	select {
	case <-notified:
	case <-time.After(d):
	case <-ctx.Done():
		return clientGone()
	}
	return nil
}

// repeatLimit is the problem of a repetition after maxContinued runs.
func repeatLimit() *problem {
	return &problem{Status: http.StatusBadRequest, Code: "retry_limit", NoRetry: true,
		Message: "This request was repeated too often, and each run that continued it failed. Send " + newRunHeader + ": true to run the request anew."}
}

// continuation returns the id of the run that continues the run id. It is derived from id, and has the same time.
func continuation(id string) string {
	sum := sha256.Sum256([]byte("lathe/continues/1\x00" + id))
	return id[:min(len(id), timeOfID)] + newRunID(0, &sum)[timeOfID:]
}

// followEarlier returns the last run of the chain that begins with id, in which each run continues the one before.
func (er *earlierRuns) followEarlier(ctx context.Context, t *tracked, id string) (*earlierRun, *problem) {
	for n := range maxContinued {
		next := continuation(id)
		has, p := er.hasRun(ctx, t.caller, next)
		switch {
		case p != nil:
			return nil, p
		case !has:
			e, p := er.readEarlier(ctx, t, id)
			if e != nil {
				e.continued = n
			}
			return e, p
		}
		id = next
	}
	return nil, repeatLimit()
}

// hasRun reports whether a run with the id exists, active or stored.
func (er *earlierRuns) hasRun(ctx context.Context, c *caller, id string) (bool, *problem) {
	switch {
	case er.inflight.find(id) != nil:
		return true, nil
	case er.opts.Index == nil:
		return er.results.find(id) != nil, nil
	}
	rows, _, err := er.opts.Index.Runs(ctx, &store.RunFilter{RunID: id, Limit: 1})
	if err != nil {
		return false, er.runFailed(c, err)
	}
	return len(rows) > 0, nil
}

// readEarlier returns the run with the id. Without a store, it is an active run of this process or the result of an ended
// one.
func (er *earlierRuns) readEarlier(ctx context.Context, t *tracked, id string) (*earlierRun, *problem) {
	if er.opts.Index == nil {
		active := er.inflight.find(id) != nil // looked up first: a run is removed from inflight only after its result is in results
		if r := er.results.find(id); r != nil {
			return r.earlier(id, t.messages), nil
		}
		if active {
			return &earlierRun{id: id}, nil
		}
		return nil, noRun()
	}
	v, p := er.viewOther(ctx, t.caller, id)
	if p != nil {
		return nil, p
	}
	over := v.Rests()
	if !over && er.orphaned(v) { // the run has ended meanwhile, or will stay as it is
		if p := er.takes(); p != nil { // while the server drains, the next process may still resume the run
			return nil, p
		}
		if v, p = er.viewOther(ctx, t.caller, id); p != nil {
			return nil, p
		}
		over = true
	}
	e := &earlierRun{id: id, over: over, continues: v.State.Continues, updated: v.Summary.Run.Updated, ran: v.MayHaveRun}
	if e.over {
		e.res = v.Result()
		e.base = requestEnd(e.res.History, v.State.Start-v.State.TakenOver, t.messages)
		if e.base > v.State.Start {
			e.after = v.WaitBefore(e.base)
		}
	}
	return e, nil
}

// requestEnd returns how many messages of the history were in the request: those before start or, if the request ends with
// tool results, those up to and including the same results.
func requestEnd(history []lathe.Message, start int, request []lathe.Message) int {
	start = min(max(start, 0), len(history))
	if len(request) == 0 || request[len(request)-1].Role != lathe.RoleTool {
		return start
	}
	last := pairs.Answered(&request[len(request)-1])
	for i, m := range slices.Backward(history[start:]) {
		if pairs.Answered(&m) == last {
			end := start + i + 1
			return end + leadingResults(history[end:])
		}
	}
	return start
}

// afterMessages returns the messages after the first n; n may be out of range.
func afterMessages(history []lathe.Message, n int) []lathe.Message {
	return history[min(max(n, 0), len(history)):]
}

// takenOver returns the messages of e (calls, results and texts) that a run which continues e takes over.
func (e *earlierRun) takenOver() []lathe.Message {
	return loop.TakeOver(afterMessages(e.res.History, e.base), e.ran)
}

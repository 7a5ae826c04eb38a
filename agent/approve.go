package agent

import (
	"context"
	"errors"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// Waiting returns the calls that wait for an approval, the earliest to expire first: those of the runs of this agent and, on a store that
// several processes share, those of the other processes. After a restart on a store that is not shared, requests of earlier processes are
// listed once [Agent.Recover] has restored them. Waiting returns an error if the store cannot be read.
func (a *Agent) Waiting(ctx context.Context) ([]approval.Request, error) {
	if _, shared := a.runs.(store.Shared); shared {
		if _, err := a.queue.Restore(ctx, a.own()); err != nil {
			return nil, err
		}
	} else if err := a.checkStore(ctx); err != nil { // a decision could not be stored
		return nil, err
	}
	waiting := a.queue.Pending("")
	for i := range waiting {
		a.describe(ctx, &waiting[i])
	}
	return waiting, nil
}

// describe adds what the log of a run does not have to a request that was read from it.
func (a *Agent) describe(ctx context.Context, r *approval.Request) {
	if r.Details != nil {
		return
	}
	t, ok := a.asking(ctx, r.RunID).tools.Lookup(r.Tool)
	if !ok {
		return
	}
	spec := t.Spec()
	r.Effect, r.Origin = spec.Effect.String(), spec.Origin
	r.Details = approval.Details(&lathe.ApprovalRequest{CallInfo: lathe.CallInfo{Tool: spec, Args: r.Arguments}, Digest: r.Digest, ExpiresAt: r.ExpiresAt,
		Verdict: lathe.Verdict{Rule: r.Rule, Reason: r.Reason}}, a.now())
}

// Answer stores the decision on the request with this digest. It resumes the run in the background in this process, unless another process
// executes it. The run resumes after each decision: if other calls of it still wait, it executes the call that was decided and is parked
// again. [Agent.Wait] returns its result. The error is that of [approval.Queue.Answer], or that of [Agent.Waiting] if the store cannot be
// read; nothing is stored then.
func (a *Agent) Answer(ctx context.Context, digest string, answer approval.Answer) error {
	waiting, err := a.Waiting(ctx)
	if err != nil {
		return err
	}
	if err := a.queue.Answer(ctx, digest, answer); err != nil {
		return err
	}
	for i := range waiting {
		if waiting[i].Digest == digest {
			a.unwatch(digest)
			a.resume(ctx, waiting[i].RunID)
		}
	}
	return nil
}

// Approve approves the call whose request has this digest, as [Agent.Answer] does. by is the name of the approver, for the record.
func (a *Agent) Approve(ctx context.Context, digest, by string) error {
	return a.Answer(ctx, digest, approval.Answer{Verb: approval.Approve, By: by})
}

// Deny refuses the call whose request has this digest, as [Agent.Answer] does. The model receives the code approval_denied as the result of the
// call. by is the name of the approver, for the record.
func (a *Agent) Deny(ctx context.Context, digest, by string) error {
	return a.Answer(ctx, digest, approval.Answer{Verb: approval.Deny, By: by})
}

// resume resumes a run that has new input, unless another process executes it, which then reads the input from the store.
func (a *Agent) resume(ctx context.Context, runID string) {
	ctx = context.WithoutCancel(ctx) // the input is stored: the run continues whether the caller waits or not
	if a.supervisor.Notify(runID) {
		return
	}
	code := lathe.CodeOf(a.supervisor.Resume(ctx, a.loop, runID, nil))
	if code != "" && code != lathe.CodeConflict { // conflict: it has ended, or is executed already
		a.log.Error("a run with new input could not be resumed", "run_id", runID, "code", code)
	}
}

// watch resumes the run of a request when the request expires.
func (a *Agent) watch(r approval.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timers[r.Digest] != nil {
		return
	}
	a.timers[r.Digest] = time.AfterFunc(r.ExpiresAt.Sub(a.now()), func() {
		a.unwatch(r.Digest)
		for _, late := range a.queue.Expired() {
			a.resume(context.Background(), late.RunID)
		}
	})
}

func (a *parts) unwatch(digest string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := a.timers[digest]; t != nil {
		t.Stop()
		delete(a.timers, digest)
	}
}

// Recover resumes, in the background, the runs that earlier processes did not finish. It restores the requests for approval of parked runs;
// each expires at its original time. Call it once, after New. On a shared store it also acquires the runs of processes that stop, until
// [Agent.Close].
//
// It returns the number of resumed runs. The error joins the errors of runs that could not be resumed and of reading the store. Log it and
// continue: the other runs are resumed and the agent is usable. A run with a damaged log causes the same error at each start.
func (a *Agent) Recover(ctx context.Context) (resumed int, err error) {
	own := a.own()
	loopFor := func(row *store.RunSummary) (*loop.Loop, error) {
		if row.Target != a.name {
			return nil, lathe.CodeNotFound.Errorf("agent: recover", "the run is of another agent")
		}
		return a.loop, nil
	}
	resumed, err = a.supervisor.Recover(ctx, own, loopFor)
	requests, rerr := a.queue.Restore(ctx, own)
	open := map[string]int{}
	for _, r := range requests {
		a.watch(r)
		open[r.RunID]++
	}
	for _, m := range a.metrics {
		_ = m.RecountApprovals(func() (map[string]int, error) { return open, rerr }) // the error is returned below
	}
	if _, shared := a.runs.(store.Shared); shared {
		a.serve(loopFor)
	}
	return resumed, errors.Join(err, rerr)
}

// serve takes over runs of other processes until Close.
func (a *Agent) serve(loopFor func(*store.RunSummary) (*loop.Loop, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	a.stop = stop
	a.serving.Go(func() { a.supervisor.Serve(ctx, &engine.ServeOptions{LoopFor: loopFor}) })
}

// own returns the runs of this agent.
func (a *Agent) own() store.RunIndex { return ownRuns{RunIndex: a.runs, target: a.name} }

// ownRuns are the runs of one target in an index.
type ownRuns struct {
	store.RunIndex
	target string
}

// Runs implements [store.RunIndex].
func (o ownRuns) Runs(ctx context.Context, f *store.RunFilter) (rows []store.RunSummary, next string, err error) {
	all, next, err := o.RunIndex.Runs(ctx, f)
	for i := range all {
		if all[i].Target == o.target {
			rows = append(rows, all[i])
		}
	}
	return rows, next, err
}

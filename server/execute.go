package server

import (
	"context"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/gateway/stream"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/loop"
)

// A request executes its run itself, passes it to the supervisor or an [Executor] (detach), or follows a run that another
// request or process executes. In each case it waits for an inflightRun.

// A job says which run answers a request: a suspended run if resume has an id, a run that is executed elsewhere if follow has
// one, else a new run of in. The plan of the request sets the job, and [earlierRuns.continueRun] makes it that of a run that
// continues an earlier one. Only out and objects are set while the request is answered.
type job struct {
	loop   *loop.Loop
	in     *loop.Input
	resume resumption
	follow following
	detach bool // the run continues when its client disconnects
	// due reports whether an event of a run with deferred persistence must be stored at once. If it is nil, persistence is
	// not deferred: every event is stored at once.
	due func(event.Data) bool
	// track is the tracked request, if a repetition of the request must get the answer of the same run; nil: repetitions
	// begin new runs.
	track *tracked
	// claim is the sink that waits for the first event of the run. It is set if another process may begin the same run; its
	// err is set if this process did not begin it.
	claim *first
	note  event.Sink // an additional sink of the run; nil: none
	// out is the response, if a part of it was written before the run began; else nil.
	out *stream.Writer
	// objects records the ids of objects of the vendor's account (files, responses) that the answers of the models contain.
	objects *objectNote
	// holds returns true if the response is held open while the run is suspended, given the result of the run, and prepares the
	// answer for that; nil: it is not held open.
	holds func(*event.Result) bool
}

// A resumption is the suspended run that a job resumes.
type resumption struct {
	id      string
	answers map[string]lathe.Output // the results of its client calls
	stepped *runlog.View            // its log, if an [Executor] executes the run; else nil
}

// A following is the run of another request or process whose answer a job gets.
type following struct {
	id    string
	after int64 // the id of the event after which the run is followed
}

// relay returns the relay of a new run; nil if the run is not relayed, or not new.
func (j *job) relay() *lathe.Relay {
	if j.in == nil {
		return nil
	}
	return runinput.Of(j.in).Relay
}

// sinks returns the sinks of the run in the order in which they get an event: claim and track before the client's, objects
// and note after them.
func (j *job) sinks(client []event.Sink) []event.Sink {
	all := j.objects.with(client...)
	if j.note != nil {
		all = append(all, j.note)
	}
	if j.track != nil {
		all = append([]event.Sink{j.track}, all...)
	}
	if j.claim != nil {
		all = append([]event.Sink{j.claim}, all...)
	}
	return all
}

// An inflightRun is a run in progress that the request of a client waits for.
type inflightRun struct {
	over       chan struct{} // closed when the run has ended or is suspended
	res        *event.Result // the result; read it only after over is closed
	cancel     context.CancelCauseFunc
	detach     bool   // the run continues without this client
	wake       func() // called after over is closed; may be nil
	finishOnce sync.Once

	// For a run that a request executes:
	id       string
	among    *inflightRuns // the registry that contains the run; nil: another request, or the supervisor, executes it
	quitOnce sync.Once
	mu       sync.Mutex
	clients  int // number of clients that wait for the run; at 0 the run is cancelled. Guarded by mu
}

var _ engine.Leaver = (*inflightRun)(nil)

// Emit implements [event.Sink]. The last event of a detached run unblocks the clients that wait for the run. They do not wait for the
// goroutine that executes the run; only the supervisor does.
func (f *inflightRun) Emit(_ context.Context, e event.Event) {
	if res := loop.Ended(e.Data); res != nil {
		f.finish(res)
	}
}

// Leave implements [engine.Leaver]. It is called when this process stops executing the run because another process owns it
// or will acquire it.
func (f *inflightRun) Leave(string) { f.finish(takenOverResult(nil)) }

// finish sets the result and ends the wait of the clients. Only the first call has an effect.
func (f *inflightRun) finish(res *event.Result) {
	f.finishOnce.Do(func() {
		f.res = res
		if f.among != nil {
			f.among.remove(f)
		}
		close(f.over)
		if f.wake != nil {
			f.wake()
		}
	})
}

func (f *inflightRun) isDone() bool {
	select {
	case <-f.over:
		return true
	default:
		return false
	}
}

// start begins the run of a job, and calls wake once when the run is over. The caller must call leave once, which detaches the
// client. What that does depends on who executes the run:
//
//   - This request: the run is cancelled unless another client waits for it, and leave returns after its goroutine has ended.
//   - The supervisor: nothing; the run continues.
//   - Another request or process, or an [Executor]: the run continues, and is not followed any more.
func (ex *runStarter) start(ctx context.Context, c *caller, j *job, wake func(), sinks ...event.Sink) (f *inflightRun, leave func(), p *problem) {
	if j.follow.id != "" {
		c.runID = j.follow.id
		f, leave = ex.follow(ctx, c, j.follow, 0, wake, sinks)
		return f, leave, nil
	}
	j.name(ex, c)
	j.objects = newObjectNote(ex.core, c, c.key.Name)
	sinks = j.sinks(sinks)
	startsStepped := j.detach && j.resume.id == "" && ex.opts.Executor != nil
	switch {
	case startsStepped || j.resume.stepped != nil:
		return ex.startStepped(ctx, c, j, wake, sinks)
	case j.detach:
		f, p = ex.startDetached(ctx, c, j, wake, sinks)
		return f, func() {}, p
	}
	ctx, f = ex.register(ctx, c, j, wake)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		f.finish(ex.execute(ctx, f.cancel, j, sinks))
	}()
	return f, func() {
		f.quit()
		<-gone
	}, nil
}

// startDetached passes the run of a job to the supervisor, which executes it independently of the request.
func (ex *runStarter) startDetached(ctx context.Context, c *caller, j *job, wake func(), sinks []event.Sink) (*inflightRun, *problem) {
	f := &inflightRun{over: make(chan struct{}), detach: true, cancel: func(error) {}, wake: wake}
	setup := ex.hold(c)
	sinks = append(sinks, f, setup)
	var err error
	if j.resume.id == "" {
		_, err = ex.opts.Supervisor.Start(ctx, j.loop, j.in, &engine.RunOptions{Sinks: sinks})
	} else {
		err = ex.opts.Supervisor.Resume(ctx, j.loop, j.resume.id, j.resume.answers, sinks...)
	}
	if err != nil {
		setup.free()
		f.finish(takenOverResult(nil))
		return nil, problems.NotNow(err)
	}
	return f, nil
}

// join adds a client that waits for the run. The caller must call leave once. leave is nil if the run has no client any
// more and is being cancelled.
func (f *inflightRun) join() (leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.clients == 0 {
		return nil
	}
	f.clients++
	return f.leave
}

// leave removes one client. When the last one has left, the run is cancelled.
func (f *inflightRun) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.clients--; f.clients == 0 {
		f.cancel(context.Canceled)
	}
}

// quit removes the client that began the run. Further calls have no effect.
func (f *inflightRun) quit() { f.quitOnce.Do(f.leave) }

// register returns the inflightRun of a run that a request executes, and a context that is cancelled with the run.
func (ex *runStarter) register(ctx context.Context, c *caller, j *job, wake func()) (context.Context, *inflightRun) {
	f := &inflightRun{over: make(chan struct{}), id: c.runID, among: &ex.inflight, wake: wake, clients: 1}
	asked := ctx
	ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if j.track != nil {
		j.track.cancel = func() { f.cancel(context.Canceled) }
	}
	context.AfterFunc(asked, f.quit)
	ex.inflight.add(f)
	if ex.stopped.Err() != nil { // the server stopped before the run was registered, so the interrupt did not reach it
		f.cancel(context.Cause(ex.stopped))
	}
	return ctx, f
}

// name sets the id of the run in the caller, and in the input if the run is new and has none.
func (j *job) name(ex *runStarter, c *caller) {
	if j.resume.id != "" {
		c.runID = j.resume.id
		return
	}
	if j.in.Run.RunID == "" {
		j.in.Run.RunID = ex.opts.Engine.NewRunID()
	}
	c.runID = j.in.Run.RunID
}

// execute executes the run of a job until it has ended or is suspended, and returns its result. cancel cancels ctx.
func (ex *runStarter) execute(ctx context.Context, cancel context.CancelCauseFunc, j *job, sinks []event.Sink) *event.Result {
	if j.resume.id == "" {
		opts := &engine.RunOptions{Sinks: sinks, Cancel: cancel}
		if j.due != nil {
			opts.Durability, opts.MustPersist = engine.Deferred, j.due
		}
		res, _ := ex.opts.Engine.Run(ctx, j.loop, j.in, opts) // its error is in the result
		return res
	}
	res, err := ex.opts.Engine.Resume(ctx, j.loop, j.resume.id, j.resume.answers, sinks...)
	switch {
	case res != nil:
		return res
	case lathe.CodeOf(err) == lathe.CodeUnavailable: // the store is unreachable, and the run is still suspended
		return &event.Result{Reason: lathe.ReasonInterrupted, Err: err}
	}
	return takenOverResult(err)
}

// takenOverResult returns the result for the clients of a run that another process has resumed.
func takenOverResult(err error) *event.Result {
	return &event.Result{Reason: lathe.ReasonInternal, Err: lathe.CodeConflict.Wrap("gateway: resume", err)}
}

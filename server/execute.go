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
	"github.com/lathe-run/lathe/loop"
)

// A job is a run that is about to begin.
type job struct {
	loop   *loop.Loop
	in     *loop.Input
	detach bool // it continues when its client disconnects
	// due reports whether an event of a run with deferred persistence must be stored at once; nil: every event is.
	due func(event.Data) bool
	// track is the request, if repetitions of it get the answer of the same run; nil: they do not.
	track *tracked
	// claim learns whether the run has begun, if another process may begin it, too; nil: no other process may.
	claim *first
	// out is the stream, if part of it was written before the run began; nil: nothing was written.
	out *stream.Writer
	// resume is the ID of a suspended run that is resumed instead of starting a new run of in.
	resume  string
	answers map[string]lathe.Output
	// stepped is that run, if an [Executor] executes it; nil: none does.
	stepped *runlog.View
	// follow is the ID of a run in another process that answers the request, instead of a new run of in.
	follow string
	after  int64      // the event after which it is followed
	note   event.Sink // one more sink; nil: none
	// objects records those of the vendor's account in the answers of the models.
	objects *objectNote
	// holds reports whether the answer is held open while the run waits; nil: never.
	holds func(*event.Result) bool
}

// sinks returns the sinks of the run, which the caller asks for.
func (j *job) sinks(co *core, c *caller, more []event.Sink) []event.Sink {
	j.objects = newObjectNote(co, c, c.key.Name)
	more = j.objects.with(more...)
	if j.note != nil {
		more = append(more, j.note)
	}
	var first []event.Sink // before the client sees the event
	if j.claim != nil {
		first = append(first, j.claim)
	}
	if j.track != nil {
		first = append(first, j.track)
	}
	if first == nil {
		return more
	}
	return append(first, more...)
}

// An inflightRun is a run that a client waits for.
type inflightRun struct {
	over   chan struct{} // closed when the run has ended or waits
	res    *event.Result // good once over is closed
	cancel context.CancelCauseFunc
	detach bool
	once   sync.Once
	id     string

	mu      sync.Mutex
	clients int           // that wait for the run; without any it is cancelled
	left    bool          // the client that began it has left
	among   *inflightRuns // nil: the supervisor tracks it
	wake    func()        // called when over is closed; nil: not called
}

var _ engine.Leaver = (*inflightRun)(nil)

// Emit implements [event.Sink]. The last event of a detached run ends the wait of its clients: only the supervisor waits
// for the goroutine that executes the run.
func (f *inflightRun) Emit(_ context.Context, e event.Event) {
	if res := loop.Ended(e.Data); res != nil {
		f.finish(res)
	}
}

// Leave implements [engine.Leaver]: another process owns the run, or will acquire it.
func (f *inflightRun) Leave(string) { f.finish(takenOverResult(nil)) }

func (f *inflightRun) finish(res *event.Result) {
	f.once.Do(func() {
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

// isDone reports whether the run has ended or waits.
func (f *inflightRun) isDone() bool {
	select {
	case <-f.over:
		return true
	default:
		return false
	}
}

// start begins the run of a job, and calls wake, once, when it is over. leave must be called once: it ends the run
// where it does not go on by itself, and returns when nothing of it is at work any more.
func (ex *runStarter) start(ctx context.Context, c *caller, j *job, wake func(), sinks ...event.Sink) (f *inflightRun, leave func(), p *problem) {
	if j.follow != "" {
		c.runID = j.follow
		f, leave = ex.follow(ctx, c, j.follow, j.after, 0, wake, sinks)
		return f, leave, nil
	}
	sinks = j.sinks(ex.core, c, sinks)
	if j.stepped != nil || j.detach && j.resume == "" && ex.opts.Executor != nil {
		j.name(ex, c)
		return ex.startStepped(ctx, c, j, wake, sinks)
	}
	if j.detach {
		j.name(ex, c)
		f = &inflightRun{over: make(chan struct{}), detach: true, cancel: func(error) {}, wake: wake}
		setup := ex.hold(c)
		if err := ex.startSupervised(ctx, j, append(sinks, f, setup)); err != nil {
			setup.free()
			return nil, nil, problems.NotNow(err)
		}
		return f, func() {}, nil
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

// join adds a client that waits for the run. leave must be called once; it is nil where the run is being cancelled.
func (f *inflightRun) join() (leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.clients == 0 {
		return nil
	}
	f.clients++
	return f.leave
}

// leave removes a client. The run is cancelled when the last one has left.
func (f *inflightRun) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.clients--; f.clients == 0 {
		f.cancel(context.Canceled)
	}
}

// quit removes the client that began the run. Further calls do nothing.
func (f *inflightRun) quit() {
	f.mu.Lock()
	left := f.left
	f.left = true
	f.mu.Unlock()
	if !left {
		f.leave()
	}
}

// register returns the inflightRun of a run that a request executes, and a context that is cancelled with the run.
func (ex *runStarter) register(ctx context.Context, c *caller, j *job, wake func()) (context.Context, *inflightRun) {
	j.name(ex, c)
	f := &inflightRun{over: make(chan struct{}), id: c.runID, among: &ex.inflight, wake: wake, clients: 1}
	asked := ctx
	ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if j.track != nil {
		j.track.cancel = func() { f.cancel(context.Canceled) }
	}
	context.AfterFunc(asked, f.quit)
	ex.inflight.add(f)
	if ex.stopped.Err() != nil { // before it could be found
		f.cancel(context.Cause(ex.stopped))
	}
	return ctx, f
}

// name gives the run its id.
func (j *job) name(ex *runStarter, c *caller) {
	switch {
	case j.resume != "":
		c.runID = j.resume
	case j.in.Run.RunID == "":
		j.in.Run.RunID = ex.opts.Engine.NewRunID()
		fallthrough
	default:
		c.runID = j.in.Run.RunID
	}
}

// startSupervised lets the supervisor execute the run of the job.
func (ex *runStarter) startSupervised(ctx context.Context, j *job, sinks []event.Sink) error {
	if j.resume == "" {
		_, err := ex.opts.Supervisor.Start(ctx, j.loop, j.in, &engine.RunOptions{Sinks: sinks})
		return err
	}
	return ex.opts.Supervisor.Resume(ctx, j.loop, j.resume, j.answers, sinks...)
}

// execute runs a job to its end, or until it waits. cancel cancels ctx.
func (ex *runStarter) execute(ctx context.Context, cancel context.CancelCauseFunc, j *job, sinks []event.Sink) *event.Result {
	switch {
	case j.due != nil:
		res, _ := ex.opts.Engine.Run(ctx, j.loop, j.in, // its error is in the result
			&engine.RunOptions{Durability: engine.Deferred, MustPersist: j.due, Sinks: sinks, Cancel: cancel})
		return res
	case j.resume == "":
		res, _ := ex.opts.Engine.Run(ctx, j.loop, j.in, &engine.RunOptions{Sinks: sinks, Cancel: cancel}) // its error is in the result
		return res
	}
	res, err := ex.opts.Engine.Resume(ctx, j.loop, j.resume, j.answers, sinks...)
	switch {
	case res != nil:
		return res
	case lathe.CodeOf(err) == lathe.CodeUnavailable: // it waits as before
		return &event.Result{Reason: lathe.ReasonInterrupted, Err: err}
	}
	return takenOverResult(err)
}

// takenOverResult is that of a run which another process went on with.
func takenOverResult(err error) *event.Result {
	return &event.Result{Reason: lathe.ReasonInternal, Err: &lathe.Error{Code: lathe.CodeConflict, Op: "gateway: resume", Err: err}}
}

package gateway

import (
	"context"
	"sync"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/loop"
)

// A job is a run that is about to begin.
type job struct {
	loop   *loop.Loop
	in     *loop.Input
	detach bool // it goes on when its client leaves
	// due says what of it is stored at once where nobody asked that it survives this process; nil: everything.
	due func(lathe.EventData) bool
	// track is the request, where a repetition of it is looked for; nil: it is not.
	track *tracked
	// claim tells whether the run began, where another process may begin it, too; nil: none may.
	claim *first
	// out is the stream, where something was written before the run began; nil: nothing was.
	out *streamWriter
	// resume names the run that waits and that is gone on with, in place of a new one of in.
	resume  string
	answers map[string]lathe.Output
	// follow names the run that answers the request and that is executed elsewhere, in place of a new one of in.
	follow string
	after  int64      // the event after which it is followed
	note   lathe.Sink // one more sink; nil: none
	// holds reports whether the answer is held open while the run waits; nil: never.
	holds func(*lathe.Result) bool
}

// sinks returns the sinks of the run.
func (j *job) sinks(more []lathe.Sink) []lathe.Sink {
	if j.note != nil {
		more = append(more, j.note)
	}
	var first []lathe.Sink // before the client sees the event
	if j.claim != nil {
		first = append(first, j.claim)
	}
	if j.track != nil {
		first = append(first, j.track)
	}
	return append(first, more...)
}

// A flight is a run that a client waits for.
type flight struct {
	over   chan struct{} // closed when the run has ended or waits
	res    *lathe.Result // good once over is closed
	cancel context.CancelCauseFunc
	detach bool
	once   sync.Once
	id     string

	mu      sync.Mutex
	clients int     // that wait for the run; without any it is cancelled
	quit    func()  // removes the client that began it, once
	among   *flying // nil: the crew knows it
	wake    func()  // when over is closed; nil: nobody has to be told
}

var _ engine.Leaver = (*flight)(nil)

// Emit implements [lathe.Sink]. Nobody but the crew waits for a run that goes on by itself: its last
// event says that it is over.
func (f *flight) Emit(_ context.Context, e lathe.Event) {
	if res := loop.Ended(e.Data); res != nil {
		f.land(res)
	}
}

// Leave implements [engine.Leaver]: the run goes on elsewhere, or will.
func (f *flight) Leave(string) { f.land(movedOnResult(nil)) }

func (f *flight) land(res *lathe.Result) {
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

// isOver reports whether the run has ended or waits.
func (f *flight) isOver() bool {
	select {
	case <-f.over:
		return true
	default:
		return false
	}
}

// ride carries the run of a job on the goroutine of its request, for one who waits for nothing but its end. The
// run ends when the client leaves.
func (g *Gateway) ride(ctx context.Context, c *caller, j *job, sinks ...lathe.Sink) *lathe.Result {
	ctx, f := g.board(ctx, c, j, nil)
	defer f.cancel(context.Canceled)
	var res *lathe.Result
	defer func() {
		if res == nil { // it panicked
			res = movedOnResult(nil)
		}
		f.land(res)
	}()
	res = g.carry(ctx, j, j.sinks(sinks))
	return res
}

// fly begins the run of a job, and calls wake, once, when it is over. leave must be called once: it ends the run
// where it does not go on by itself, and returns when nothing of it is at work any more.
func (g *Gateway) fly(ctx context.Context, c *caller, j *job, wake func(), sinks ...lathe.Sink) (f *flight, leave func(), p *problem) {
	if j.follow != "" {
		c.runID = j.follow
		f, leave = g.follow(ctx, c, j.follow, j.after, 0, wake, sinks)
		return f, leave, nil
	}
	sinks = j.sinks(sinks)
	if j.detach {
		j.name(g, c)
		f = &flight{over: make(chan struct{}), detach: true, cancel: func(error) {}, wake: wake}
		setup := g.hold(c.setup)
		if err := g.lift(ctx, j, append(sinks, f, setup)); err != nil {
			setup.free()
			return nil, nil, notNow(err)
		}
		return f, func() {}, nil
	}
	ctx, f = g.board(ctx, c, j, wake)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		f.land(g.carry(ctx, j, sinks))
	}()
	return f, func() {
		f.quit()
		<-gone
	}, nil
}

// join adds a client that waits for the run. leave must be called once; it is nil where the run is being cancelled.
func (f *flight) join() (leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.clients == 0 {
		return nil
	}
	f.clients++
	return f.leave
}

// leave removes a client. The run is cancelled when the last one has left.
func (f *flight) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.clients--; f.clients == 0 {
		f.cancel(context.Canceled)
	}
}

// board makes the flight of a run that a request carries, and the context that it ends with.
func (g *Gateway) board(ctx context.Context, c *caller, j *job, wake func()) (context.Context, *flight) {
	j.name(g, c)
	f := &flight{over: make(chan struct{}), id: c.runID, among: &g.flying, wake: wake, clients: 1}
	f.quit = sync.OnceFunc(f.leave)
	asked := ctx
	ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(asked, f.quit) // which ends with its request
	g.flying.add(f)
	if g.stopped.Err() != nil { // before it could be found
		f.cancel(context.Cause(g.stopped))
	}
	return ctx, f
}

// name gives the run its id.
func (j *job) name(g *Gateway, c *caller) {
	switch {
	case j.resume != "":
		c.runID = j.resume
	case j.in.Run.RunID == "":
		j.in.Run.RunID = g.opts.Engine.NewRunID()
		fallthrough
	default:
		c.runID = j.in.Run.RunID
	}
}

// lift has the crew carry the job.
func (g *Gateway) lift(ctx context.Context, j *job, sinks []lathe.Sink) error {
	if j.resume == "" {
		_, err := g.opts.Crew.Start(ctx, j.loop, j.in, sinks...)
		return err
	}
	return g.opts.Crew.Resume(ctx, j.loop, j.resume, j.answers, sinks...)
}

// carry runs a job to its end, or until it waits.
func (g *Gateway) carry(ctx context.Context, j *job, sinks []lathe.Sink) *lathe.Result {
	switch {
	case j.due != nil:
		res, _ := g.opts.Engine.RunLazily(ctx, j.loop, j.in, j.due, sinks...) // its error is in the result
		return res
	case j.resume == "":
		res, _ := g.opts.Engine.Run(ctx, j.loop, j.in, sinks...) // its error is in the result
		return res
	}
	res, err := g.opts.Engine.Resume(ctx, j.loop, j.resume, j.answers, sinks...)
	switch {
	case res != nil:
		return res
	case lathe.CodeOf(err) == lathe.CodeUnavailable: // it waits as before
		return &lathe.Result{Reason: lathe.ReasonInterrupted, Err: err}
	}
	return movedOnResult(err)
}

// movedOnResult is that of a run which another process went on with.
func movedOnResult(err error) *lathe.Result {
	return &lathe.Result{Reason: lathe.ReasonInternal, Err: &lathe.Error{Code: lathe.CodeConflict, Op: "gateway: resume", Err: err}}
}

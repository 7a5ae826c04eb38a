package server

import (
	"context"
	"net/http"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/loop"
)

// An Executor executes detached runs in place of the [engine.Supervisor], for example as workflows of Temporal. The log of such a run names
// its executor; everything else about the run is in the store, as for other runs. The methods may be called from several goroutines at
// once.
type Executor interface {
	// Name returns the name of the executor, which is the value of [store.RunSummary].Executor for its runs.
	Name() string
	// Start must store the beginning of a run, as engine.Engine.Accept does, and start its execution with l, the loop of the model
	// in.Target. If the system behind the executor cannot be reached after the beginning was stored, Start must return nil and execute the
	// run later.
	Start(ctx context.Context, l *loop.Loop, in *loop.Input) (runID string, err error)
	// Wake must make the executor read the stored signals of a run. target is the model of the run. If the system behind the executor
	// cannot be reached, Wake must repeat a WakeInput or WakeCancel later and return nil. A WakeResume is not stored: for it, Wake must
	// return an error of code unavailable.
	Wake(ctx context.Context, runID, target string, why Wake) error
}

// A Wake is the reason for which [Executor].Wake is called.
type Wake uint8

// The values of Wake.
const (
	WakeInput  Wake = iota // a signal of the run was stored, or an approval request has expired
	WakeCancel             // a cancel request was stored, or the run was deleted
	WakeResume             // a client resumes a run that is parked with reason interrupted
)

// Loop returns, for an [Executor], the loop of the named model in the current configuration; target "" means the default model. If Loop
// returns no error, the caller must call release once; until then the configuration stays in use. The error has the code not_found if no
// such model is configured.
func (g *Server) Loop(target string) (l *loop.Loop, release func(), err error) {
	s := g.work.begin()
	defer g.work.end(s)
	m, err := s.Models.Model(target)
	if err != nil {
		return nil, nil, err
	}
	return m.Loop, g.hold(&caller{access: access{setup: s}}).free, nil
}

// checkExecutor returns a problem if the run has an executor and this process does not use that executor.
func (co *core) checkExecutor(v *runlog.View) *problem {
	name := v.State.Executor
	if x := co.opts.Executor; name == "" || x != nil && x.Name() == name {
		return nil
	}
	return conflict("run_elsewhere", "The run is executed by %s: send the request to a gateway that was started with that engine.", name)
}

func (co *core) wake(ctx context.Context, c *caller, v *runlog.View, why Wake) *problem {
	if p := co.checkExecutor(v); p != nil {
		return p
	}
	return co.runFailed(c, co.opts.Executor.Wake(ctx, v.State.Run.RunID, v.State.Target, why))
}

// resumeStepped stores the results of client calls and makes the executor resume the suspended run.
func (ex *runStarter) resumeStepped(ctx context.Context, c *caller, v *runlog.View, answers map[string]lathe.Output) *problem {
	if p := ex.checkExecutor(v); p != nil {
		return p
	}
	for id := range answers {
		if len(answers[id].Blobs) > 0 {
			return badRequest("messages", "The result of the call %s has files: a run that %s executes takes results of text alone.", id, v.State.Executor)
		}
		if p := ex.storeResult(ctx, c, v.State.Run.RunID, id, answers[id]); p != nil {
			return p
		}
	}
	why := WakeInput
	if v.State.Paused == lathe.ReasonInterrupted {
		why = WakeResume
	}
	return ex.wake(ctx, c, v, why)
}

// startStepped starts a new detached run with the executor, or resumes one, and follows it for the client.
func (ex *runStarter) startStepped(ctx context.Context, c *caller, j *job, wake func(), sinks []event.Sink) (f *inflightRun, leave func(), p *problem) {
	to := following{id: c.runID}
	if v := j.resume.stepped; v != nil {
		to.after = v.State.LastID
		p = ex.resumeStepped(ctx, c, v, j.resume.answers)
	} else if _, err := startWith(ctx, ex.opts.Executor, j.loop, j.in); err != nil {
		p = problems.NotNow(err)
	}
	if p != nil {
		return nil, nil, p
	}
	f, leave = ex.follow(ctx, c, to, 0, wake, sinks)
	return f, leave, nil
}

// startWith starts a new run with the executor x, whose name the log of the run records.
func startWith(ctx context.Context, x Executor, l *loop.Loop, in *loop.Input) (string, error) {
	runinput.Of(in).Executor = x.Name()
	return x.Start(ctx, l, in)
}

func (h *runsHandler) beginStepped(w http.ResponseWriter, r *http.Request, c *caller, n *newRun, key *idempotencyKey) *problem {
	id, err := startWith(r.Context(), h.opts.Executor, n.loop, n.in)
	if err != nil {
		return h.runFailed(c, err)
	}
	c.runID = id
	if key != nil { // another process may have begun a run with this id for another request
		if _, p := h.earlier(r.Context(), c, key); p != nil {
			return p
		}
	}
	return h.answerCreated(w, r, c, id, n.status)
}

// cancelStepped notifies the executor of a stored cancel request, and waits at most logTimeout until the run has ended. Its
// results are those of tryCancel.
func (h *inputHandler) cancelStepped(ctx context.Context, c *caller, v *runlog.View) (status int, p *problem) {
	status, p = h.applyStepped(ctx, c, v, WakeCancel, func(d event.Data) bool {
		_, is := d.(*event.RunFinished)
		return is
	})
	if status == http.StatusOK {
		return cancelAgain, nil // the next attempt reads from the log how the run has ended
	}
	return status, p
}

// applyStepped makes the executor of a run read its stored signals. Its results are those of apply.
func (h *inputHandler) applyStepped(ctx context.Context, c *caller, v *runlog.View, why Wake, settles func(event.Data) bool) (int, *problem) {
	if p := h.wake(ctx, c, v, why); p != nil {
		return 0, p
	}
	return h.waitLogged(ctx, v, untilEnd, settles), nil
}

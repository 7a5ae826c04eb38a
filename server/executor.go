package server

import (
	"context"
	"net/http"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/loop"
)

// An Executor executes detached runs step by step, in this process or in others, such as the workflows of Temporal. The log of such
// a run names its executor, and no engine.Supervisor acquires it. Everything else about the run comes from the store, as that of
// other runs does. Its methods may be called from several goroutines at once.
type Executor interface {
	// Name is the name of the executor in the rows of its runs, see [store.RunSummary].
	Name() string
	// Start stores the beginning of a run, as engine.Engine.Accept does, and starts its execution. If the engine behind the
	// executor cannot be reached, a run that Start has stored is executed later. l is the loop of in.Target.
	Start(ctx context.Context, l *loop.Loop, in *loop.Input) (runID string, err error)
	// Wake makes the executor read the signals of a run in the store. target is that of the run. If the engine behind the executor cannot be reached,
	// Wake returns nil for input and a cancel request, which it repeats later, and an error of code unavailable for WakeResume, which
	// is not stored.
	Wake(ctx context.Context, runID, target string, why Wake) error
}

// Wake is the reason for which [Executor].Wake is called.
type Wake uint8

// The reasons.
const (
	WakeInput  Wake = iota // a signal of the run is in the store, or a request for approval has expired
	WakeCancel             // a cancel request is in the store, or the run was deleted
	WakeResume             // a client resumes a run that was parked, `interrupted`
)

// Loop returns the loop of the model of that name in the configuration in force, for an [Executor]. The configuration is kept until
// release is called. Call it once. For a model that is not configured any more the error has the code not_found.
func (g *Server) Loop(target string) (l *loop.Loop, release func(), err error) {
	s := g.work.begin()
	defer g.work.end(s)
	m, err := s.Models.Model(target)
	if err != nil {
		return nil, nil, err
	}
	return m.Loop, g.hold(&caller{access: access{setup: s}}).free, nil
}

// reaches returns a problem if another executor than that of this process executes the run, else nil.
func (co *core) reaches(v *runlog.View) *problem {
	name := v.State.Executor
	if x := co.opts.Executor; name == "" || x != nil && x.Name() == name {
		return nil
	}
	return conflict("run_elsewhere", "The run is executed by %s: send the request to a server that was started with that engine.", name)
}

// wake wakes a run of an executor.
func (co *core) wake(ctx context.Context, c *caller, v *runlog.View, why Wake) *problem {
	if p := co.reaches(v); p != nil {
		return p
	}
	if err := co.opts.Executor.Wake(ctx, v.State.Run.RunID, v.State.Target, why); err != nil {
		return co.runFailed(c, err)
	}
	return nil
}

// resumeStepped resumes a suspended run of an executor, with the results of client tool calls.
func (ex *runStarter) resumeStepped(ctx context.Context, c *caller, v *runlog.View, answers map[string]lathe.Output) *problem {
	if p := ex.reaches(v); p != nil {
		return p
	}
	for id := range answers {
		if len(answers[id].Blobs) > 0 {
			return badRequest("messages", "The result of the call %s has files: a run that %s executes takes results of text alone.", id, v.State.Executor)
		}
		if p := ex.keepResult(ctx, c, v.State.Run.RunID, id, answers[id]); p != nil {
			return p
		}
	}
	why := WakeInput
	if v.State.Paused == lathe.ReasonInterrupted {
		why = WakeResume
	}
	return ex.wake(ctx, c, v, why)
}

// startStepped starts a detached run of an executor, or resumes one, and follows it for the client.
func (ex *runStarter) startStepped(ctx context.Context, c *caller, j *job, wake func(), sinks []event.Sink) (f *inflightRun, leave func(), p *problem) {
	after := int64(0)
	if v := j.stepped; v != nil {
		p, after = ex.resumeStepped(ctx, c, v, j.answers), v.State.LastID
	} else if _, err := ex.opts.Executor.Start(ctx, j.loop, j.in); err != nil {
		p = problems.NotNow(err)
	}
	if p != nil {
		return nil, nil, p
	}
	f, leave = ex.follow(ctx, c, c.runID, after, 0, wake, sinks)
	return f, leave, nil
}

// beginStepped starts a detached run of an executor and responds with it.
func (h *runsHandler) beginStepped(w http.ResponseWriter, r *http.Request, c *caller, n *newRun, key *once) *problem {
	id, err := h.opts.Executor.Start(r.Context(), n.loop, n.in)
	if err != nil {
		return h.runFailed(c, err)
	}
	c.runID = id
	if key != nil { // another process may have begun it, for another request
		if _, p := h.earlier(r.Context(), c, key); p != nil {
			return p
		}
	}
	return h.created(w, r, c, id, n.status)
}

// cancelStepped requests the cancellation of a run of an executor, and waits for a limited time until the run has ended. The cancel
// request is in the store.
func (h *inputHandler) cancelStepped(ctx context.Context, c *caller, v *runlog.View) (retry bool, status int, p *problem) {
	status, p = h.applyStepped(ctx, c, v, WakeCancel, func(d event.Data) bool {
		_, is := d.(*event.RunFinished)
		return is
	})
	return status == http.StatusOK, status, p // its log says how it has ended
}

// applyStepped makes a run of an executor read its stored signals, as apply does.
func (h *inputHandler) applyStepped(ctx context.Context, c *caller, v *runlog.View, why Wake, settles func(event.Data) bool) (int, *problem) {
	sub := h.opts.Bus.Subscribe(v.State.Run.RunID)
	defer sub.Close()
	if p := h.wake(ctx, c, v, why); p != nil {
		return 0, p
	}
	if !h.waitLogged(ctx, sub, v, true, settles) {
		return http.StatusAccepted, nil
	}
	return http.StatusOK, nil
}

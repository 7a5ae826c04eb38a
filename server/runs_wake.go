package server

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// logTimeout is how long a request waits until the log of the run contains the effect of the request.
const logTimeout = 5 * time.Second

// apply makes the run read its stored signals, now or when it is suspended next. It returns 200 if settles has matched an
// event of the log, and 202 if the signal has not been applied yet. If later is true and the run is in progress, it returns
// 202 without waiting. The caller must have locked the run.
func (h *inputHandler) apply(ctx context.Context, c *caller, v *runlog.View, later bool, settles func(event.Data) bool) (int, *problem) {
	if v.Stepped() != nil {
		return h.applyStepped(ctx, c, v, WakeInput, settles)
	}
	v, goesOn, p := h.notify(ctx, c, v)
	if p == nil && !goesOn {
		goesOn, later, p = h.resumeHere(ctx, c, v)
	}
	switch {
	case p != nil:
		return 0, p
	case later:
		return http.StatusAccepted, nil
	}
	return h.waitLogged(ctx, v, goesOn, settles), nil
}

// notify makes a run in progress read its stored signals. It returns the current view of the run, and whether the run is in
// progress, in this process or in another.
func (h *inputHandler) notify(ctx context.Context, c *caller, v *runlog.View) (now *runlog.View, goesOn bool, p *problem) {
	id := v.State.Run.RunID
	switch {
	case h.opts.Supervisor.Notify(id):
		return v, true, nil
	case h.inflight.find(id) != nil:
		h.resumeLater(ctx, c, id)
		return v, true, nil
	case v.State.Paused != "":
		return v, false, nil
	}
	now, p = h.view(ctx, c, id) // the run was in progress when v was read, and may be suspended by now
	if p == nil {
		p = now.Ended()
	}
	if p != nil {
		return nil, false, p
	}
	if goesOn = now.State.Paused == ""; goesOn && h.shared == nil {
		return nil, false, ownedElsewhere()
	}
	return now, goesOn, nil
}

// resumeHere resumes a suspended run, which then reads its stored signals. goesOn is true if another process has acquired
// the run before, and later is true if another process will acquire it.
func (h *inputHandler) resumeHere(ctx context.Context, c *caller, v *runlog.View) (goesOn, later bool, p *problem) {
	p = h.resume(ctx, c, v, nil)
	if p != nil && h.shared != nil {
		switch p.Code {
		case "run_changed":
			return true, false, nil
		case "overloaded", "draining":
			return false, true, nil
		}
	}
	return false, false, p // after a problem the signal is stored, and the client may repeat the request
}

// resume resumes a suspended run with the results of client calls in answers. The caller must have locked the run.
func (ex *runStarter) resume(ctx context.Context, c *caller, v *runlog.View, answers map[string]lathe.Output) *problem {
	if p := ex.takes(); p != nil {
		return p
	}
	if v.Stepped() != nil {
		return ex.resumeStepped(ctx, c, v, answers)
	}
	if v.State.Paused == "" {
		return ownedElsewhere()
	}
	l, p := c.loopOf(v)
	if p != nil {
		return p
	}
	setup := ex.hold(c)
	if err := ex.opts.Supervisor.Resume(ctx, l, v.State.Run.RunID, answers, newObjectNote(ex.core, c, v.State.Run.Principal).with(setup)...); err != nil {
		setup.free()
		return ex.runFailed(c, err)
	}
	return nil
}

// loopOf returns the loop of the model that the run began with.
func (c *caller) loopOf(v *runlog.View) (*loop.Loop, *problem) {
	m, p := c.model(v.State.Target)
	switch {
	case p != nil && p.Status == http.StatusNotFound:
		return nil, conflict("model_gone", "The model that the run was begun with is not configured any more.")
	case p != nil:
		return nil, p
	}
	return m.Loop, nil
}

// resumeLater resumes a run in progress as soon as it is suspended, because the run may have missed a stored signal. It
// returns at once.
func (h *inputHandler) resumeLater(ctx context.Context, c *caller, id string) {
	own := *c
	own.setup = h.work.begin()
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer h.work.end(own.setup)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(h.stopped, cancel)()
		_, _ = h.waitRun(ctx, id) // the log, which is read below, has the state of the run
		unlock, p := h.locks.lock(ctx, id)
		if p != nil {
			return // the server stops, and another process will resume the run
		}
		defer unlock()
		v, p := h.view(ctx, &own, id)
		if p == nil && v.State.Paused != "" && v.State.Finished == nil && !h.executes(id) && h.saidSince(ctx, v) {
			p = h.resume(ctx, &own, v, nil)
		}
		if p != nil {
			h.opts.Log.Error("a run could not be resumed", "run_id", id, "code", p.Code)
		}
	}()
}

// saidSince reports whether the store contains a signal that the suspended run waits for.
func (h *inputHandler) saidSince(ctx context.Context, v *runlog.View) bool {
	signals, err := h.signals.Signals(ctx, v.State.Run.RunID)
	return err == nil && slices.ContainsFunc(signals, func(f store.Signal) bool {
		o := v.OpenCall(f.Key)
		return o != nil && (f.Kind == store.SignalResult || f.Kind == store.SignalApproval && o.Asked)
	})
}

// waitLogged reads the events after v until settles returns true for one, and then returns 200. It returns 202 if the run
// ends first, is suspended first, or logTimeout is over. If goesOn is true the run is known to resume, and being suspended
// does not end the wait.
func (h *inputHandler) waitLogged(ctx context.Context, v *runlog.View, goesOn bool, settles func(event.Data) bool) (status int) {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	status = http.StatusAccepted
	x := &watch{views: h.runViews, runID: v.State.Run.RunID, last: v.State.LastID, sub: h.opts.Bus.Subscribe(v.State.Run.RunID)}
	defer func() { x.sub.Close() }()
	if !goesOn {
		x.follow = "pause"
	}
	x.sink = func(e *event.Event) {
		if settles(e.Data) {
			status = http.StatusOK
			cancel()
		}
	}
	_ = x.run(ctx)
	return status
}

// orphaned reports whether the run is in progress according to its log although no process executes it.
func (co *core) orphaned(v *runlog.View) bool {
	return v.State.Paused == "" && v.Stepped() == nil && co.shared == nil && !co.executes(v.State.Run.RunID)
}

// ownedElsewhere returns the problem of a run that another process executes, or that a process executed which has stopped.
func ownedElsewhere() *problem {
	return conflict("run_elsewhere", "The run goes on in another process, or in one that is gone.")
}

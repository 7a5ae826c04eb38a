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

// A signal (an approval, the result of a client call) is stored before the run is notified. A run in progress then reads it
// when it is suspended next, and a suspended run is resumed. The request waits until the log of the run has the effect.

// A runState says who executes a run that has a new signal.
type runState int

const (
	inProgress        runState = iota // this process or another one executes the run
	resumedHere                       // the run was suspended, and this process has resumed it
	acquiredElsewhere                 // the run was suspended, and another process has acquired it
	unowned                           // the run is suspended, and another process will acquire it
)

// A waitRule says for which runs a request waits.
type waitRule int

const (
	waitForAny       waitRule = iota
	waitForSuspended          // not for a run in progress
)

// apply makes the run read its stored signals. It returns 200 if settles has matched an event of the log, and 202 if the
// signal has not been applied yet. The caller must have locked the run.
func (h *inputHandler) apply(ctx context.Context, c *caller, v *runlog.View, wait waitRule, settles func(event.Data) bool) (int, *problem) {
	if v.Stepped() != nil {
		return h.applyStepped(ctx, c, v, WakeInput, settles)
	}
	v, state, p := h.deliver(ctx, c, v)
	switch {
	case p != nil:
		return 0, p
	case state == resumedHere:
		return h.waitLogged(ctx, v, untilPaused, settles), nil
	case state == acquiredElsewhere, state == inProgress && wait == waitForAny:
		return h.waitLogged(ctx, v, untilEnd, settles), nil
	}
	return http.StatusAccepted, nil
}

// deliver makes the run read its stored signals: it notifies a run in progress, and resumes a suspended one. It returns the
// current view of the run.
func (h *inputHandler) deliver(ctx context.Context, c *caller, v *runlog.View) (*runlog.View, runState, *problem) {
	id := v.State.Run.RunID
	if h.opts.Supervisor.Notify(id) {
		return v, inProgress, nil
	}
	if h.inflight.find(id) != nil {
		h.resumeLater(ctx, c, id)
		return v, inProgress, nil
	}
	var p *problem
	if v.State.Paused == "" { // the run was in progress when v was read, and may be suspended by now
		v, p = h.view(ctx, c, id)
		if p == nil {
			p = v.Ended()
		}
		if p == nil && v.State.Paused == "" {
			if h.shared != nil {
				return v, inProgress, nil
			}
			p = ownedElsewhere()
		}
		if p != nil {
			return nil, 0, p
		}
	}
	state, p := h.resumeHere(ctx, c, v)
	return v, state, p
}

// resumeHere resumes a suspended run. If the store is shared, another process may have acquired the run first, or will
// acquire it because this process takes no runs.
func (h *inputHandler) resumeHere(ctx context.Context, c *caller, v *runlog.View) (runState, *problem) {
	p := h.resume(ctx, c, v, nil)
	if p != nil && h.shared != nil {
		switch p.Code {
		case "run_changed":
			return acquiredElsewhere, nil
		case "overloaded", "draining":
			return unowned, nil
		}
	}
	return resumedHere, p // after a problem the signal is stored, and the client may repeat the request
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
		if p == nil && v.State.Paused != "" && v.State.Finished == nil && !h.executes(id) && h.hasInput(ctx, v) {
			p = h.resume(ctx, &own, v, nil)
		}
		if p != nil {
			h.opts.Log.Error("a run could not be resumed", "run_id", id, "code", p.Code)
		}
	}()
}

// hasInput reports whether the store contains a signal that the suspended run waits for.
func (h *inputHandler) hasInput(ctx context.Context, v *runlog.View) bool {
	signals, err := h.signals.Signals(ctx, v.State.Run.RunID)
	return err == nil && slices.ContainsFunc(signals, func(s store.Signal) bool {
		call := v.OpenCall(s.Key)
		return call != nil && (s.Kind == store.SignalResult || s.Kind == store.SignalApproval && call.Asked)
	})
}

// waitLogged reads the events after v until settles returns true for one, and then returns 200. It returns 202 if the watch
// ends first by its rule, or logTimeout is over.
func (h *inputHandler) waitLogged(ctx context.Context, v *runlog.View, until followMode, settles func(event.Data) bool) (status int) {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	status = http.StatusAccepted
	w := newWatch(h.runViews, v.State.Run.RunID, v.State.LastID, until)
	defer w.unsubscribe()
	w.sink = func(e *event.Event) {
		if settles(e.Data) {
			status = http.StatusOK
			cancel()
		}
	}
	_ = w.run(ctx)
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

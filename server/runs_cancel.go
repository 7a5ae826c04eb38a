package server

import (
	"context"
	"net/http"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/store"
)

// cancelRun handles POST /api/runs/{id}/cancel: it cancels a run that is in progress or suspended. Its open calls get the
// result `cancelled`.
func (h *inputHandler) cancelRun(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	id := r.PathValue("id")
	status, p := h.cancel(r.Context(), c, id)
	if p != nil {
		return p
	}
	return h.answerRun(w, r, c, id, status)
}

// cancel cancels a run. It returns 200 if the run has ended and 202 if cancellation was requested but has not completed.
func (h *inputHandler) cancel(ctx context.Context, c *caller, id string) (status int, p *problem) {
	for retries := 0; ; retries++ {
		status, p = h.tryCancel(ctx, c, id, retries)
		if left := gone(ctx); left != nil {
			return 0, left
		}
		if p != nil || status != cancelAgain {
			return status, p
		}
	}
}

// cancelAgain is returned instead of a status by an attempt to cancel a run whose state changed before the request reached it.
const cancelAgain = 0

// resumeRun handles POST /api/runs/{id}/resume: it resumes a suspended run, such as one that was interrupted within a call.
// If the input of the run is still missing, the run is suspended again: so is one that waits for an approval.
func (h *inputHandler) resumeRun(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	id := r.PathValue("id")
	unlock, p := h.locks.lock(r.Context(), id)
	if p != nil {
		return p
	}
	defer unlock()
	v, p := h.viewAs(r.Context(), c, id, c.sees)
	if p == nil {
		p = v.Ended()
	}
	if p == nil && (h.executes(id) || v.Stepped() != nil && v.State.Paused == "") {
		p = conflict("run_running", "The run goes on already.")
	}
	if p == nil {
		p = h.resume(r.Context(), c, v, nil)
	}
	if p != nil {
		return p
	}
	return h.answerRun(w, r, c, id, http.StatusAccepted)
}

// tryCancel makes one attempt to cancel a run. It returns the status of cancel, or cancelAgain if the caller must try again.
// retries is the number of earlier attempts.
func (h *inputHandler) tryCancel(ctx context.Context, c *caller, id string, retries int) (status int, p *problem) {
	unlock, p := h.locks.lock(ctx, id)
	if p != nil {
		return 0, p
	}
	defer unlock()
	v, p := h.viewAs(ctx, c, id, c.sees)
	if p != nil {
		return 0, p
	}
	finished := v.State.Finished
	if retries > 0 && finished != nil && finished.Reason == lathe.ReasonCancelled { // an earlier attempt has cancelled it
		h.withdraw(id)
		return http.StatusOK, nil
	}
	if p = v.Ended(); p == nil {
		p = h.checkExecutor(v)
	}
	if p != nil {
		return 0, p
	}
	if h.orphaned(v) {
		return h.rereadRun(ctx, c, v)
	}
	// The signal is stored before the run is notified: if the process that owns the run ends first, the next owner reads it.
	if err := h.signals.PutSignal(ctx, store.Signal{RunID: id, Kind: store.SignalCancel}); err != nil && lathe.CodeOf(err) != lathe.CodeConflict {
		return 0, h.runFailed(c, err)
	}
	if v.Stepped() != nil {
		return h.cancelStepped(ctx, c, v)
	}
	if h.interrupt(id) {
		return h.awaitCancelled(ctx, id)
	}
	switch {
	case v.State.Paused == "" && h.shared == nil: // the run was suspended in the meantime, or has ended
		return cancelAgain, nil
	case v.State.Paused == "":
		return h.cancelElsewhere(ctx, c, v)
	}
	return h.cancelSuspended(ctx, c, v)
}

// awaitCancelled waits at most logTimeout for the end of a run that this process executes and whose cancellation was
// requested. Its results are those of tryCancel.
func (h *inputHandler) awaitCancelled(ctx context.Context, id string) (status int, p *problem) {
	wait, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	res, ok := h.waitRun(wait, id)
	switch {
	case ok && res == nil:
		return http.StatusAccepted, nil
	case ok && res.Reason == lathe.ReasonCancelled:
		h.withdraw(id)
		return http.StatusOK, nil
	}
	return cancelAgain, nil
}

// cancelSuspended cancels a run that no process executes. Its results are those of tryCancel.
func (h *inputHandler) cancelSuspended(ctx context.Context, c *caller, v *runlog.View) (status int, p *problem) {
	id := v.State.Run.RunID
	l, p := c.loopOf(v)
	if p != nil {
		return 0, p
	}
	res, err := h.opts.Engine.Cancel(ctx, l, id)
	switch {
	case err != nil && h.shared != nil && lathe.CodeOf(err) == lathe.CodeConflict:
		return h.cancelElsewhere(ctx, c, v)
	case err != nil:
		return 0, h.runFailed(c, err)
	}
	if res.Reason != lathe.ReasonCancelled {
		return 0, conflict("run_changed", "The run has moved on; look at it again.")
	}
	h.withdraw(id)
	return http.StatusOK, nil
}

// cancelElsewhere waits at most logTimeout until the process that owns the run, or acquires it, ends or suspends the run.
// Its results are those of tryCancel.
func (h *inputHandler) cancelElsewhere(ctx context.Context, c *caller, v *runlog.View) (status int, p *problem) {
	id := v.State.Run.RunID
	owner, err := h.shared.Owner(ctx, id)
	switch {
	case err != nil:
		return 0, h.runFailed(c, err)
	case owner == "" && !v.Summary.Run.Resumable:
		return h.rereadRun(ctx, c, v)
	}
	h.opts.Supervisor.Notify(id) // this process may have acquired the run
	status = h.waitLogged(ctx, v, untilEnd, func(d event.Data) bool {
		switch d.(type) {
		case *event.RunFinished, *event.RunPaused: // the run may have been suspended and released before the signal was stored
			return true
		default:
			return false
		}
	})
	if status == http.StatusOK {
		return cancelAgain, nil // the next attempt reads from the log that the run has ended, or cancels it here
	}
	return status, nil
}

// rereadRun reads the log of a run again. It is called if the run was in progress according to its log but this process
// does not execute it: the run may have ended or been suspended in between. If the log is unchanged, rereadRun returns a
// problem, and otherwise cancelAgain.
func (h *inputHandler) rereadRun(ctx context.Context, c *caller, v *runlog.View) (status int, p *problem) {
	now, p := h.viewAs(ctx, c, v.State.Run.RunID, c.sees)
	if p == nil && now.State.LastID == v.State.LastID {
		p = ownedElsewhere()
	}
	return cancelAgain, p
}

// withdraw removes the approval requests and the grants of a run that has ended.
func (co *core) withdraw(id string) {
	if co.opts.Approvals != nil {
		co.opts.Approvals.Withdraw(id)
	}
}

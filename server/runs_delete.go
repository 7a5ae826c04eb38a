package server

import (
	"context"
	"net/http"

	"github.com/lathe-run/lathe/store"
)

// deleteRun handles DELETE /api/runs/{id}: it deletes a run that has ended or is suspended from the store.
func (h *removalHandler) deleteRun(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	return answerRemoved(w, h.remove(r.Context(), c, r.PathValue("id")))
}

// deleteSession handles DELETE /api/sessions/{id}: it deletes all runs of the caller's session and its title. Sessions of
// other principals with the same id are not changed.
func (h *removalHandler) deleteSession(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	n, p := h.removeAll(r.Context(), c, &store.RunFilter{SessionID: r.PathValue("id"), Principal: c.key.Name})
	if p == nil && n == 0 {
		p = noSession()
	}
	if p == nil {
		p = h.storeFailed(c, h.dropTitles(r.Context(), c.key.Name, r.PathValue("id")))
	}
	return answerRemoved(w, p)
}

// deletePrincipal handles DELETE /api/principals/{name}: it deletes all runs of the principal, and what the store retains
// of its deleted runs. A caller other than an admin may only delete its own.
func (h *removalHandler) deletePrincipal(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	name := r.PathValue("name")
	if !c.key.isAdmin() && c.key.Name != name {
		return notFound("principal_not_found", "A key removes what was made for it, by its own name.")
	}
	_, p := h.removeAll(r.Context(), c, &store.RunFilter{Principal: name})
	if turnOwner, ok := h.opts.Index.(store.Retainer); ok && p == nil {
		p = h.storeFailed(c, turnOwner.DeletePrincipal(r.Context(), name))
	}
	if p == nil {
		p = h.storeFailed(c, h.dropTitles(r.Context(), name, ""))
	}
	return answerRemoved(w, p)
}

func answerRemoved(w http.ResponseWriter, p *problem) *problem {
	if p != nil {
		return p
	}
	return answerNothing(w)
}

// removeAll deletes all runs that match f, including those that begin meanwhile, and returns their number. If one of them
// is in progress it returns a problem and deletes none of that pass.
func (h *removalHandler) removeAll(ctx context.Context, c *caller, f *store.RunFilter) (n int, p *problem) {
	for {
		ids, p := h.resting(ctx, c, f)
		if p != nil || len(ids) == 0 {
			return n, p
		}
		for _, id := range ids {
			p := h.remove(ctx, c, id)
			if p == nil {
				n++
			} else if !p.Absent() { // if it is absent, another request has deleted it
				return n, p
			}
		}
		c.runID = ""
	}
}

// resting returns the ids of all runs that match f, or a problem if one of them is in progress.
func (h *removalHandler) resting(ctx context.Context, c *caller, f *store.RunFilter) (ids []string, p *problem) {
	if err := h.opts.Engine.Flush(ctx, ""); err != nil { // events in memory would be stored after the deletion
		return nil, h.storeFailed(c, err)
	}
	for run, err := range f.All(ctx, h.opts.Index) {
		switch {
		case err != nil:
			return nil, h.storeFailed(c, err)
		case run.Status == "running", h.executes(run.RunID):
			return nil, conflict("run_running", "The run %s goes on: cancel it first.", run.RunID)
		}
		ids = append(ids, run.RunID)
	}
	return ids, nil
}

// remove deletes a run of the caller that is suspended or has ended, after the deletion was written to the audit log.
func (h *removalHandler) remove(ctx context.Context, c *caller, id string) *problem {
	unlock, p := h.locks.lock(ctx, id)
	if p != nil {
		return p
	}
	defer unlock()
	v, p := h.viewAs(ctx, c, id, c.sees)
	switch {
	case p != nil:
		return p
	case h.executes(id), !v.Rests():
		return conflict("run_running", "The run goes on: cancel it first.")
	}
	if h.opts.Removing != nil {
		if err := h.opts.Removing(ctx, c.key.Name, &v.State.Run); err != nil {
			return h.storeFailed(c, err)
		}
	}
	if err := h.opts.Index.Delete(ctx, id); err != nil {
		return h.runFailed(c, err)
	}
	h.withdraw(id)
	if v.Stepped() != nil && v.State.Finished == nil && h.checkExecutor(v) == nil {
		_ = h.wake(ctx, c, v, WakeCancel) // the executor stops when it finds that the run does not exist
	}
	return nil
}

package server

import (
	"context"
	"net/http"

	"github.com/lathe-run/lathe/store"
)

// deleteRun removes a run that does not go on from the store, for good.
func (h *removalHandler) deleteRun(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	return removed(w, h.remove(r.Context(), c, r.PathValue("id")))
}

// deleteSession removes the caller's runs of a session. Those of others who call theirs the same are not seen.
func (h *removalHandler) deleteSession(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	n, p := h.removeAll(r.Context(), c, &store.RunFilter{SessionID: r.PathValue("id"), Principal: c.key.Name})
	switch {
	case p != nil:
	case n == 0:
		p = noSession()
	default:
		if err := h.dropTitles(r.Context(), c.key.Name, r.PathValue("id")); err != nil {
			p = h.storeFailed(c, err)
		}
	}
	return removed(w, p)
}

// deletePrincipal removes all runs that were made for the caller, and what is remembered of those that are gone.
// Who needs no key may name anybody.
func (h *removalHandler) deletePrincipal(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	name := r.PathValue("name")
	if !c.key.isAdmin() && c.key.Name != name {
		return notFound("principal_not_found", "A key removes what was made for it, by its own name.")
	}
	_, p := h.removeAll(r.Context(), c, &store.RunFilter{Principal: name})
	if turnOwner, ok := h.opts.Index.(store.Retainer); ok && p == nil {
		if err := turnOwner.DeletePrincipal(r.Context(), name); err != nil {
			p = h.storeFailed(c, err)
		}
	}
	if p == nil {
		if err := h.dropTitles(r.Context(), name, ""); err != nil {
			p = h.storeFailed(c, err)
		}
	}
	return removed(w, p)
}

// removed answers a request to remove something.
func removed(w http.ResponseWriter, p *problem) *problem {
	if p != nil {
		return p
	}
	return answerNothing(w)
}

// removeAll removes the runs that fit, those that begin meanwhile, too, and returns how many they were. While one
// of them goes on it removes none.
func (h *removalHandler) removeAll(ctx context.Context, c *caller, f *store.RunFilter) (n int, p *problem) {
	for {
		ids, p := h.resting(ctx, c, f)
		if p != nil || len(ids) == 0 {
			return n, p
		}
		for _, id := range ids {
			switch p := h.remove(ctx, c, id); {
			case p != nil && (p.Code == noRun().Code || p.Status == http.StatusGone): // another request has deleted it
			case p != nil:
				return n, p
			default:
				n++
			}
		}
		c.runID = ""
	}
}

// resting returns the runs that fit, or says that one of them goes on.
func (h *removalHandler) resting(ctx context.Context, c *caller, f *store.RunFilter) (ids []string, p *problem) {
	page := *f
	page.Limit = maxPage
	if err := h.opts.Engine.Flush(ctx, ""); err != nil { // events in memory would be stored after the deletion
		return nil, h.storeFailed(c, err)
	}
	for {
		rows, next, err := h.opts.Index.Runs(ctx, &page)
		if err != nil {
			return nil, h.storeFailed(c, err)
		}
		for i := range rows {
			if rows[i].Status == "running" || h.executes(rows[i].RunID) {
				return nil, conflict("run_running", "The run %s goes on: cancel it first.", rows[i].RunID)
			}
			ids = append(ids, rows[i].RunID)
		}
		if page.After = next; next == "" {
			return ids, nil
		}
	}
}

// remove removes a run of the caller's that waits or has ended, after that was written into the audit log.
func (h *removalHandler) remove(ctx context.Context, c *caller, id string) *problem {
	unlock, p := h.locks.lock(ctx, id)
	if p != nil {
		return p
	}
	defer unlock()
	v, p := h.viewAny(ctx, c, id)
	switch {
	case p != nil:
		return p
	case h.executes(id), v.State.Paused == "" && v.State.Finished == nil:
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
	if v.Stepped() != nil && v.State.Finished == nil && h.reaches(v) == nil {
		_ = h.wake(ctx, c, v, WakeCancel) // its executor finds that it is gone
	}
	return nil
}

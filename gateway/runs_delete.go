package gateway

import (
	"context"
	"net/http"

	"github.com/lathe-run/lathe"
)

// deleteRun removes a run that does not go on from the store, for good.
func (g *Gateway) deleteRun(w http.ResponseWriter, r *http.Request, c *caller) {
	g.removed(w, c, g.remove(r.Context(), c, r.PathValue("id")))
}

// deleteSession removes the caller's runs of a session. Those of others who call theirs the same are not seen.
func (g *Gateway) deleteSession(w http.ResponseWriter, r *http.Request, c *caller) {
	n, p := g.removeAll(r.Context(), c, &lathe.RunFilter{SessionID: r.PathValue("id"), Principal: c.key.Name})
	if n == 0 && p == nil {
		p = &problem{Status: http.StatusNotFound, Code: "session_not_found", Message: "There is no such session."}
	}
	g.removed(w, c, p)
}

// deletePrincipal removes all runs that were made for the caller, and what is remembered of those that are gone.
// Who needs no key may name anybody.
func (g *Gateway) deletePrincipal(w http.ResponseWriter, r *http.Request, c *caller) {
	name := r.PathValue("name")
	if c.key.Name != "" && c.key.Name != name {
		g.removed(w, c, &problem{Status: http.StatusNotFound, Code: "principal_not_found", Message: "A key removes what was made for it, by its own name."})
		return
	}
	_, p := g.removeAll(r.Context(), c, &lathe.RunFilter{Principal: name})
	if keeper, ok := g.opts.Index.(lathe.Retainer); ok && p == nil {
		if err := keeper.DeletePrincipal(r.Context(), name); err != nil {
			p = g.storeFailed(c, err)
		}
	}
	g.removed(w, c, p)
}

// removed answers a request to remove something.
func (g *Gateway) removed(w http.ResponseWriter, c *caller, p *problem) {
	if p != nil {
		c.fail(w, p)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
}

// removeAll removes the runs that fit, those that begin meanwhile, too, and returns how many they were. While one
// of them goes on it removes none.
func (g *Gateway) removeAll(ctx context.Context, c *caller, f *lathe.RunFilter) (n int, p *problem) {
	for {
		ids, p := g.resting(ctx, c, f)
		if p != nil || len(ids) == 0 {
			return n, p
		}
		for _, id := range ids {
			switch p := g.remove(ctx, c, id); {
			case p != nil && (p.Code == noRun().Code || p.Status == http.StatusGone): // somebody else did
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
func (g *Gateway) resting(ctx context.Context, c *caller, f *lathe.RunFilter) (ids []string, p *problem) {
	page := *f
	page.Limit = maxPage
	if err := g.opts.Engine.Settle(ctx, ""); err != nil { // what goes on and is not stored yet would be stored afterwards
		return nil, g.storeFailed(c, err)
	}
	for {
		rows, next, err := g.opts.Index.Runs(ctx, &page)
		if err != nil {
			return nil, g.storeFailed(c, err)
		}
		for i := range rows {
			if rows[i].Status == "running" || g.carries(rows[i].RunID) {
				return nil, conflict("run_running", "The run "+rows[i].RunID+" goes on: cancel it first.")
			}
			ids = append(ids, rows[i].RunID)
		}
		if page.After = next; next == "" {
			return ids, nil
		}
	}
}

// remove removes a run of the caller's that waits or has ended, after that was written into the audit log.
func (g *Gateway) remove(ctx context.Context, c *caller, id string) *problem {
	unlock, err := g.held.lock(ctx, id)
	if err != nil {
		return conflict("run_changed", "The run is at work.") // the client left
	}
	defer unlock()
	v, p := g.view(ctx, c, id)
	switch {
	case p != nil:
		return p
	case g.carries(id), v.state.Paused == "" && v.state.Finished == nil:
		return conflict("run_running", "The run goes on: cancel it first.")
	}
	if g.opts.Removing != nil {
		if err := g.opts.Removing(ctx, c.key.Name, &v.state.Run); err != nil {
			return g.storeFailed(c, err)
		}
	}
	if err := g.opts.Index.Delete(ctx, id); err != nil {
		return g.runFailed(c, err)
	}
	g.withdraw(id)
	return nil
}

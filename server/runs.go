package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	problems "github.com/lathe-run/lathe/internal/gateway/problem"
	"github.com/lathe-run/lathe/internal/gateway/runlog"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/store"
)

// Runs under /api/runs continue without their client, can be watched from any event, and stay suspended without a time
// limit until they get approvals and results of client tools. The state of a run is computed from its log, which is read
// once for each request. A run of another principal is reported as not found.

// view reads the log of a run that the caller owns, for a request about this run: see viewAs.
func (rv *runViews) view(ctx context.Context, c *caller, id string) (*runlog.View, *problem) {
	return rv.viewAs(ctx, c, id, c.owns)
}

// viewAs reads the log of a run for a request about this run: the log line of the request then names the run. The function may, such as
// [caller.sees], reports whether the caller may read the runs of a principal.
func (rv *runViews) viewAs(ctx context.Context, c *caller, id string, may func(principal string) bool) (*runlog.View, *problem) {
	v, p := rv.readRun(ctx, c, id, may)
	if p == nil {
		c.runID, c.named = id, v.Summary.Run.Target
	}
	return v, p
}

// viewOther reads the log of a run that the caller owns, for a request about another run: the log line does not name this one.
func (rv *runViews) viewOther(ctx context.Context, c *caller, id string) (*runlog.View, *problem) {
	return rv.readRun(ctx, c, id, c.owns)
}

// readRun reads the log of a run for viewAs and viewOther. If the function may returns false, the run is reported as not found.
func (rv *runViews) readRun(ctx context.Context, c *caller, id string, may func(principal string) bool) (*runlog.View, *problem) {
	_ = rv.opts.Engine.Flush(ctx, id) // if the store fails, the read below reports it
	v, err := runlog.Read(ctx, rv.opts.Index, id, func(d *event.RunStarted) bool { return may(d.Principal) })
	switch {
	case err != nil:
		return nil, rv.runFailed(c, err)
	case v == nil:
		return nil, noRun()
	}
	return v, nil
}

// owns reports whether the caller is the principal. A caller without a key owns every run.
func (c *caller) owns(principal string) bool { return c.key.Name == "" || c.key.Name == principal }

// sees reports whether the caller may see and change the runs of the principal: its own runs and, for an admin, every run.
func (c *caller) sees(principal string) bool { return c.owns(principal) || c.key.isAdmin() }

// noRun returns the problem of a run that does not exist or that the caller may not see.
func noRun() *problem {
	return notFound("run_not_found", "There is no such run.")
}

// runFailed returns the problem for an error of the store about a run; nil if err is nil.
func (co *core) runFailed(c *caller, err error) *problem {
	switch lathe.CodeOf(err) {
	case lathe.CodeNotFound:
		var gone *store.GoneError
		if errors.As(err, &gone) && (c.key.isAdmin() || c.key.Name == gone.Principal) {
			return problems.New(http.StatusGone, "run_gone", "The run was removed on %s: runs that have ended are kept for a bounded time.", gone.Time.Format(time.RFC3339))
		}
		return noRun()
	case lathe.CodeConflict:
		return conflict("run_changed", "The run has moved on; look at it again.")
	}
	return noAnswer(co.opts.Log, c, err)
}

// A runBody is the JSON of a run in responses.
type runBody struct {
	store.RunSummary
	Labels    map[string]string `json:"labels,omitempty"`
	Open      []openCall        `json:"open_calls"`
	Decisions []runlog.Decision `json:"decisions,omitempty"`
	Answer    string            `json:"answer,omitempty"`
	// ErrorMessage is the error text of the model server, if the run ended with upstream_error.
	ErrorMessage string `json:"error_message,omitempty"`
	Limit        string `json:"limit,omitempty"` // the key of the limit that ended the run
	Replays      string `json:"replays,omitempty"`
}

// body returns the JSON of a run for the caller, with its open calls if it has not ended.
func (rv *runViews) body(ctx context.Context, c *caller, v *runlog.View) *runBody {
	b := &runBody{RunSummary: v.Summary.Run, Labels: shownLabels(v.State.Run.Labels), Open: []openCall{}, Decisions: rv.decisionsOf(ctx, v), Replays: v.State.Replays}
	if f := v.State.Finished; f != nil {
		b.Answer, b.Limit = f.Answer, f.Limit
		if f.Reason == lathe.ReasonUpstreamError {
			b.ErrorMessage = v.State.ErrorMessage
		}
		return b
	}
	b.Open = rv.openCalls(c, v)
	return b
}

// listRuns handles GET /api/runs. With questions=true each row has the question of its run and its answer. A request that
// must read the logs of runs takes the lock of scan.
func (h *runsHandler) listRuns(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	f, q, p := c.runQuery(r, h.opts.Now())
	if p != nil {
		return p
	}
	withQuestions := r.URL.Query().Get("questions") == "true"
	if withQuestions || *q != (store.RunQuery{}) {
		unlock, p := h.scan(r.Context(), c)
		if p != nil {
			return p
		}
		defer unlock()
	}
	_ = h.opts.Engine.Flush(r.Context(), "") // if the store fails, the list below reports it
	rows, next, truncated, err := store.Find(r.Context(), h.opts.Index, f, q)
	if err != nil {
		return h.storeFailed(c, err)
	}
	if !withQuestions {
		return answerPart(w, rows, next, truncated)
	}
	asked := make([]askedRow, len(rows))
	for i := range rows {
		d := begun(r.Context(), h.opts.Index, rows[i].RunID)
		newest := ""
		if all := questions(d); len(all) > 0 {
			newest = all[len(all)-1]
		}
		asked[i] = askedRow{rows[i], newest, finalAnswer(r.Context(), h.opts.Index, &rows[i]), d.Replays}
	}
	return answerPart(w, asked, next, truncated)
}

// An askedRow is a row of the list of runs with the beginnings of the question that the run answers and of its answer, and the run that it repeats.
type askedRow struct {
	store.RunSummary
	Question string `json:"question"`
	Answer   string `json:"answer,omitempty"`
	Replays  string `json:"replays,omitempty"`
}

// finalAnswer returns what lists show of the answer of a run; "" if the run has not ended, has no answer, or the store has no text of it.
func finalAnswer(ctx context.Context, index store.RunIndex, r *store.RunSummary) string {
	d, ok := eventAfter(ctx, index, r.RunID, r.LastID-1).(*event.RunFinished)
	if !ok {
		return "" // the run continues, or was deleted meanwhile
	}
	return text.Clip(strings.Join(strings.Fields(d.Answer), " "), maxSessionTitle)
}

// showRun handles GET /api/runs/{id}.
func (h *runsHandler) showRun(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	return h.answerDecider(w, r, c, http.StatusOK)
}

// answerDecider writes the current state of the run in the path with the status, for every caller that may see the run or decide about its
// calls. An approver who does not own the run sees it without answer and labels, and only if it has requests for approval.
func (rv *runViews) answerDecider(w http.ResponseWriter, r *http.Request, c *caller, status int) *problem {
	v, p := rv.viewToDecide(r.Context(), c, r.PathValue("id"))
	sees := p == nil && c.sees(v.State.Run.Principal)
	if p == nil && !sees && len(v.Requests) == 0 {
		p = noRun()
	}
	if p != nil {
		c.runID, c.named = "", "" // the log line does not name a run that the caller does not see
		return p
	}
	b := rv.body(r.Context(), c, v)
	if !sees {
		b.Answer, b.Labels = "", nil
	}
	return answerAs(w, status, b)
}

// answerRun writes the current state of a run that the caller sees with the status.
func (rv *runViews) answerRun(w http.ResponseWriter, r *http.Request, c *caller, id string, status int) *problem {
	v, p := rv.viewAs(r.Context(), c, id, c.sees)
	if p != nil {
		return p
	}
	return answerAs(w, status, rv.body(r.Context(), c, v))
}

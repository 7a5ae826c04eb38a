package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/text"
	"github.com/lathe-run/lathe/store"
)

const (
	// maxSessionRuns is the number of runs, newest first, that a request for sessions reads: older sessions are not listed.
	maxSessionRuns = 10_000
	// maxSessionTitle is the maximum length of a title in bytes.
	maxSessionTitle = 120
	// sessionPage is the default number of sessions in a page.
	sessionPage = 50
)

// A sessionRow is the JSON of one session of the caller: the runs with the same session id.
type sessionRow struct {
	ID      string    `json:"session_id"`
	Title   string    `json:"title"` // the title that the user gave, else the beginning of the first question; "" if the store has no text of it
	Started time.Time `json:"started"`
	Updated time.Time `json:"updated"`
	Status  string    `json:"status"` // the status of the newest run
	Model   string    `json:"model"`  // the model of the newest run
	Runs    int       `json:"runs"`
	first   string    // the id of the oldest run
}

// listSessions handles GET /api/sessions: the caller's sessions, sorted by their newest run, newest first. Sessions of
// other keys are not listed, even for an admin key.
func (h *sessionsHandler) listSessions(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	f, p := c.filter(r)
	if p != nil {
		return p
	}
	limit, after, search := f.Limit, f.After, strings.ToLower(r.URL.Query().Get("q"))
	if limit == 0 {
		limit = sessionPage
	}
	unlock, p := h.scan(r.Context(), c)
	if p != nil {
		return p
	}
	defer unlock()
	all, whole, err := h.sessionsOf(r.Context(), c.key.Name)
	if err != nil {
		return h.storeFailed(c, err)
	}
	known := make(map[string]bool, len(all))
	for i := range all {
		known[all[i].ID] = true
	}
	if !whole {
		known = nil // there may be older sessions, whose titles must stay
	}
	titles, err := h.titles(r.Context(), c.key.Name, known)
	if err != nil {
		return h.storeFailed(c, err)
	}
	if after != "" {
		at := slices.IndexFunc(all, func(s sessionRow) bool { return s.ID == after })
		if at < 0 {
			return badRequest("after", "There is no such session: begin with the first page.")
		}
		all = all[at+1:]
	}
	var page []sessionRow
	next := ""
	for _, s := range all {
		if s.Title = titles[s.ID]; s.Title == "" { // the log is read only if no title was given
			s.Title = h.title(r.Context(), s.first)
		}
		if !strings.Contains(strings.ToLower(s.Title), search) {
			continue
		}
		if len(page) == limit {
			next = page[limit-1].ID
			break
		}
		page = append(page, s)
	}
	return answerList(w, page, next, false)
}

// sessionsOf returns the sessions of a principal without their titles, the one with the newest run first. whole is false if
// maxSessionRuns was reached, so older sessions may be missing.
func (h *sessionsHandler) sessionsOf(ctx context.Context, principal string) (all []sessionRow, whole bool, err error) {
	at := map[string]int{}
	f := &store.RunFilter{Principal: principal, Limit: maxPage}
	for seen := 0; seen < maxSessionRuns; {
		rows, next, err := h.opts.Index.Runs(ctx, f)
		if err != nil {
			return nil, false, err
		}
		seen += len(rows)
		for i := range rows {
			r := &rows[i]
			if r.SessionID == "" || r.ParentRunID != "" {
				continue
			}
			n, ok := at[r.SessionID]
			if !ok {
				n = len(all)
				at[r.SessionID] = n
				all = append(all, sessionRow{ID: r.SessionID, Updated: r.Updated, Status: r.Status, Model: r.Model})
			}
			s := &all[n]
			s.Runs, s.Started, s.first = s.Runs+1, r.Started, r.RunID
		}
		if f.After = next; next == "" {
			return all, true, nil
		}
	}
	return all, false, nil
}

// title returns the beginning of the first question of a run; "" if the store has no text of it.
func (h *sessionsHandler) title(ctx context.Context, runID string) string {
	for e, err := range h.opts.Index.Read(ctx, runID, 0) {
		d, ok := e.Data.(*event.RunStarted)
		if err != nil || !ok {
			return "" // the run was deleted in the meantime
		}
		for i := range d.Messages {
			if d.Messages[i].Role == lathe.RoleUser {
				return text.Clip(strings.Join(strings.Fields(d.Messages[i].Text()), " "), maxSessionTitle)
			}
		}
		return ""
	}
	return ""
}

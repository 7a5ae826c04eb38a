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
	// maxSessionRuns bounds the runs that a request for sessions looks at, the newest first: older sessions are not listed.
	maxSessionRuns = 10_000
	// maxSessionTitle is the length of a title in bytes.
	maxSessionTitle = 120
	// sessionPage is the number of sessions in a page if the request names none.
	sessionPage = 50
)

// A sessionRow is one session of the caller: the runs that were given its id.
type sessionRow struct {
	ID      string    `json:"session_id"`
	Title   string    `json:"title"` // that was given, else of the first question; empty if its text is not kept
	Started time.Time `json:"started"`
	Updated time.Time `json:"updated"`
	Status  string    `json:"status"` // of the newest run
	Model   string    `json:"model"`  // of the newest run
	Runs    int       `json:"runs"`
	first   string    // the id of its oldest run
}

// listSessions answers with the caller's sessions, the one with the newest run first. Those of other keys are not listed,
// not for an admin key either.
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
		known = nil // others may be older
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
		if s.Title = titles[s.ID]; s.Title == "" { // else no event is read
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

// sessionsOf returns the sessions of a principal without their titles, the one with the newest run first, and whether these
// are all of them.
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

// title returns the beginning of the first question of a run, "" if its text is not kept.
func (h *sessionsHandler) title(ctx context.Context, runID string) string {
	for e, err := range h.opts.Index.Read(ctx, runID, 0) {
		d, ok := e.Data.(*event.RunStarted)
		if err != nil || !ok {
			return "" // it was removed meanwhile
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

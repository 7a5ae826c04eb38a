package server

import (
	"cmp"
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
	Pinned  bool      `json:"pinned,omitempty"` // the user pinned the session: it is listed before the others
	first   string    // the id of the oldest run
}

// listSessions handles GET /api/sessions: the caller's sessions, the pinned ones first, and otherwise sorted by their newest run, newest
// first. Sessions of other keys are not listed, even for an admin key.
func (h *sessionsHandler) listSessions(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	f, p := c.filter(r)
	if p != nil {
		return p
	}
	limit, after, search := cmp.Or(f.Limit, sessionPage), f.After, strings.ToLower(r.URL.Query().Get("q"))
	if len(search) > maxSearchText {
		return badRequest("q", "q may have %d bytes.", maxSearchText)
	}
	unlock, p := h.scan(r.Context(), c)
	if p != nil {
		return p
	}
	defer unlock()
	all, complete, err := h.sessionsOf(r.Context(), c.key.Name)
	if err != nil {
		return h.storeFailed(c, err)
	}
	var known map[string]bool // stays nil if there may be older sessions, whose titles must stay
	if complete {
		known = map[string]bool{}
		for i := range all {
			known[all[i].ID] = true
		}
	}
	titles, err := h.titles(r.Context(), c.key.Name, known)
	if err != nil {
		return h.storeFailed(c, err)
	}
	matching, searchedAll, err := h.sessionsWith(r.Context(), c.key.Name, search)
	if err != nil {
		return h.storeFailed(c, err)
	}
	pinnedFirst(all, titles)
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
		s.Title, s.Pinned = titles[s.ID].Title, titles[s.ID].Pinned
		if s.Title == "" { // the log is read only if no title was given
			s.Title = cmp.Or(questions(begun(r.Context(), h.opts.Index, s.first))...)
		}
		if !matching[s.ID] && !strings.Contains(strings.ToLower(s.Title), search) {
			continue
		}
		if len(page) == limit {
			next = page[limit-1].ID
			break
		}
		page = append(page, s)
	}
	return answerPart(w, page, next, !complete || !searchedAll)
}

// pinnedFirst moves the pinned sessions before the others.
func pinnedFirst(all []sessionRow, titles map[string]sessionTitle) {
	rank := func(s sessionRow) int {
		if titles[s.ID].Pinned {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b sessionRow) int { return rank(a) - rank(b) })
}

// sessionsOf returns the sessions of a principal without their titles, the one with the newest run first. complete is false
// if maxSessionRuns was reached, so older sessions may be missing.
func (h *sessionsHandler) sessionsOf(ctx context.Context, principal string) (all []sessionRow, complete bool, err error) {
	at := map[string]int{} // the index in all, by session id
	f := &store.RunFilter{Principal: principal}
	seen := 0
	for r, err := range f.All(ctx, h.opts.Index) {
		if err != nil {
			return nil, false, err
		}
		if seen++; seen > maxSessionRuns {
			return all, false, nil
		}
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
	return all, true, nil
}

// sessionsWith returns the ids of the sessions of a principal that have a run with the text. It reads one page of the search;
// complete is false if there are more. For "" it returns none.
func (h *sessionsHandler) sessionsWith(ctx context.Context, principal, text string) (ids map[string]bool, complete bool, err error) {
	if text == "" {
		return nil, true, nil
	}
	rows, next, _, err := store.Find(ctx, h.opts.Index, &store.RunFilter{Principal: principal, Limit: maxPage}, &store.RunQuery{Text: text})
	ids = map[string]bool{}
	for i := range rows {
		ids[rows[i].SessionID] = true
	}
	return ids, next == "", err
}

// eventAfter returns the data of the event that follows the one with the id after; nil if none exists, as when the run was
// deleted in the meantime.
func eventAfter(ctx context.Context, index store.RunIndex, runID string, after int64) event.Data {
	for e, err := range index.Read(ctx, runID, after) {
		if err == nil {
			return e.Data
		}
		break
	}
	return nil
}

// begun returns the first event of a run; an empty one if the run was deleted in the meantime.
func begun(ctx context.Context, index store.RunIndex, runID string) *event.RunStarted {
	if d, ok := eventAfter(ctx, index, runID, 0).(*event.RunStarted); ok {
		return d
	}
	return &event.RunStarted{}
}

// questions returns what lists show of each message of the user in the conversation that a run began with; "" for a message
// of which the store has no text.
func questions(d *event.RunStarted) (titles []string) {
	for i := range d.Messages {
		if d.Messages[i].Role == lathe.RoleUser {
			titles = append(titles, titleOf(&d.Messages[i]))
		}
	}
	return titles
}

// titleOf returns the first line of the first text of a question, at most maxSessionTitle bytes. A text file that a page attached is a text that
// begins with its name, a colon and a fence; its line is the name. A question without text has the name of its first file.
func titleOf(m *lathe.Message) (title string) {
	for _, part := range m.Parts {
		switch p := part.(type) {
		case lathe.Text:
			line, rest, _ := strings.Cut(strings.TrimSpace(p.Text), "\n")
			if strings.HasPrefix(rest, "```") {
				line = strings.TrimSuffix(line, ":")
			}
			if line = strings.Join(strings.Fields(line), " "); line != "" {
				return text.Clip(line, maxSessionTitle)
			}
		case lathe.Blob:
			title = cmp.Or(title, text.Clip(p.Name, maxSessionTitle))
		default: // says nothing of what was asked
		}
	}
	return title
}

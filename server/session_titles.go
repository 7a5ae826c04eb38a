package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe/store"
)

// Titles that users give to sessions are values of the store. Their names contain hashes of the principal and of the
// session id. A title is text of a user, so it is deleted with the session and with the principal. If the last run of the
// session was deleted in another way, the next request for the list of sessions deletes the title.

const titlePrefix = "session_title/"

// A sessionTitle is the stored JSON of the title and the pin that a user gave a session.
type sessionTitle struct {
	Session string `json:"session"`
	Title   string `json:"title"`
	Pinned  bool   `json:"pinned,omitempty"`
}

// shortHash returns the first 16 bytes of the SHA-256 of s in hexadecimal.
func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

// titlesOf returns the prefix of the names under which the titles of a principal are stored.
func titlesOf(principal string) string { return titlePrefix + shortHash(principal) + "/" }

func titleName(principal, session string) string { return titlesOf(principal) + shortHash(session) }

// titles returns the titles and pins that a principal gave, by session id. If known is not nil, titles of sessions that are not in
// it are deleted.
func (h *sessionsHandler) titles(ctx context.Context, principal string, known map[string]bool) (map[string]sessionTitle, error) {
	values, ok := h.opts.Index.(store.ValueKeeper)
	if !ok {
		return nil, nil
	}
	kept, err := values.Values(ctx, titlesOf(principal))
	out := map[string]sessionTitle{}
	for name, raw := range kept {
		var t sessionTitle
		if json.Unmarshal(raw, &t) == nil && (known == nil || known[t.Session]) {
			out[t.Session] = t
		} else if known != nil {
			_ = values.SetValue(ctx, name, nil) // if it fails, the next request for the list deletes the title
		}
	}
	return out, err
}

// dropTitles deletes the title of a session of the principal or, if session is "", all its titles.
func (h *sessionsHandler) dropTitles(ctx context.Context, principal, session string) error {
	values, ok := h.opts.Index.(store.ValueKeeper)
	if !ok {
		return nil
	}
	if session != "" {
		return values.SetValue(ctx, titleName(principal, session), nil)
	}
	kept, err := values.Values(ctx, titlesOf(principal))
	for name := range kept {
		if err == nil {
			err = values.SetValue(ctx, name, nil)
		}
	}
	return err
}

// renameSession handles PATCH /api/sessions/{id}: it sets the title of a session of the caller, pins it, or both. An empty title deletes it,
// so the beginning of the first question is shown again.
func (h *sessionsHandler) renameSession(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	var given struct {
		Title  *string `json:"title"`
		Pinned *bool   `json:"pinned"`
	}
	id := r.PathValue("id")
	if p := readObject(c.body, &given, `{"title":"…","pinned":true}`); p != nil {
		return p
	}
	title := ""
	if given.Title != nil {
		title = strings.Join(strings.Fields(*given.Title), " ")
	}
	values, ok := h.opts.Index.(store.ValueKeeper)
	switch {
	case given.Title == nil && given.Pinned == nil:
		return badRequest("title", "title and pinned are missing: one of them is needed.")
	case len(title) > maxSessionTitle || !utf8.ValidString(title):
		return badRequest("title", "title is a text of at most %d bytes.", maxSessionTitle)
	case !ok:
		return notFound("not_found", "The store of this gateway keeps no titles.")
	}
	run, p := h.newestRun(r.Context(), c, &store.RunFilter{SessionID: id})
	switch {
	case p != nil:
		return p
	case run.RunID == "":
		return noSession()
	}
	titles, err := h.titles(r.Context(), c.key.Name, nil)
	if err != nil {
		return h.storeFailed(c, err)
	}
	changed := titles[id]
	changed.Session = id
	if given.Title != nil {
		changed.Title = title
	}
	if given.Pinned != nil {
		changed.Pinned = *given.Pinned
	}
	var value []byte // nil deletes the title
	if changed.Title != "" || changed.Pinned {
		value, _ = json.Marshal(changed) // encoding strings does not fail
	}
	return answerRemoved(w, h.storeFailed(c, values.SetValue(r.Context(), titleName(c.key.Name, id), value)))
}

func noSession() *problem {
	return notFound("session_not_found", "There is no such session.")
}

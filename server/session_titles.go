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

// Titles that people give to sessions are values of the store, under names that hold hashes of the principal and of the
// session's id. They hold text of a user: they are removed with the session, with the principal, and, by the next listing, when
// the last run of the session was removed otherwise.

const titlePrefix = "session_title/"

// A sessionTitle is the value of a title.
type sessionTitle struct {
	Session string `json:"session"`
	Title   string `json:"title"`
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

// titlesOf begins the names of the titles of a principal.
func titlesOf(principal string) string { return titlePrefix + shortHash(principal) + "/" }

func titleName(principal, session string) string { return titlesOf(principal) + shortHash(session) }

// titles returns the titles that a principal gave, by session. Those of sessions that are not among the known ones are removed.
func (h *sessionsHandler) titles(ctx context.Context, principal string, known map[string]bool) (map[string]string, error) {
	values, ok := h.opts.Index.(store.ValueKeeper)
	if !ok {
		return nil, nil
	}
	kept, err := values.Values(ctx, titlesOf(principal))
	out := map[string]string{}
	for name, raw := range kept {
		var t sessionTitle
		if json.Unmarshal(raw, &t) == nil && (known == nil || known[t.Session]) {
			out[t.Session] = t.Title
		} else if known != nil {
			_ = values.SetValue(ctx, name, nil) // else by the next listing
		}
	}
	return out, err
}

// dropTitles removes the title of a session, or with "" all titles of the principal.
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

// renameSession gives a session of the caller a title; an empty one gives it the beginning of its first question again.
func (h *sessionsHandler) renameSession(w http.ResponseWriter, r *http.Request, c *caller) *problem {
	var given struct {
		Title *string `json:"title"`
	}
	id := r.PathValue("id")
	p := readObject(c.body, &given, `{"title":"…"}`)
	var title string
	if p == nil && given.Title != nil {
		title = strings.Join(strings.Fields(*given.Title), " ")
	}
	values, ok := h.opts.Index.(store.ValueKeeper)
	switch {
	case p != nil:
	case given.Title == nil:
		p = badRequest("title", "title is missing.")
	case len(title) > maxSessionTitle || !utf8.ValidString(title):
		p = badRequest("title", "title is a text of at most %d bytes.", maxSessionTitle)
	case !ok:
		p = notFound("not_found", "The store of this server keeps no titles.")
	default:
		rows, _, err := h.opts.Index.Runs(r.Context(), &store.RunFilter{SessionID: id, Principal: c.key.Name, Limit: 1})
		if err != nil {
			p = h.storeFailed(c, err)
		} else if len(rows) == 0 {
			p = noSession()
		}
	}
	if p != nil {
		return p
	}
	var value []byte
	if title != "" {
		value, _ = json.Marshal(sessionTitle{id, title}) // of texts it does not fail
	}
	if err := values.SetValue(r.Context(), titleName(c.key.Name, id), value); err != nil {
		return h.storeFailed(c, err)
	}
	return answerNothing(w)
}

func noSession() *problem {
	return notFound("session_not_found", "There is no such session.")
}

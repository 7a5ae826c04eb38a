package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/server"
)

// listed returns the titles of the caller's sessions, by id.
func (h *runFixture) listed(query string) map[string]string {
	h.t.Helper()
	_, body := h.do("GET", "/api/sessions"+query, "")
	page := parse[struct {
		Data []struct {
			ID    string `json:"session_id"`
			Title string `json:"title"`
		} `json:"data"`
	}](h.t, body)
	out := map[string]string{}
	for _, s := range page.Data {
		out[s.ID] = s.Title
	}
	return out
}

func TestSessionTitles(t *testing.T) {
	t.Parallel()
	h := open(t, func(s *setting) {
		s.opts = func(o *server.Options) { o.Setup.Keys = []server.Key{key("ann"), key("bob")} }
	})
	rename := func(id, title string) {
		t.Helper()
		if resp, body := h.do("PATCH", "/api/sessions/"+id, `{"title":"`+title+`"}`); resp.StatusCode != http.StatusNoContent {
			t.Fatal(resp.StatusCode, body)
		}
	}
	for _, who := range []string{"bob", "ann"} {
		h.key = text(who)
		h.rest(h.begin("first question of "+who, `"session":"s1"`).ID)
	}
	other := h.rest(h.begin("another", `"session":"s2"`).ID)
	rename("s1", " Travel \\n plans ")
	rename("s2", "Work")
	if got := h.listed(""); got["s1"] != "Travel plans" || got["s2"] != "Work" {
		t.Errorf("ann has %q", got)
	}
	if got := h.listed("?q=travel"); len(got) != 1 || got["s1"] == "" {
		t.Errorf("the search finds %q", got)
	}
	h.key = text("bob")
	if got := h.listed(""); len(got) != 1 || got["s1"] != "first question of bob" {
		t.Errorf("bob has %q", got)
	}
	h.refused("PATCH", "/api/sessions/s2", `{"title":"Mine"}`, 404, "session_not_found")
	h.key = text("ann")
	for body, param := range map[string]string{`{}`: "title", `{"title":"` + strings.Repeat("x", 121) + `"}`: "title", `{"name":"x"}`: "", `{"title":null}`: "title"} {
		if got := h.refused("PATCH", "/api/sessions/s1", body, 400, "invalid_request"); got.Param != param {
			t.Errorf("%s: param %q", body, got.Param)
		}
	}
	rename("s1", "")
	if got := h.listed(""); got["s1"] != "first question of ann" {
		t.Errorf("without a title: %q", got)
	}
	// The title goes with its session, however that is removed.
	kept := func() int {
		t.Helper()
		values, err := h.store.Values(t.Context(), "session_title/")
		if err != nil {
			t.Fatal(err)
		}
		return len(values)
	}
	rename("s1", "Travel plans")
	if n := kept(); n != 2 {
		t.Fatalf("%d titles are kept", n)
	}
	if resp, body := h.do("DELETE", "/api/sessions/s1", ""); resp.StatusCode != http.StatusNoContent || kept() != 1 {
		t.Errorf("%d %s: %d titles are kept", resp.StatusCode, body, kept())
	}
	if err := h.store.Delete(t.Context(), other.ID); err != nil {
		t.Fatal(err)
	}
	if got := h.listed(""); len(got) != 0 || kept() != 0 {
		t.Errorf("%q, and %d titles are kept", got, kept())
	}
	h.rest(h.begin("a last one", `"session":"s3"`).ID)
	rename("s3", "Last")
	if resp, body := h.do("DELETE", "/api/principals/ann", ""); resp.StatusCode != http.StatusNoContent || kept() != 0 {
		t.Errorf("%d %s: %d titles are kept", resp.StatusCode, body, kept())
	}
}

func TestChatPagesSetTheSampling(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	body := func(options string) string {
		return `{"id":"chat-1","model":"sim/demo","lathe":{` + options + `},"messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"Hello!"}]}]}`
	}
	f.uiPage(body(`"temperature":0.25,"max_tokens":77`), "")
	f.seen.mu.Lock()
	sent := f.seen.bodies[len(f.seen.bodies)-1]
	f.seen.mu.Unlock()
	if !strings.Contains(sent, `"temperature":0.25`) || !strings.Contains(sent, `_tokens":77`) {
		t.Errorf("the model server got %s", sent)
	}
	for _, option := range []string{`"temperature":-1`, `"temperature":2.01`, `"temperature":"hot"`, `"max_tokens":0`, `"max_tokens":1000001`, `"max_tokens":1.5`} {
		name := strings.Split(option, `"`)[1]
		resp, text := f.do("POST", "/api/chat", body(option))
		if got := parse[trouble](t, text); resp.StatusCode != http.StatusBadRequest || got.Param != "lathe."+name || !strings.Contains(got.Detail, "lathe."+name+" ") {
			t.Errorf("%s: %d %s", option, resp.StatusCode, text)
		}
	}
}

package server_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/lathe-run/lathe/server"
)

// A key sees its own sessions, each once, the one with the newest run first, with the beginning of its first question.
func TestSessionsAreListed(t *testing.T) {
	t.Parallel()
	root := key("root")
	root.Admin = true
	h := open(t, func(s *setting) {
		s.opts = func(o *server.Options) { o.Setup.Keys = []server.Key{key("ann"), key("bob"), root} }
	})
	begin := func(who, session, prompt string) {
		t.Helper()
		h.key = text(who)
		h.rest(h.begin(prompt, `"session":"`+session+`"`).ID)
	}
	begin("ann", "s1", "the  first question")
	begin("ann", "s2", "another one")
	begin("bob", "s1", "not of ann")
	begin("ann", "s1", "write {\"n\":1}")
	h.key = text("ann")
	h.rest(h.begin("without a session").ID)
	type row struct {
		ID     string `json:"session_id"`
		Title  string `json:"title"`
		Status string `json:"status"`
		Runs   int    `json:"runs"`
	}
	list := func(who string, q url.Values) (titles []string, next string) {
		t.Helper()
		h.key = text(who)
		resp, body := h.do("GET", "/api/sessions?"+q.Encode(), "")
		var page struct {
			Data []row  `json:"data"`
			Next string `json:"next"`
		}
		if err := json.Unmarshal([]byte(body), &page); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s", who, resp.StatusCode, body)
		}
		for _, r := range page.Data {
			if want := (map[string]row{"s1": {"s1", r.Title, "parked", 2}, "s2": {"s2", r.Title, "completed", 1}})[r.ID]; who == "ann" && r != want {
				t.Errorf("ann has %+v, want %+v", r, want)
			}
			titles = append(titles, r.ID+" "+r.Title)
		}
		return titles, page.Next
	}
	for _, c := range []struct {
		who  string
		q    url.Values
		want []string
		next string
	}{
		{"ann", nil, []string{"s1 the first question", "s2 another one"}, ""},
		{"bob", nil, []string{"s1 not of ann"}, ""},
		{"root", nil, nil, ""},
		{"ann", url.Values{"limit": {"1"}}, []string{"s1 the first question"}, "s1"},
		{"ann", url.Values{"limit": {"1"}, "after": {"s1"}}, []string{"s2 another one"}, ""},
		{"ann", url.Values{"q": {"ANOTHER"}}, []string{"s2 another one"}, ""},
		{"ann", url.Values{"q": {"question"}, "limit": {"1"}}, []string{"s1 the first question"}, ""},
		{"ann", url.Values{"q": {"nothing"}}, nil, ""},
	} {
		if got, next := list(c.who, c.q); !slices.Equal(got, c.want) || next != c.next {
			t.Errorf("%s %v: %q next %q, want %q next %q", c.who, c.q, got, next, c.want, c.next)
		}
	}
	h.key = text("ann")
	for _, q := range []string{"after=s3", "limit=0", "p=1"} {
		h.refused("GET", "/api/sessions?"+q, "", http.StatusBadRequest, "invalid_request")
	}
}

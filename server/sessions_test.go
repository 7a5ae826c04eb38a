package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
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
		{"ann", url.Values{"q": {"WRITE {"}}, []string{"s1 the first question"}, ""}, // of a later question
		{"bob", url.Values{"q": {"write {"}}, nil, ""},
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

// A title is what was asked, whatever stands beside it, and a question that is only a file has the name of the file. The list of runs has the
// newest question of each, for those who ask.
func TestTitlesAreQuestions(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	const file, picture = `{"type":"text","text":"notes.txt:\n` + "```" + `\nsome notes\n` + "```" + `"}`, `{"type":"file","file":{"filename":"plan.pdf","file_data":"data:application/pdf;base64,JVBERi0xLjQ="}}`
	want := map[string]string{
		`{"type":"text","text":"What is in these?"},` + file + `,` + picture: "What is in these?",
		`{"type":"text","text":"\n  Sum  up:\n\n2026-11-28 ERROR"}`:          "Sum up:",
		file: "notes.txt", picture: "plan.pdf",
	}
	titles := map[string]string{}
	for parts, title := range want {
		id := "s " + title
		titles[id] = title
		resp, body := h.do("POST", "/api/runs", `{"model":"sim/any","session":"`+id+`","messages":[{"role":"user","content":[`+parts+`]}]}`)
		if resp.StatusCode != http.StatusCreated {
			t.Fatal(resp.StatusCode, body)
		}
		h.rest(parse[run](t, body).ID)
	}
	if got := h.listed(""); !maps.Equal(got, titles) {
		t.Errorf("the titles are %q, want %q", got, titles)
	}
	later, body := h.do("POST", "/api/runs", `{"model":"sim/any","messages":[{"role":"user","content":"first"},{"role":"assistant","content":"ok"},{"role":"user","content":"second"}]}`)
	if later.StatusCode != http.StatusCreated {
		t.Fatal(later.StatusCode, body)
	}
	last := h.rest(parse[run](t, body).ID)
	for query, want := range map[string][2]string{"questions=true": {"second", "The tools said:"}, "questions=false": {}, "": {}} {
		_, body := h.do("GET", "/api/runs?run_id="+last.ID+"&"+query, "")
		page := parse[struct {
			Data []struct {
				ID       string `json:"run_id"`
				Question string `json:"question"`
				Answer   string `json:"answer"`
			} `json:"data"`
		}](t, body)
		if len(page.Data) != 1 || page.Data[0].ID != last.ID || [2]string{page.Data[0].Question, page.Data[0].Answer} != want {
			t.Errorf("%q lists %+v, want the question and the answer %q", query, page.Data, want)
		}
	}
}

// A session that is pinned stands before the others until it is not pinned any more, and keeps its title.
func TestPinnedSessions(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	for _, id := range []string{"s1", "s2", "s3"} {
		h.rest(h.begin("question of "+id, `"session":"`+id+`"`).ID)
	}
	order := func() (ids []string) {
		t.Helper()
		_, body := h.do("GET", "/api/sessions", "")
		for _, s := range parse[struct {
			Data []struct {
				ID     string `json:"session_id"`
				Title  string `json:"title"`
				Pinned bool   `json:"pinned"`
			} `json:"data"`
		}](t, body).Data {
			ids = append(ids, fmt.Sprint(s.ID, " ", s.Title, " ", s.Pinned))
		}
		return ids
	}
	for _, step := range []struct {
		body string
		want []string
	}{
		{`{"pinned":true}`, []string{"s1 question of s1 true", "s3 question of s3 false", "s2 question of s2 false"}},
		{`{"title":"Travel"}`, []string{"s1 Travel true", "s3 question of s3 false", "s2 question of s2 false"}},
		{`{"pinned":false}`, []string{"s3 question of s3 false", "s2 question of s2 false", "s1 Travel false"}},
	} {
		if resp, body := h.do("PATCH", "/api/sessions/s1", step.body); resp.StatusCode != http.StatusNoContent {
			t.Fatal(resp.StatusCode, body)
		}
		if got := order(); !slices.Equal(got, step.want) {
			t.Errorf("after %s: %q, want %q", step.body, got, step.want)
		}
	}
}

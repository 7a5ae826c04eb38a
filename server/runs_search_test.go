package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/server"
)

// A listing is a page of runs.
type listing struct {
	Data []struct {
		ID        string    `json:"run_id"`
		Principal string    `json:"principal"`
		Tools     []string  `json:"tools"`
		Ended     time.Time `json:"ended"`
	} `json:"data"`
	Next      string `json:"next"`
	Truncated bool   `json:"truncated"`
}

func (h *runFixture) list(query string) *listing {
	h.t.Helper()
	resp, body := h.do("GET", "/api/runs?"+query, "")
	if resp.StatusCode != http.StatusOK {
		h.t.Fatalf("%s: %d %s", query, resp.StatusCode, body)
	}
	return parse[listing](h.t, body)
}

func (l *listing) ids() string {
	var ids []string
	for _, r := range l.Data {
		ids = append(ids, r.ID)
	}
	return strings.Join(ids, " ")
}

func TestRunsAreFoundByWhatTheyDid(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	begin := func(prompt string) string {
		h.clock.add(time.Hour)
		return h.rest(h.begin(prompt).ID).ID
	}
	look := begin("look {\"n\":71077345}")
	parked := begin("write {\"n\":1}")
	plain := begin("GrÜße an alle")
	h.clock.add(time.Hour)
	for query, want := range map[string]string{
		"": plain + " " + parked + " " + look, "tool=look": look, "tool=write": parked, "tool=loo": "", "tool=unknown": "",
		"status=parked": parked, "reason=awaiting_approval": parked, "reason=answered": plain + " " + look,
		"model=promptModel": "", "model=sim/any": plain + " " + parked + " " + look, "error_code=timeout": "",
		"text=71077345": look, "text=" + url.QueryEscape("grüSSe an"): "", "text=" + url.QueryEscape("GRÜßE AN"): plain, "text=tool_call_id": "",
		"text=the+tools+said": plain + " " + look, "text=the+tools+said&tool=look": look, "status=completed&reason=awaiting_approval": "",
		"since=1h": plain, "since=90m": plain, "since=150m": plain + " " + parked, "until=2h": look, "since=2h&until=1h": parked, "since=1d&tool=look": look,
		"since=" + url.QueryEscape(h.clock.now().Add(-time.Hour).Format(time.RFC3339)): plain, "principal=ann": "",
	} {
		if got := h.list(query); got.ids() != want || got.Truncated || got.Next != "" {
			t.Errorf("%s: %s, want %s", query, got.ids(), want)
		}
	}
	if row := h.list("tool=look").Data[0]; len(row.Tools) != 1 || row.Tools[0] != "look" || row.Ended.IsZero() {
		t.Errorf("%+v", row)
	}
	if page := h.list("reason=answered&limit=1"); page.ids() != plain || page.Next == "" || page.Truncated {
		t.Errorf("%+v", page)
	} else if rest := h.list("reason=answered&limit=1&after=" + page.Next); rest.ids() != look {
		t.Errorf("%+v", rest)
	}
	for query, says := range map[string]string{
		"reason=answred": "Did you mean answered?", "status=prked": "Did you mean parked?", "since=yesterday": "such as 15m", "since=5": "such as 15m",
		"until=1w": "such as 15m", "since=" + strings.Repeat("9", 30) + "d": "such as 15m", "since=9999999h": "such as 15m", "since=2500-01-01T00:00:00Z": "such as 15m",
		"text=" + strings.Repeat("x", 201): "200 bytes", "limit=0": "from 1 to 1000",
	} {
		if p := h.refused("GET", "/api/runs?"+query, "", 400, "invalid_request"); !strings.Contains(p.Detail, says) {
			t.Errorf("%s: %s, want %q", query, p.Detail, says)
		}
	}
}

func TestAKeyFindsOnlyItsOwnRuns(t *testing.T) {
	t.Parallel()
	h := open(t, func(s *setting) {
		s.opts = func(o *server.Options) { o.Setup.Keys = []server.Key{key("ann"), key("bob")} }
	})
	own := h.rest(h.begin("look {\"n\":71077345}").ID)
	bob := []string{"Authorization", "Bearer " + text("bob")}
	for _, query := range []string{"text=71077345", "tool=look", "reason=answered", "principal=bob"} {
		if resp, body := h.do("GET", "/api/runs?"+query, "", bob...); resp.StatusCode != 200 || len(parse[listing](t, body).Data) != 0 {
			t.Errorf("%s: bob is shown %s", query, body)
		}
	}
	h.refused("GET", "/api/runs?principal=ann", "", 403, "principal_forbidden", bob...)
	if got := h.list("text=71077345&principal=ann"); got.ids() != own.ID {
		t.Errorf("ann finds %s", got.ids())
	}
}

// A page of a search reads no more than its limit, and says so.
func TestASearchIsBounded(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	const all = 500 + 3
	for i := range all {
		id := fmt.Sprintf("run_%04d", i)
		prompt := "nothing"
		if i == 1 {
			prompt = "a needle"
		}
		at := h.clock.now().Add(time.Duration(i) * time.Second)
		if _, err := h.store.Append(t.Context(), id, 0,
			event.Event{ID: 1, RunID: id, RequestID: "req", Time: at, Data: &event.RunStarted{Model: "m", Messages: []lathe.Message{lathe.User(prompt)}}},
			event.Event{ID: 2, RunID: id, RequestID: "req", Time: at, Data: &event.RunFinished{Reason: lathe.ReasonAnswered, Status: "completed"}}); err != nil {
			t.Fatal(err)
		}
	}
	first := h.list("text=needle")
	if len(first.Data) != 0 || !first.Truncated || first.Next == "" {
		t.Fatalf("%+v", first)
	}
	if rest := h.list("text=needle&after=" + first.Next); rest.ids() != "run_0001" || rest.Truncated || rest.Next != "" {
		t.Errorf("%+v", rest)
	}
	for query, truncated := range map[string]bool{"": false, "?q=needle": true} {
		_, body := h.do("GET", "/api/sessions"+query, "")
		if got := parse[struct {
			Truncated bool `json:"truncated"`
		}](t, body); got.Truncated != truncated {
			t.Errorf("the sessions %q are truncated: %v", query, got.Truncated)
		}
	}
	if got := h.list("text=nothing&limit=20"); len(got.Data) != 20 || got.Truncated || got.Next == "" {
		t.Errorf("a full page: %d rows, truncated %v, next %q", len(got.Data), got.Truncated, got.Next)
	}
}

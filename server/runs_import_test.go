package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/server"
)

func TestAnExportedRunIsImportedAsItWas(t *testing.T) {
	t.Parallel()
	from, to := open(t, nil), open(t, nil)
	ended := from.rest(from.begin("look {\"n\":1}").ID)
	_, log := from.do("GET", "/api/runs/"+ended.ID+"/export", "")
	resp, body := to.do("POST", "/api/runs/import", log)
	if resp.StatusCode != http.StatusCreated || resp.Header.Get("Location") != "/api/runs/"+ended.ID || parse[run](t, body).Answer != ended.Answer {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	if _, again := to.do("GET", "/api/runs/"+ended.ID+"/export", ""); again != log {
		t.Errorf("the export of the import differs:\n%s\n%s", again, log)
	}
	if resp, body := to.do("POST", "/api/runs/import", log); resp.StatusCode != http.StatusOK {
		t.Errorf("a second import: %d %s", resp.StatusCode, body)
	}
	to.refused("POST", "/api/runs/import", strings.Replace(log, `"n\":1`, `"n\":2`, 1), 409, "run_exists")
	if to.shop.wrote.Load() != 0 {
		t.Error("a tool was called")
	}
}

func TestAnImportIsChecked(t *testing.T) {
	t.Parallel()
	h, to := open(t, nil), open(t, nil)
	ended, parked := h.rest(h.begin("look {\"n\":1}").ID), h.rest(h.begin("write {\"n\":1}").ID)
	_, log := h.do("GET", "/api/runs/"+ended.ID+"/export", "")
	_, waits := h.do("GET", "/api/runs/"+parked.ID+"/export", "")
	lines := strings.SplitAfter(strings.TrimSuffix(log, "\n"), "\n")
	for name, tt := range map[string]struct{ body, code, says string }{
		"nothing":             {"", "invalid_export", "no event"},
		"no JSON":             {"x\n", "invalid_export", "line 1"},
		"a missing event":     {lines[0] + lines[2], "invalid_export", "event 3 where 2 is next"},
		"another run":         {lines[0] + strings.ReplaceAll(lines[1], ended.ID, "run_x"), "invalid_export", "of another run"},
		"more after the end":  {log + strings.Replace(lines[1], `"event_id":2`, `"event_id":11`, 1), "invalid_export", "follows the end"},
		"two beginnings":      {lines[0] + strings.Replace(lines[0], `"event_id":1`, `"event_id":2`, 1), "invalid_export", "holds it once"},
		"an id for a header":  {strings.ReplaceAll(log, ended.ID, `x\r\nSet-Cookie: y`), "invalid_export", "letters, digits"},
		"an id for a path":    {strings.ReplaceAll(log, ended.ID, `../../x`), "invalid_export", "letters, digits"},
		"a time out of range": {strings.ReplaceAll(log, "2023-", "1023-"), "invalid_export", "before 1970"},
		"not ended":           {strings.Join(lines[:4], ""), "run_unfinished", "has not ended"},
		"waiting":             {waits, "run_unfinished", "has not ended"},
	} {
		if p := to.refused("POST", "/api/runs/import", tt.body, 400, tt.code); !strings.Contains(p.Detail, tt.says) {
			t.Errorf("%s: %s, want %q", name, p.Detail, tt.says)
		}
	}
	if got := to.list(""); len(got.Data) != 0 {
		t.Errorf("%d runs were stored", len(got.Data))
	}
}

func TestAKeyImportsOnlyItsOwnRuns(t *testing.T) {
	t.Parallel()
	from := open(t, nil)
	keyed := func(s *setting) {
		s.opts = func(o *server.Options) {
			root := key("root")
			root.Admin = true
			o.Setup.Keys = []server.Key{key("ann"), key("bob"), root}
		}
	}
	h, other := open(t, keyed), open(t, keyed)
	_, open := from.do("GET", "/api/runs/"+from.rest(from.begin("look {\"n\":1}").ID).ID+"/export", "")
	_, anns := h.do("GET", "/api/runs/"+h.rest(h.begin("look {\"n\":1}").ID).ID+"/export", "")
	bob, root := []string{"Authorization", "Bearer " + text("bob")}, []string{"Authorization", "Bearer " + text("root")}
	other.refused("POST", "/api/runs/import", anns, 403, "principal_forbidden", bob...)
	if resp, body := other.do("POST", "/api/runs/import", open, bob...); resp.StatusCode != 201 || parse[run](t, body).Principal != "bob" {
		t.Errorf("a run without an owner: %d %s", resp.StatusCode, body)
	}
	if resp, body := other.do("POST", "/api/runs/import", anns, root...); resp.StatusCode != 201 || parse[run](t, body).Principal != "ann" {
		t.Errorf("an admin: %d %s", resp.StatusCode, body)
	}
	if got := other.list(""); len(got.Data) != 1 || got.Data[0].Principal != "ann" {
		t.Errorf("ann lists %+v", got.Data)
	}
}

package server_test

import (
	"net/http"
	"regexp"
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
	if to.log.wrote.Load() != 0 {
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

// An import keeps nothing that only the server sets: the owner, profile and labels are those of the caller, and costs and names of
// approvers are of no log that a client can write. An admin imports the log as it is.
func TestAnImportForgesNothingOfTheServer(t *testing.T) {
	t.Parallel()
	from := open(t, nil)
	id := from.rest(from.begin("look {\"n\":1}").ID).ID
	_, log := from.do("GET", "/api/runs/"+id+"/export", "")
	const target = `"target":`
	if strings.Count(log, target) != 1 || strings.Contains(log, `"cost":`) {
		t.Fatal(log)
	}
	forged := strings.Replace(log, target, `"principal":"OWNER","profile":"operator","labels":{"lathe_response":"1","mine":"kept","team":"blue"},`+target, 1)
	forged = regexp.MustCompile(`("type":"ModelCallFinished".*?"upstream_request_id":"[^"]*"(,"response_id":"[^"]*")?)`).ReplaceAllString(forged, `$1,"provider_cost":7,"cost":7`)
	p := &idp{others: "dev", keys: map[string]string{"root": "boss"}}
	for name, owner := range map[string]string{"without an owner": "", "its own": issuer + "#carl"} {
		to := open(t, func(s *setting) { s.opts = identified(p, nil).opts })
		body := strings.Replace(forged, `"OWNER"`, `"`+owner+`"`, 1)
		if owner == "" {
			body = strings.Replace(forged, `"principal":"OWNER",`, "", 1)
		}
		for _, want := range []int{201, 200} { // and again
			if resp, text := to.do("POST", "/api/runs/import", body, bearer(signed("carl"))...); resp.StatusCode != want {
				t.Fatalf("%s: %d %s", name, resp.StatusCode, text)
			}
		}
		_, has := to.do("GET", "/api/runs/"+id+"/export", "", bearer(signed("root"))...)
		if !strings.Contains(has, `"principal":"`+issuer+`#carl","profile":"dev","labels":{"mine":"kept","team":"team-of-carl"}`) {
			t.Errorf("%s: %s", name, has)
		}
		if strings.Contains(has, "cost") || !strings.Contains(body, `"cost":7`) {
			t.Errorf("%s: a cost: %s", name, has)
		}
	}
	to := open(t, func(s *setting) { s.opts = identified(p, nil).opts })
	body := strings.Replace(forged, "OWNER", issuer+"#dora", 1)
	if resp, text := to.do("POST", "/api/runs/import", body, bearer(signed("root"))...); resp.StatusCode != 201 {
		t.Fatalf("an admin: %d %s", resp.StatusCode, text)
	}
	if _, has := to.do("GET", "/api/runs/"+id+"/export", "", bearer(signed("root"))...); has != body {
		t.Errorf("an admin: %s", has)
	}
}

// Decisions of an imported run name no approver, and a run that the store has itself is still equal to its export.
func TestAnImportNamesNoApprover(t *testing.T) {
	t.Parallel()
	keyed := func(s *setting) {
		s.opts = func(o *server.Options) { o.Setup.Keys = []server.Key{key("ann"), key("bob")} }
	}
	from, to := open(t, keyed), open(t, keyed)
	parked := from.rest(from.begin("write {\"n\":1}").ID)
	if status, body := from.answer(parked, "approve"); status >= 300 {
		t.Fatalf("%d %s", status, body)
	}
	ended := from.rest(parked.ID)
	_, log := from.do("GET", "/api/runs/"+ended.ID+"/export", "")
	forged := strings.Replace(log, `"by":"`, `"by":"root of `, 1)
	if forged == log {
		t.Fatal(log)
	}
	if resp, body := from.do("POST", "/api/runs/import", log); resp.StatusCode != 200 {
		t.Errorf("the run of the store: %d %s", resp.StatusCode, body)
	}
	if resp, body := to.do("POST", "/api/runs/import", forged); resp.StatusCode != 201 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	if _, has := to.do("GET", "/api/runs/"+ended.ID+"/export", ""); !strings.Contains(has, `"by":""`) || strings.Contains(has, "root of") {
		t.Errorf("%s", has)
	}
}

// What no run can have is not imported, by an admin neither: sums of a store would be of no use, or overflow.
func TestAnImportIsOfARunThatCanBe(t *testing.T) {
	t.Parallel()
	h, to := open(t, nil), open(t, nil)
	_, log := h.do("GET", "/api/runs/"+h.rest(h.begin("look {\"n\":1}").ID).ID+"/export", "")
	year := regexp.MustCompile(`"time":"\d{4}`).FindString(log)
	for name, re := range map[string][3]string{
		"tokens":          {`"input_tokens":\d+`, `"input_tokens":9000000000000000000`, "token count"},
		"negative tokens": {`"output_tokens":\d+`, `"output_tokens":-1`, "token count"},
		"latency":         {`"latency_ms":\d+`, `"latency_ms":-5`, "latency"},
		"cost":            {`("upstream_request_id":"[^"]*"(,"response_id":"[^"]*")?)`, `$1,"cost":-3`, "cost"},
		"turns":           {`"turns":\d+`, `"turns":-3`, "number"},
		"a time to come":  {year, `"time":"2199`, "in the future"},
	} {
		body := regexp.MustCompile(re[0]).ReplaceAllString(log, re[1])
		if body == log {
			t.Fatalf("%s: %s", name, log)
		}
		if p := to.refused("POST", "/api/runs/import", body, 400, "invalid_export"); !strings.Contains(p.Detail, re[2]) {
			t.Errorf("%s: %s", name, p.Detail)
		}
	}
	if got := to.list(""); len(got.Data) != 0 {
		t.Errorf("%d runs were stored", len(got.Data))
	}
}

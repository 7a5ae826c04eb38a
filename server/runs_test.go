package server_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
)

func TestRunGoesToItsEnd(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	r := h.begin("look {\"n\":1}\n\nlook {\"n\":2}", `"session":"s1"`, `"labels":{"part":"a"}`)
	done := h.rest(r.ID)
	if done.Status != "completed" || done.Answer != `The tools said: {"n":1} {"n":2}` || done.Labels["part"] != "a" || len(done.Open) != 0 {
		t.Errorf("%+v", done)
	}
	var list struct {
		Data []run
		Next string
	}
	for query, want := range map[string]int{"": 1, "?session_id=s1": 1, "?session_id=s2": 0, "?status=completed": 1, "?status=parked": 0, "?run_id=" + r.ID: 1} {
		_, body := h.do("GET", "/api/runs"+query, "")
		if list = *parse[struct {
			Data []run
			Next string
		}](t, body); len(list.Data) != want {
			t.Errorf("%q lists %s", query, body)
		}
	}
	if _, body := h.do("GET", "/api/summaries?run_id="+r.ID, ""); strings.Count(body, `"event_id"`) != 3 || strings.Count(body, `"request_id":"req_`) != 3 {
		t.Errorf("summaries of three model calls: %s", body)
	}
	if got := len(h.export(r.ID)); int64(got) != done.Last {
		t.Errorf("%d lines of %d events", got, done.Last)
	}
}

func TestRunsListInPages(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	want := map[string]bool{}
	for range 5 {
		want[h.begin("hello").ID] = true
	}
	next, pages := "", 0
	for {
		_, body := h.do("GET", "/api/runs?limit=2&after="+next, "")
		page := parse[struct {
			Data []run
			Next string
		}](t, body)
		for _, r := range page.Data {
			if !want[r.ID] {
				t.Errorf("%s is listed twice, or was never begun", r.ID)
			}
			delete(want, r.ID)
		}
		pages++
		if next = page.Next; next == "" {
			break
		}
	}
	if len(want) > 0 || pages != 3 {
		t.Errorf("%d runs are missing from %d pages", len(want), pages)
	}
	h.refused("GET", "/api/runs?after=nonsense", "", 400, "invalid_request")
	h.refused("GET", "/api/runs?limit=1001", "", 400, "invalid_request")
}

func TestRunRequestsAreRefused(t *testing.T) {
	t.Parallel()
	h := open(t, func(s *setting) {
		s.opts = func(o *server.Options) {
			o.Setup.Keys = []server.Key{{Name: "ann", Secret: secret.New(text("ann")), Models: []string{"sim/any"}, Tools: []string{"look"}, Limits: lathe.Limits{MaxIterations: 5}}}
		}
	})
	for body, want := range map[string]struct {
		status      int
		code, param string
	}{
		`{`:                   {400, "invalid_json", ""},
		`[]`:                  {400, "invalid_request", ""},
		`{"prompt":"hi"}`:     {400, "invalid_request", "model"},
		`{"model":"sim/any"}`: {400, "invalid_request", "messages"},
		`{"model":"sim/any","prompt":"hi","messages":[]}`:                                                   {400, "invalid_request", "messages"},
		`{"model":"sim/any","prompt":7}`:                                                                    {400, "invalid_request", "prompt"},
		`{"model":"sim/any","prompt":"hi","promt":"x"}`:                                                     {400, "invalid_request", ""},
		`{"model":"none","prompt":"hi"}`:                                                                    {404, "model_not_found", "model"},
		`{"model":"sim/other","prompt":"hi"}`:                                                               {403, "model_forbidden", "model"},
		`{"model":"sim/any","prompt":"hi","tools":["write"]}`:                                               {403, "tool_forbidden", "tools"},
		`{"model":"sim/any","prompt":"hi","tools":["lok"]}`:                                                 {400, "unknown_tool", "tools"},
		`{"model":"sim/any","prompt":"hi","limits":{"max_iterations":6}}`:                                   {400, "invalid_request", "limits.max_iterations"},
		`{"model":"sim/any","prompt":"hi","limits":{"max_iterations":0}}`:                                   {400, "invalid_request", "limits.max_iterations"},
		`{"model":"sim/any","prompt":"hi","labels":{"":"x"}}`:                                               {400, "invalid_request", "labels"},
		`{"model":"sim/any","prompt":"hi","labels":{"graph_run_id":"x"}}`:                                   {400, "invalid_request", "labels"},
		`{"model":"sim/any","prompt":"hi","labels":{"lathe_request_sha256":"x"}}`:                           {400, "invalid_request", "labels"},
		`{"model":"sim/any","prompt":"hi","client_tools":[{"type":"function","function":{"name":"look"}}]}`: {400, "invalid_request", "client_tools[0].function.name"},
		`{"model":"sim/any","prompt":"hi","client_tools":[{"type":"function","function":{"name":"a b"}}]}`:  {400, "invalid_request", "client_tools[0].function.name"},
		`{"model":"sim/any","messages":[{"role":"tool","tool_call_id":"x","content":"y"}]}`:                 {400, "unexpected_tool_result", "messages[0]"},
		`{"model":"sim/any","prompt":"hi","temperature":"warm"}`:                                            {400, "invalid_request", "temperature"},
	} {
		if got := h.refused("POST", "/api/runs", body, want.status, want.code); got.Param != want.param {
			t.Errorf("%s: the fault is at %q, want %q: %s", body, got.Param, want.param, got.Detail)
		}
	}
	if got := h.refused("POST", "/api/runs", `{"model":"sim/any","prompt":"hi","promt":"x"}`, 400, "invalid_request"); !strings.HasPrefix(got.Detail, "The body has the member \"promt\", which is not known here. Did you mean prompt?") {
		t.Errorf("%s", got.Detail)
	}
	if _, body := h.do("GET", "/api/runs", ""); !strings.Contains(body, `"data":[]`) {
		t.Errorf("a refused request began a run: %s", body)
	}
}

func TestRunsNeedAStore(t *testing.T) {
	t.Parallel()
	h := open(t, func(s *setting) { s.opts = func(o *server.Options) { o.Index = nil } })
	h.refused("POST", "/api/runs", `{"model":"sim/any","prompt":"hi"}`, 404, "no_store")
	h.refused("GET", "/api/runs/run_1/events", "", 404, "no_store")
}

func TestRunIsDeleted(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	h.model.step = make(chan struct{}, 1)
	r := h.begin("hello")
	h.refused("DELETE", "/api/runs/"+r.ID, "", 409, "run_running")
	h.model.step <- struct{}{}
	h.rest(r.ID)
	if resp, body := h.do("DELETE", "/api/runs/"+r.ID, ""); resp.StatusCode != http.StatusNoContent || body != "" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	for _, path := range []string{"", "/events", "/export"} {
		h.refused("GET", "/api/runs/"+r.ID+path, "", 404, "run_not_found")
	}
	h.refused("DELETE", "/api/runs/"+r.ID, "", 404, "run_not_found")
}

// A buffer may be written by several goroutines at once.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// What runs carry is in no log line.
func TestT21_RunsLeaveNoContentInTheLog(t *testing.T) {
	t.Parallel()
	const canary = "canary7031"
	out := &buffer{}
	h := open(t, func(s *setting) {
		s.opts = func(o *server.Options) {
			o.Log = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		}
	})
	r := h.rest(h.begin("weather {\"city\":\""+canary+"\"}\nwrite {\"n\":1}", weather, `"labels":{"`+canary+`":"`+canary+`"}`, `"session":"`+canary+`"`).ID)
	if status, body := h.answer(r, "answer", `"result":"`+canary+`"`); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	r = h.rest(r.ID)
	h.do("POST", "/api/runs/"+r.ID+"/tool_results", results(r.Open[0].ID, `"`+canary+`"`))
	if done := h.rest(r.ID); strings.Count(done.Answer, canary) != 2 {
		t.Errorf("%+v", done)
	}
	h.do("POST", "/api/runs", `{"model":"`+canary+`","prompt":"hi"}`)
	h.do("POST", "/api/runs", `{"`+canary+`":1}`)
	h.do("GET", "/api/runs/"+canary, "")
	h.do("POST", "/api/runs", `{"model":"sim/any","prompt":"hi"}`, "Idempotency-Key", canary)
	h.export(r.ID)
	out.mu.Lock()
	defer out.mu.Unlock()
	if text := out.b.String(); strings.Contains(text, canary) || !strings.Contains(text, r.ID) {
		t.Errorf("the log says\n%s", text)
	}
}

// No body makes the server fail, or answer what the document does not say.
func FuzzRunBodies(f *testing.F) {
	h := open(f, nil)
	r := h.rest(h.begin("weather {}\nwrite {\"n\":1}", weather).ID)
	paths := []string{"/api/runs", "/api/runs/" + r.ID + "/approvals/" + r.Open[1].ID, "/api/runs/" + r.ID + "/tool_results"}
	for i, body := range []string{
		`{"model":"sim/any","prompt":"hi","limits":{"run_timeout":"1s"},"labels":{"a":"b"},"policy":{"look":"deny"}}`,
		`{"decision":"edit","digest":"x","arguments":{"n":1}}`, results("call_1_0", `{"a":[1]}`), `{"results":null}`, `{"prompt":"\ud800"}`, "{}", "[", "",
	} {
		f.Add(byte(i), body)
	}
	f.Fuzz(func(t *testing.T, to byte, body string) {
		req := httptest.NewRequest(http.MethodPost, "http://localhost"+paths[int(to)%len(paths)], strings.NewReader(body))
		rec := httptest.NewRecorder()
		h.gateway.ServeHTTP(rec, req)
		if rec.Code >= 500 && rec.Code != http.StatusServiceUnavailable {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
		d := &described{t: t, doc: theDocument(t), next: answered{rec.Result()}}
		resp, err := d.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // which holds it against the document
	})
}

// answered is a transport that has the answer.
type answered struct{ resp *http.Response }

func (a answered) RoundTrip(*http.Request) (*http.Response, error) { return a.resp, nil }

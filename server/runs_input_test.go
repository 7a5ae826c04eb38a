package server_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/sqlite"
)

func TestApprovalVerbs(t *testing.T) {
	t.Parallel()
	for verb, tt := range map[string]struct {
		more   []string
		wrote  int64
		answer string
	}{
		"approve": {nil, 1, `The tools said: {"n":1}`},
		"edit":    {[]string{`"arguments":{"n":7}`}, 1, `The tools said: {"n":7}`},
		"answer":  {[]string{`"result":{"n":9}`}, 0, `The tools said: {"n":9}`},
		"deny":    {[]string{`"reason":"too_risky"`}, 0, `"reason":"too_risky"`},
	} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			h := open(t, nil)
			r := h.rest(h.begin("write {\"n\":1}").ID)
			if r.Status != "parked" || len(r.Open) != 1 || r.Open[0].State != "awaiting_approval" || r.Open[0].Arguments != `{"n":1}` || len(r.Open[0].Facts) == 0 {
				t.Fatalf("%+v", r)
			}
			status, body := h.answer(r, verb, tt.more...)
			if status != http.StatusOK {
				t.Fatalf("%d %s", status, body)
			}
			done := h.rest(r.ID)
			if done.Status != "completed" || !strings.Contains(done.Answer, tt.answer) || h.log.wrote.Load() != tt.wrote {
				t.Errorf("%+v, wrote %d", done, h.log.wrote.Load())
			}
			if status, body := h.answer(r, verb, tt.more...); status != http.StatusConflict || !strings.Contains(body, `"run_ended"`) {
				t.Errorf("answered twice: %d %s", status, body)
			}
		})
	}
}

func TestT24_ApprovalsAreRefused(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	r := h.rest(h.begin("write {\"n\":1}").ID)
	path, digest := "/api/runs/"+r.ID+"/approvals/"+r.Open[0].ID, r.Open[0].Digest
	other := strings.Map(func(c rune) rune {
		if c == '0' {
			return '1'
		}
		return '0'
	}, digest)
	for body, want := range map[string]struct {
		status int
		code   string
	}{
		`{"decision":"approve"}`:                                               {400, "invalid_request"},
		`{"decision":"approve","digest":"` + other + `"}`:                      {409, "digest_mismatch"},
		`{"decision":"perhaps","digest":"` + digest + `"}`:                     {400, "invalid_request"},
		`{"digest":"` + digest + `"}`:                                          {400, "invalid_request"},
		`{"decision":"edit","digest":"` + digest + `"}`:                        {400, "invalid_request"},
		`{"decision":"edit","arguments":[1],"digest":"` + digest + `"}`:        {400, "invalid_request"},
		`{"decision":"deny","reason":"Not so.","digest":"` + digest + `"}`:     {400, "invalid_request"},
		`{"decision":"approve","scope":"session","digest":"` + digest + `"}`:   {400, "invalid_request"},
		`{"decision":"approve","by":"the boss","digest":"` + digest + `"}`:     {400, "invalid_request"},
		`{"decision":"approve","arguments":{"n":2},"digest":"` + digest + `"}`: {400, "invalid_request"},
	} {
		h.refused("POST", path, body, want.status, want.code)
	}
	h.refused("POST", "/api/runs/"+r.ID+"/approvals/call_9", `{"decision":"approve","digest":"x"}`, 404, "call_not_found")
	h.refused("POST", "/api/runs/run_none/approvals/call_9", `{"decision":"approve","digest":"x"}`, 404, "run_not_found")
	if got := h.show(r.ID); got.Status != "parked" || got.Last != r.Last || h.log.wrote.Load() != 0 {
		t.Errorf("a refused answer changed the run: %+v", got)
	}
}

// Many answer at once: one decides, and the others get its decision.
func TestF12_ManyApprovers(t *testing.T) {
	t.Parallel()
	for range 20 {
		h := open(t, nil)
		r := h.rest(h.begin("write {\"n\":1}").ID)
		var all sync.WaitGroup
		var mu sync.Mutex
		won := []string{}
		for i := range 6 {
			verb := []string{"approve", "deny"}[i%2]
			all.Go(func() {
				status, body := h.answer(r, verb)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case status == http.StatusOK:
					won = append(won, verb)
				case status != http.StatusConflict:
					t.Errorf("%d %s", status, body)
				}
			})
		}
		all.Wait()
		done := h.rest(r.ID)
		if len(won) != 1 || done.Status != "completed" || h.log.wrote.Load() != int64(strings.Count(strings.Join(won, ""), "approve")) {
			t.Errorf("%v won, wrote %d: %+v", won, h.log.wrote.Load(), done)
		}
		if got := strings.Count(strings.Join(h.export(r.ID), "\n"), `"type":"ApprovalResolved"`); got != 1 {
			t.Errorf("%d decisions are in the log", got)
		}
	}
}

// A decision after the request has expired is refused, and the run resumes without it.
func TestF12_ApprovalAgainstExpiry(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	r := h.rest(h.begin("write {\"n\":1}").ID)
	h.clock.add(time.Hour - time.Second)
	early := h.rest(h.begin("write {\"n\":2}").ID)
	h.clock.add(time.Second)
	if status, body := h.answer(r, "approve"); status != http.StatusConflict || !strings.Contains(body, `"approval_expired"`) {
		t.Errorf("%d %s", status, body)
	}
	if done := h.rest(r.ID); done.Status != "completed" || !strings.Contains(done.Answer, "approval_expired") || h.log.wrote.Load() != 0 {
		t.Errorf("%+v", done)
	}
	if status, body := h.answer(early, "approve"); status != http.StatusOK || h.log.wrote.Load() > 1 {
		t.Errorf("%d %s", status, body)
	}
}

func TestF12_ApprovalAgainstCancel(t *testing.T) {
	t.Parallel()
	for range 20 {
		h := open(t, nil)
		r := h.rest(h.begin("write {\"n\":1}").ID)
		var both sync.WaitGroup
		var approved, cancelled int
		both.Go(func() { approved, _ = h.answer(r, "approve") })
		both.Go(func() {
			resp, _ := h.do("POST", "/api/runs/"+r.ID+"/cancel", "")
			cancelled = resp.StatusCode
		})
		both.Wait()
		done := h.rest(r.ID)
		switch wrote := h.log.wrote.Load(); {
		case approved == 409 && cancelled == 200 && done.Status == "cancelled" && wrote == 0:
		case approved == 200 && cancelled == 409 && done.Status == "completed" && wrote == 1:
		case approved == 200 && cancelled == 200 && done.Status == "cancelled" && wrote <= 1: // it was cancelled after the tool
		default:
			t.Errorf("approve %d, cancel %d, wrote %d: %+v", approved, cancelled, wrote, done)
		}
		if got := strings.Count(strings.Join(h.export(r.ID), "\n"), `"type":"RunFinished"`); got != 1 {
			t.Errorf("the run ended %d times", got)
		}
	}
}

// Answers to several calls come while the run goes on; none is lost.
func TestApprovalsOfOneTurn(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	r := h.rest(h.begin("write {\"n\":1}\nwrite {\"n\":2}\nwrite {\"n\":3}").ID)
	if len(r.Open) != 3 {
		t.Fatalf("%+v", r)
	}
	var all sync.WaitGroup
	for i := range r.Open {
		one := *r
		one.Open = r.Open[i : i+1]
		all.Go(func() {
			if status, body := h.answer(&one, "approve"); status != 200 && status != 202 {
				t.Errorf("%d %s", status, body)
			}
		})
	}
	all.Wait()
	events := h.watchUntil(r.ID, 0, never) // up to the end of the run
	if last := events[len(events)-1]; last.Type != "RunFinished" || h.log.wrote.Load() != 3 {
		t.Errorf("%s, wrote %d", last.Type, h.log.wrote.Load())
	}
}

// A person answers after the process that asked is gone.
func TestApprovalAfterARestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	start := func(t *testing.T) *runFixture {
		kept, err := sqlite.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := kept.Close(); err != nil {
				t.Error(err)
			}
		})
		h := &runFixture{}
		s := h.setting(func(s *setting) { s.store = kept })
		h.fixture = serve(t, s)
		return h
	}
	var r, other *run
	t.Run("before", func(t *testing.T) {
		h := start(t)
		r = h.rest(h.begin("write {\"n\":1}").ID)
		other = h.rest(h.begin("write {\"n\":2}").ID)
		if r.Status != "parked" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("after", func(t *testing.T) {
		h := start(t)
		again := h.show(r.ID)
		if again.Status != "parked" || again.Open[0].Digest != r.Open[0].Digest {
			t.Fatalf("%+v", again)
		}
		if status, body := h.answer(again, "approve"); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
		if done := h.rest(r.ID); done.Status != "completed" || h.log.wrote.Load() != 1 {
			t.Errorf("%+v, wrote %d", done, h.log.wrote.Load())
		}
		h.clock.add(time.Hour)
		if status, body := h.answer(other, "approve"); status != http.StatusConflict || !strings.Contains(body, "approval_expired") {
			t.Errorf("%d %s", status, body)
		}
		if done := h.rest(other.ID); done.Status != "completed" || h.log.wrote.Load() != 1 {
			t.Errorf("%+v, wrote %d", done, h.log.wrote.Load())
		}
	})
}

const weather = `"client_tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object"}}}]`

func results(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		b.WriteString(`,{"tool_call_id":"` + pairs[i] + `","content":` + pairs[i+1] + `}`)
	}
	return `{"results":[` + strings.TrimPrefix(b.String(), ",") + `]}`
}

func TestF14_ToolResults(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	r := h.rest(h.begin("weather {\"city\":\"Riga\"}\nlook {\"n\":1}\nweather {\"city\":\"Oslo\"}", weather).ID)
	if r.Status != "parked" || r.Reason != "awaiting_tool_results" || len(r.Open) != 2 || r.Open[0].State != "awaiting_result" {
		t.Fatalf("%+v", r)
	}
	first, second, path := r.Open[0].ID, r.Open[1].ID, "/api/runs/"+r.ID+"/tool_results"
	h.refused("POST", path, results("call_x", `"sun"`), 400, "invalid_request")
	h.refused("POST", path, results("call_1_1", `"sun"`), 400, "invalid_request") // it is the server's
	h.refused("POST", path, results(first, `"sun"`, first, `"rain"`), 400, "invalid_request")
	h.refused("POST", path, `{"results":[]}`, 400, "invalid_request")
	h.refused("POST", path, `{"results":[{"tool_call_id":"`+first+`"}]}`, 400, "invalid_request")
	h.refused("POST", path, `{"results":{}}`, 400, "invalid_request")
	h.refused("POST", "/api/runs/run_none/tool_results", results(first, `"sun"`), 404, "run_not_found")
	if got := h.show(r.ID); got.Last != r.Last {
		t.Errorf("a refused result changed the run: %+v", got)
	}
	if resp, body := h.do("POST", path, results(second, `{"sky":"grey"}`)); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	if got := h.rest(r.ID); got.Status != "parked" || len(got.Open) != 1 || got.Open[0].ID != first {
		t.Fatalf("%+v", got)
	}
	h.refused("POST", path, results(second, `"late"`), 409, "already_answered")
	h.refused("POST", path, results(first, `"sun"`, second, `"late"`), 409, "already_answered")
	if resp, body := h.do("POST", path, results(first, `"sun"`)); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	done := h.rest(r.ID)
	if done.Status != "completed" || done.Answer != `The tools said: sun {"n":1} {"sky":"grey"}` {
		t.Errorf("%+v", done)
	}
	h.refused("POST", path, results(first, `"late"`), 409, "run_ended")
}

// Results that come before the run waits for them are taken when it does; given many times at once,
// they are taken once.
func TestF14_ToolResultsOfManyClients(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	h.model.step = make(chan struct{}, 10)
	r := h.begin("weather {\"city\":\"Riga\"}", weather)
	h.model.step <- struct{}{}
	h.watchUntil(r.ID, 0, func(e *told) bool { return e.Type == "ToolCallProposed" })
	var all sync.WaitGroup
	var mu sync.Mutex
	taken := 0
	for range 5 {
		all.Go(func() {
			resp, body := h.do("POST", "/api/runs/"+r.ID+"/tool_results", results("call_1_0", `"sun"`))
			mu.Lock()
			defer mu.Unlock()
			switch resp.StatusCode {
			case 200:
				taken++
			case 409:
			default:
				t.Errorf("%d %s", resp.StatusCode, body)
			}
		})
	}
	h.model.step <- struct{}{}
	all.Wait()
	if done := h.rest(r.ID); taken != 1 || done.Answer != "The tools said: sun" {
		t.Errorf("%d were taken: %+v", taken, done)
	}
}

// A run is cancelled wherever it is, and ends once.
func TestF13_CancelAtEachPoint(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prompt string
		until  string // the event that is waited for
		slow   bool   // the model does not answer
	}{
		"in the first model call":  {prompt: "hello", until: "ModelCallStarted", slow: true},
		"in a tool":                {prompt: "hold {\"n\":1}\nlook {\"n\":2}", until: "ToolCallPlanned"},
		"while a person is asked":  {prompt: "look {\"n\":1}\nwrite {\"n\":1}", until: "RunPaused"},
		"while a client is waited": {prompt: "weather {}\nweather {}", until: "RunPaused"},
		"while both are":           {prompt: "weather {}\nwrite {\"n\":1}", until: "RunPaused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, nil)
			if tt.slow {
				h.model.step = make(chan struct{})
			}
			r := h.begin(tt.prompt, weather)
			h.watchUntil(r.ID, 0, func(e *told) bool { return e.Type == tt.until })
			if strings.HasPrefix(tt.prompt, "hold") {
				<-h.log.held
			}
			resp, body := h.do("POST", "/api/runs/"+r.ID+"/cancel", "")
			got := parse[run](t, body)
			if resp.StatusCode != http.StatusOK || got.Status != "cancelled" || got.Reason != "cancelled" || len(got.Open) != 0 {
				t.Fatalf("%d %s", resp.StatusCode, body)
			}
			if events := h.watchUntil(r.ID, 0, never); events[len(events)-1].Type != "RunFinished" || h.log.wrote.Load() != 0 {
				t.Errorf("wrote %d", h.log.wrote.Load())
			}
			h.refused("POST", "/api/runs/"+r.ID+"/cancel", "", 409, "run_ended")
			if rows, _, err := h.index.Runs(t.Context(), &store.RunFilter{RunID: r.ID}); err != nil || rows[0].Status != "cancelled" {
				t.Errorf("%+v %v", rows, err)
			}
		})
	}
	h := open(t, nil)
	h.refused("POST", "/api/runs/run_none/cancel", "", 404, "run_not_found")
}

// A client that cancels a run between two turns finds it cancelled, or ended.
func TestF13_CancelAtAnyTime(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	for k := range int64(20) {
		r := h.begin("look {\"n\":1}\nlook {\"n\":2}\n\nwrite {\"n\":1}")
		h.watchUntil(r.ID, 0, func(e *told) bool { return e.Num > k || e.Type == "RunPaused" })
		resp, body := h.do("POST", "/api/runs/"+r.ID+"/cancel", "")
		if got := parse[run](t, body); resp.StatusCode != http.StatusOK || got.Status != "cancelled" {
			t.Errorf("after event %d: %d %s", k, resp.StatusCode, body)
		}
	}
	if h.log.wrote.Load() != 0 {
		t.Error("what was not approved was done")
	}
}

// A run that a request executes can be cancelled, and the response of the request reports it; no other request can
// resume it.
func TestCancelOfTheRunOfARequest(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	h.model.step = make(chan struct{})
	var chat sync.WaitGroup
	chat.Go(func() {
		resp, body := h.do("POST", "/v1/chat/completions", `{"model":"sim/any","messages":[{"role":"user","content":"hi"}],"lathe":{"session":"s"}}`)
		if resp.StatusCode != http.StatusConflict || !strings.Contains(body, `"cancelled"`) {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
	})
	var id string
	for id == "" { // it begins at some time
		if rows, _, err := h.index.Runs(t.Context(), nil); err == nil && len(rows) == 1 && rows[0].LastID == 2 {
			id = rows[0].RunID
		}
	}
	h.refused("DELETE", "/api/runs/"+id, "", 409, "run_running")
	if resp, body := h.do("POST", "/api/runs/"+id+"/cancel", ""); resp.StatusCode != 200 || parse[run](t, body).Status != "cancelled" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	chat.Wait()
}

// A run that another process carries, or none, is neither ended nor gone on with.
func TestRunOfAnotherProcessIsLeft(t *testing.T) {
	t.Parallel()
	kept := alone{store.NewMemory(nil)}
	h, other := open(t, func(s *setting) { s.store = kept }), open(t, func(s *setting) { s.store = kept })
	h.model.step = make(chan struct{})
	slow := h.begin("hello")
	h.watchUntil(slow.ID, 0, func(e *told) bool { return e.Type == "ModelCallStarted" })
	other.refused("POST", "/api/runs/"+slow.ID+"/cancel", "", 409, "run_elsewhere")
	other.refused("DELETE", "/api/runs/"+slow.ID, "", 409, "run_running")
	h.model.step <- struct{}{}
	if done := h.rest(slow.ID); done.Status != "completed" {
		t.Errorf("%+v", done)
	}
}

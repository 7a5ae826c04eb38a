package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/lab/replay"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// replaying lets the fixture repeat runs with recorded results.
func (h *runFixture) replaying(o *server.Options) {
	o.Setup.Replay = func(model string, record []event.Event) (*loop.Loop, error) {
		set, approver, err := (&replay.Record{Events: record}).Answers(h.tools.set, lathe.Limits{})
		if err != nil {
			return nil, err
		}
		runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Tools{Ask: []string{"write"}, Else: policy.AllowAll()}, Approver: approver})
		if err != nil {
			return nil, err
		}
		return loop.New(h.model, runner, nil)
	}
}

func openReplay(t *testing.T, keys ...server.Key) *runFixture {
	t.Helper()
	h := &runFixture{}
	h.fixture = serve(t, h.setting(func(s *setting) {
		s.opts = func(o *server.Options) {
			o.Setup.Keys = keys
			h.replaying(o)
		}
	}))
	return h
}

// again repeats a run, waits for its end and returns it.
func (h *runFixture) again(id, body string, header ...string) *run {
	h.t.Helper()
	resp, text := h.do("POST", "/api/runs/"+id+"/replay", body, header...)
	if resp.StatusCode != http.StatusAccepted {
		h.t.Fatalf("%d %s", resp.StatusCode, text)
	}
	r := parse[run](h.t, text)
	if got := resp.Header.Get("Location"); got != "/api/runs/"+r.ID || r.ID == id {
		h.t.Errorf("the new run %s is at %q", r.ID, got)
	}
	return h.rest(r.ID)
}

const (
	writeOne  = `write {"n":1}`
	threeAsks = "write {\"n\":1}\n\nlook {\"n\":2}\n\nlook {\"n\":2}"
)

func TestReplayAnswersCallsFromTheRecord(t *testing.T) {
	t.Parallel()
	h := openReplay(t)
	was := h.rest(h.begin(threeAsks, `"temperature":0.5`, `"session":"s1"`).ID)
	if status, body := h.answer(was, "approve"); status != http.StatusOK {
		t.Fatal(status, body)
	}
	was = h.rest(was.ID)
	if n := h.log.wrote.Load(); was.Status != "completed" || n != 1 {
		t.Fatalf("%d writes: %+v", n, was)
	}
	got := h.again(was.ID, `{"model":"sim/other"}`)
	if n := h.log.wrote.Load(); n != 1 {
		t.Errorf("write was called %d times", n)
	}
	if got.Status != "completed" || got.Answer != was.Answer || got.Replays != was.ID || was.Replays != "" {
		t.Errorf("%+v, of %+v", got, was)
	}
	first := h.export(got.ID)[0]
	for _, want := range []string{`"replays":"` + was.ID + `"`, `"target":"sim/other"`} {
		if !strings.Contains(first, want) {
			t.Errorf("no %s in %s", want, first)
		}
	}
	for id, want := range map[string]string{got.ID: was.ID, was.ID: ""} { // the list says it beside the question
		_, body := h.do("GET", "/api/runs?questions=true&run_id="+id, "")
		if page := parse[struct{ Data []run }](t, body); len(page.Data) != 1 || page.Data[0].Replays != want {
			t.Errorf("the list has %s, want a run that repeats %q", body, want)
		}
	}
	if strings.Contains(first, `"session_id":"s1"`) {
		t.Errorf("the new run is in the session of the recorded one: %s", first)
	}
	// Called again, the tools act under the policy: a person is asked once more.
	live := h.again(was.ID, `{"tools":"live","session":"s2"}`)
	if live.Reason != "awaiting_approval" || live.Replays != was.ID || h.log.wrote.Load() != 1 {
		t.Fatalf("%+v", live)
	}
	if status, body := h.answer(live, "approve"); status != http.StatusOK {
		t.Fatal(status, body)
	}
	if live = h.rest(live.ID); live.Answer != was.Answer || h.log.wrote.Load() != 2 {
		t.Errorf("%d writes: %+v", h.log.wrote.Load(), live)
	}
	// Statistics count the calls of tools, which a replay with recorded results makes none of.
	for id, want := range map[string]int{was.ID: 3, got.ID: 0, live.ID: 3} {
		calls, _, err := h.store.ModelCalls(t.Context(), &store.RunFilter{RunID: id})
		n := 0
		for i := range calls {
			n += len(calls[i].Tools)
		}
		if err != nil || n != want {
			t.Errorf("%d tool calls of %s are counted, want %d: %v", n, id, want, err)
		}
	}
}

// What a person refused is refused again.
func TestReplayRepeatsDecisions(t *testing.T) {
	t.Parallel()
	h := openReplay(t)
	was := h.rest(h.begin(writeOne).ID)
	if status, body := h.answer(was, "deny", `"reason":"no"`); status != http.StatusOK {
		t.Fatal(status, body)
	}
	was = h.rest(was.ID)
	got := h.again(was.ID, "")
	if got.Answer != was.Answer || got.Status != was.Status || h.log.wrote.Load() != 0 {
		t.Errorf("%+v, of %+v", got, was)
	}
}

// The results of the client's tools are in the record, too: the new run does not wait for them.
func TestReplayAnswersToolsOfTheClient(t *testing.T) {
	t.Parallel()
	h := openReplay(t)
	was := h.rest(h.begin(`theirs {"n":7}`, `"client_tools":[{"type":"function","function":{"name":"theirs","parameters":{"type":"object"}}}]`).ID)
	if was.Reason != "awaiting_tool_results" {
		t.Fatalf("%+v", was)
	}
	if resp, body := h.do("POST", "/api/runs/"+was.ID+"/tool_results", `{"results":[{"tool_call_id":"`+was.Open[0].ID+`","content":"seventeen"}]}`); resp.StatusCode != http.StatusOK {
		t.Fatal(body)
	}
	was = h.rest(was.ID)
	if got := h.again(was.ID, "{}"); got.Status != "completed" || got.Answer != was.Answer || was.Answer != "The tools said: seventeen" {
		t.Errorf("%+v, of %+v", got, was)
	}
}

func TestReplayIsUnderTheRightsOfTheKey(t *testing.T) {
	t.Parallel()
	narrow := key("narrow")
	narrow.Models, narrow.Tools = []string{"sim/any"}, []string{"look"}
	admin := key("root")
	admin.Admin = true
	h := openReplay(t, key("ann"), key("bob"), narrow, admin)
	was := h.rest(h.begin(`look {"n":2}`).ID)
	path := "/api/runs/" + was.ID + "/replay"
	as := func(name string) []string { return []string{"Authorization", "Bearer " + text(name)} }
	h.refused("POST", path, "{}", 404, "run_not_found", as("bob")...)
	h.refused("POST", path, "{}", 404, "run_not_found", as("narrow")...)
	got := parse[run](t, func() string { _, b := h.do("POST", path, "{}", as("root")...); return b }())
	if got.Principal != "root" || got.Replays != was.ID {
		t.Errorf("an admin's repetition is %+v", got)
	}
	h.refused("GET", "/api/runs/"+got.ID, "", 404, "run_not_found") // by ann

	h.key = text("narrow")
	own := h.rest(h.begin("look {\"n\":2}\n\nwrite {\"n\":1}").ID)
	path = "/api/runs/" + own.ID + "/replay"
	h.refused("POST", path, `{"model":"sim/other"}`, 403, "model_forbidden")
	if got := h.again(own.ID, `{"model":"sim/any"}`); got.Answer != own.Answer || !strings.Contains(got.Answer, "unknown_tool") {
		t.Errorf("%+v, of %+v", got, own)
	}
	for body, want := range map[string]struct {
		status      int
		code, param string
	}{
		`{"model":"none"}`:                       {404, "model_not_found", "model"},
		`{"modell":"sim/any"}`:                   {400, "invalid_request", ""},
		`{"tools":"all"}`:                        {400, "invalid_request", "tools"},
		`{"settings":[]}`:                        {400, "invalid_request", "settings"},
		`{"settings":{"temprature":0}}`:          {400, "invalid_request", "settings"},
		`{"settings":{"temperature":"hot"}}`:     {400, "invalid_request", "settings.temperature"},
		`{"settings":{"tool_use_mode":"loose"}}`: {400, "invalid_request", "settings.tool_use_mode"},
		`{"settings":{"limits":{"x":1}}}`:        {400, "invalid_request", "settings.limits"},
		`{"settings":{"temperature":0},"x":1}`:   {400, "invalid_request", ""},
		`[]`:                                     {400, "invalid_request", ""},
		`{`:                                      {400, "invalid_json", ""},
	} {
		if got := h.refused("POST", path, body, want.status, want.code); got.Param != want.param {
			t.Errorf("%s: param %q, want %q: %s", body, got.Param, want.param, got.Detail)
		}
	}
}

// A client that repeats its request gets the run that the first one began; the same key for another run is refused.
func TestReplayTakesAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	h := openReplay(t)
	one, two := h.rest(h.begin("Hello!").ID), h.rest(h.begin("Bye!").ID)
	first := h.again(one.ID, "{}", "Idempotency-Key", "k")
	if again := h.again(one.ID, "{}", "Idempotency-Key", "k"); again.ID != first.ID {
		t.Errorf("%s and %s", first.ID, again.ID)
	}
	h.refused("POST", "/api/runs/"+two.ID+"/replay", "{}", 422, "idempotency_key_reused", "Idempotency-Key", "k")
}

func TestReplayNeedsARecord(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	was := h.rest(h.begin("Hello!").ID)
	h.refused("POST", "/api/runs/"+was.ID+"/replay", "{}", 409, "replay_unavailable")
}

// What a record began with is checked as a request is: an import may have been written by hand.
func TestReplayChecksTheRecord(t *testing.T) {
	t.Parallel()
	from, h := open(t, nil), openReplay(t)
	was := from.rest(from.begin(`look {"n":1}`).ID)
	lines := from.export(was.ID)
	imported := func(t *testing.T, id string, change func(line string) string) string {
		t.Helper()
		log := change(lines[0]) + "\n" + strings.Join(lines[1:], "\n") + "\n"
		if resp, body := h.do("POST", "/api/runs/import", strings.ReplaceAll(log, was.ID, id)); resp.StatusCode != http.StatusCreated {
			t.Fatalf("%s: %d %s in %s", id, resp.StatusCode, body, change(lines[0]))
		}
		return "/api/runs/" + id + "/replay"
	}
	member := func(name string, value func(old string) string) func(string) string {
		return func(line string) string {
			var e struct{ Content map[string]json.RawMessage }
			if err := json.Unmarshal([]byte(line), &e); err != nil || e.Content[name] == nil {
				t.Fatal(err, line)
			}
			old := string(e.Content[name])
			return strings.Replace(line, `"`+name+`":`+old, `"`+name+`":`+value(old), 1)
		}
	}
	input := func(name, value string) func(string) string {
		return member("input", func(old string) string { // of members that are there twice, the last one is read
			return strings.TrimSuffix(old, "}") + `,"` + name + `":` + value + "}"
		})
	}
	messages := func(list ...lathe.Message) func(string) string {
		value, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		return member("messages", func(string) string { return string(value) })
	}
	for i, tt := range []struct {
		change func(string) string
		says   string
	}{
		{input("client_tools", `[{"Name":""}]`), "the name of client_tools[0]"},
		{input("client_tools", `[{"Name":"a b"}]`), "the name of client_tools[0]"},
		{input("client_tools", `[{"Name":"a"},{"Name":"a"}]`), "two of client_tools have the name a"},
		{input("client_tools", `[{"Name":"a","Schema":[]}]`), "the schema of client_tools[0]"},
		{input("settings", `{"ToolChoice":{"Mode":"zzz"}}`), "tool_choice"},
		{input("settings", `{"ToolChoice":{"Mode":"auto","Name":"look"}}`), "tool_choice"},
		{input("settings", `{"ToolChoice":{"Mode":"function"}}`), "tool_choice"},
		{input("sampling", `{"max_tokens":-1}`), "max_tokens"},
		{input("sampling", `{"max_tokens":0}`), "max_tokens"},
		{input("sampling", `{"response_format":"json"}`), "response_format"},
		{messages(lathe.User("x"), lathe.Message{Role: lathe.RoleTool}), "messages[1]"},
		{messages(lathe.Message{Role: "king", Parts: lathe.User("x").Parts}), "messages[0]"},
		{messages(lathe.Message{Role: lathe.RoleUser, Parts: []lathe.Part{lathe.ToolCall{ID: "c", Name: "look", Arguments: "{}"}}}), "messages[0]"},
		{messages(lathe.Message{}), "messages[0]"},
	} {
		path := imported(t, fmt.Sprintf("bad_%d", i), tt.change)
		for _, body := range []string{"{}", `{"tools":"live"}`} {
			if got := h.refused("POST", path, body, http.StatusConflict, "not_replayable"); !strings.Contains(got.Detail, tt.says) {
				t.Errorf("%d %s: %s, want %q", i, body, got.Detail, tt.says)
			}
		}
	}
	null := input("client_tools", `[null]`)(lines[0]) + "\n" + strings.Join(lines[1:], "\n") + "\n"
	h.refused("POST", "/api/runs/import", null, http.StatusBadRequest, "invalid_export")
	// The same record as it was, and with a choice that the request makes in place of the recorded one, is run again.
	imported(t, "good", func(line string) string { return line })
	if got := h.again("good", "{}"); got.Answer != was.Answer {
		t.Errorf("%+v, of %+v", got, was)
	}
	imported(t, "chosen", input("settings", `{"ToolChoice":{"Mode":"zzz"}}`))
	if got := h.again("chosen", `{"settings":{"tool_choice":"auto"}}`); got.Answer != was.Answer {
		t.Errorf("%+v, of %+v", got, was)
	}
	if h.log.wrote.Load() != 0 {
		t.Error("a tool was called")
	}
}

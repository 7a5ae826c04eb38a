package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/server"
)

// Who requests and who approves can be different keys: a key that may not decide about its own runs sees them, and
// an approver decides about those of others and can do nothing else with them.
func TestT25_ApproverIsNotTheRequester(t *testing.T) {
	t.Parallel()
	h := open(t, func(s *setting) {
		s.opts = func(o *server.Options) {
			ann, bob, lead, cat := key("ann"), key("bob"), key("lead"), key("cat")
			ann.Approve = []string{}
			lead.Approve, lead.Models, lead.Tools = []string{server.ApproveOthers}, []string{}, []string{}
			cat.Approve = []string{"bob"}
			o.Setup.Keys = []server.Key{ann, bob, lead, cat}
		}
	})
	as := func(name string) []string { return []string{"Authorization", "Bearer " + text(name)} }
	r := h.rest(h.begin("write {\"n\":1}").ID)
	at, body := "/api/runs/"+r.ID+"/approvals/"+r.Open[0].ID, `{"decision":"approve","digest":"`+r.Open[0].Digest+`"}`
	h.refused("POST", at, body, http.StatusForbidden, "approval_forbidden")
	for _, other := range []string{"bob", "cat"} {
		h.refused("POST", at, body, http.StatusNotFound, "run_not_found", as(other)...)
		h.refused("GET", "/api/runs/"+r.ID, "", http.StatusNotFound, "run_not_found", as(other)...)
	}
	h.refused("POST", at, body, http.StatusUnauthorized, "invalid_api_key", as("eve")...)
	for name, want := range map[string]int{"ann": 0, "bob": 0, "cat": 0, "lead": 1} {
		if got := h.waits("", as(name)...); len(got) != want {
			t.Errorf("%s has %d calls to decide about, want %d", name, len(got), want)
		}
	}
	if got := h.show(r.ID); got.Status != "parked" || got.Open[0].MayDecide || h.log.wrote.Load() != 0 {
		t.Errorf("%+v", got)
	}
	// The approver decides, and nothing else.
	for _, tt := range [][3]string{{"GET", "/events?follow=false", ""}, {"GET", "/export", ""}, {"POST", "/cancel", ""}, {"POST", "/resume", ""}, {"DELETE", "", ""},
		{"POST", "/tool_results", `{"results":[{"tool_call_id":"x","content":"y"}]}`}} {
		h.refused(tt[0], "/api/runs/"+r.ID+tt[1], tt[2], http.StatusNotFound, "run_not_found", as("lead")...)
	}
	if _, got := h.do("GET", "/api/runs/"+r.ID, "", as("lead")...); !strings.Contains(got, `"may_decide":true`) || !strings.Contains(got, r.Open[0].Digest) {
		t.Errorf("the approver sees %s", got)
	}
	if resp, got := h.do("POST", at, body, as("lead")...); resp.StatusCode != http.StatusOK || strings.Contains(got, `"answer"`) {
		t.Fatalf("%d %s", resp.StatusCode, got)
	}
	done := h.rest(r.ID)
	if done.Status != "completed" || done.Principal != "ann" || len(done.Decisions) != 1 || done.Decisions[0].By != "lead" || h.log.wrote.Load() != 1 {
		t.Errorf("%+v", done)
	}
	if log := strings.Join(h.export(r.ID), "\n"); !strings.Contains(log, `"decision":"approved","by":"lead"`) {
		t.Errorf("the log does not say who decided: %s", log)
	}
	if _, got := h.do("GET", "/api/runs/"+r.ID, "", as("lead")...); strings.Contains(got, `"answer"`) {
		t.Errorf("the approver sees the answer: %s", got)
	}
	quiet := h.rest(h.begin("look {\"n\":1}").ID)
	h.refused("GET", "/api/runs/"+quiet.ID, "", http.StatusNotFound, "run_not_found", as("lead")...)
	// A key that is named by another one is decided about by that one, too.
	h.key = text("bob")
	r = h.rest(h.begin("write {\"n\":2}").ID)
	if got := h.waits("", as("cat")...); len(got) != 1 || got[0].Principal != "bob" {
		t.Errorf("cat has %+v to decide about", got)
	}
	if status, body := h.answer(r, "deny"); status != http.StatusOK { // its own, by default
		t.Errorf("%d %s", status, body)
	}
}

func TestApproverOfNoKeyIsRefused(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	lead := key("lead")
	lead.Approve = []string{"nobody"}
	_, err := f.gateway.Reload(&server.Setup{Models: f.models, Keys: []server.Key{lead}})
	if lathe.CodeOf(err) != lathe.CodeInvalidConfig || !strings.Contains(err.Error(), "approve of the key lead: nobody is not own, others or the name of a key") {
		t.Errorf("got %v", err)
	}
}

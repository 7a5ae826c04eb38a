package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// A waiting is a call that waits, as GET /api/approvals lists it.
type waiting struct {
	RunID       string            `json:"run_id"`
	SessionID   string            `json:"session_id"`
	Principal   string            `json:"principal"`
	ID          string            `json:"tool_call_id"`
	Tool        string            `json:"tool"`
	Arguments   string            `json:"arguments"`
	Exact       string            `json:"exact_arguments"`
	Visible     string            `json:"visible_arguments"`
	State       string            `json:"state"`
	Digest      string            `json:"args_digest"`
	Origin      string            `json:"origin"`
	Effect      string            `json:"effect"`
	Rule        string            `json:"rule"`
	RequestedAt time.Time         `json:"requested_at"`
	ExpiresAt   time.Time         `json:"expires_at"`
	Facts       []approval.Detail `json:"facts"`
}

// waits returns the calls that wait for a decision of the caller.
func (h *runFixture) waits(query string, header ...string) []waiting {
	h.t.Helper()
	resp, body := h.do("GET", "/api/approvals"+query, "", header...)
	if resp.StatusCode != http.StatusOK {
		h.t.Fatalf("%d %s", resp.StatusCode, body)
	}
	return parse[struct{ Data []waiting }](h.t, body).Data
}

// The card of a call has the exact bytes, and what else a person needs, in the process that asked and in another one.
func TestWaitingCallHasEverythingAPersonNeeds(t *testing.T) {
	t.Parallel()
	const args = "{\"n\":12345678901234567890,\"m\":1e400,\"to\":\"\\u202emoc\",\"raw\":\"a\u202eb\u200bc\",\"x\":{\"10\":1,\"2\":2}}"
	kept := store.NewMemory(nil)
	build := func() *runFixture {
		return open(t, func(s *setting) {
			s.store, s.tools = kept, append(s.tools, anyArgs{})
			s.policy = policy.Tools{Ask: []string{"post"}, Else: policy.AllowAll()}
		})
	}
	asked := build()
	r := asked.rest(asked.begin("post "+args, `"session":"s1"`).ID)
	other := build()
	for name, h := range map[string]*runFixture{"the process that asked": asked, "another one": other} {
		got := h.waits("")
		if len(got) != 1 {
			t.Fatalf("%s: %+v", name, got)
		}
		w := got[0]
		if w.RunID != r.ID || w.SessionID != "s1" || w.State != "awaiting_approval" || w.Arguments != args || w.Exact != "" || w.Digest != r.Open[0].Digest {
			t.Errorf("%s: %+v", name, w)
		}
		if want := strings.NewReplacer("\u202e", `\u202e`, "\u200b", `\u200b`).Replace(args); w.Visible != want {
			t.Errorf("%s: visible are %s", name, w.Visible)
		}
		if w.Origin != "test" || w.Effect != "writes" || w.Rule == "" || w.RequestedAt.IsZero() || w.ExpiresAt.Sub(w.RequestedAt) != time.Hour || len(w.Facts) < 6 {
			t.Errorf("%s: %+v", name, w)
		}
		if len(h.waits("?session_id=s2")) != 0 || len(h.waits("?run_id="+r.ID)) != 1 {
			t.Errorf("%s: a filter does not hold", name)
		}
	}
	if status, body := other.answer(r, "deny"); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	other.rest(r.ID)
	if got := asked.waits(""); len(got) != 0 {
		t.Errorf("an answered call waits: %+v", got)
	}
}

// The second decision is refused with the first one: what it was, whose and when.
func TestSecondDecisionNamesTheFirst(t *testing.T) {
	t.Parallel()
	h := open(t, func(s *setting) {
		s.opts = func(o *server.Options) { o.Setup.Keys = []server.Key{key("ann")} }
	})
	// Two calls wait: while one of them does, the run has not ended.
	r := h.rest(h.begin("write {\"n\":1}\nwrite {\"n\":2}").ID)
	first, at := r.Open[0], "/api/runs/"+r.ID+"/approvals/"+r.Open[0].ID
	say := func(verb string) (int, string) {
		resp, body := h.do("POST", at, `{"decision":"`+verb+`","digest":"`+first.Digest+`"}`)
		return resp.StatusCode, body
	}
	if status, body := say("approve"); status >= 300 {
		t.Fatalf("%d %s", status, body)
	}
	refused := func(code string) {
		t.Helper()
		status, body := say("deny")
		got := parse[struct {
			Code, Decision, By, Detail string
			DecidedAt                  time.Time `json:"decided_at"`
		}](t, body)
		if status != http.StatusConflict || got.Code != code || got.Decision != "approved" || got.By != "ann" || got.DecidedAt.IsZero() ||
			!strings.Contains(got.Detail, "approved by ann") {
			t.Errorf("%d %s", status, body)
		}
	}
	refused("already_decided")
	r = h.rest(r.ID)
	if len(r.Decisions) != 1 || r.Decisions[0].By != "ann" || r.Decisions[0].Decision != "approved" || r.Decisions[0].Digest != first.Digest {
		t.Errorf("%+v", r.Decisions)
	}
	if status, body := h.answer(r, "approve"); status != http.StatusOK && status != http.StatusAccepted {
		t.Fatalf("%d %s", status, body)
	}
	if r = h.rest(r.ID); r.Status != "completed" || len(r.Decisions) != 2 || h.log.wrote.Load() != 2 {
		t.Fatalf("%+v", r)
	}
	refused("run_ended")
}

// anyArgs is a tool that takes any object.
type anyArgs struct{}

func (anyArgs) Spec() *lathe.ToolSpec {
	return &lathe.ToolSpec{Name: "post", Description: "Posts.", Schema: json.RawMessage(`{"type":"object"}`), Effect: lathe.Writes, Allowlist: []string{"*"}, Origin: "test"}
}

func (anyArgs) Call(context.Context, json.RawMessage) (*lathe.Output, error) {
	return &lathe.Output{Data: json.RawMessage(`{}`)}, nil
}

// A run that waits can be gone on with, and waits again for what is open; one that has ended cannot.
func TestResumeGoesOnWithARunThatWaits(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	r := h.rest(h.begin("write {\"n\":1}").ID)
	if resp, body := h.do("POST", "/api/runs/"+r.ID+"/resume", ""); resp.StatusCode != http.StatusAccepted {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	h.watchUntil(r.ID, r.Last, func(e *told) bool { return e.Type == "RunPaused" })
	if r = h.rest(r.ID); r.Status != "parked" || h.log.wrote.Load() != 0 {
		t.Fatalf("%+v", r)
	}
	if status, body := h.answer(r, "approve"); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	h.rest(r.ID)
	h.refused("POST", "/api/runs/"+r.ID+"/resume", "", 409, "run_ended")
	h.refused("POST", "/api/runs/run_none/resume", "", 404, "run_not_found")
}

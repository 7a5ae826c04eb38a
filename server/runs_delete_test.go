package server_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// runs returns the IDs of the stored runs of a principal, sorted.
func (h *runFixture) runs(principal string) (ids []string) {
	h.t.Helper()
	rows := h.stored(&store.RunFilter{Principal: principal})
	for i := range rows {
		ids = append(ids, rows[i].RunID)
	}
	slices.Sort(ids)
	return ids
}

// A key removes its own session, or all that it has, and nothing of anybody else; each run is audited before.
func TestDataIsRemovedForGood(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var removed []string
	var down error
	h := open(t, func(s *setting) {
		s.opts = func(o *server.Options) {
			o.Setup.Keys = []server.Key{key("ann"), key("bob")}
			o.Removing = func(_ context.Context, by string, run *lathe.RunInfo) error {
				mu.Lock()
				defer mu.Unlock()
				removed = append(removed, by+" "+run.RunID+" "+run.SessionID+" "+run.Principal)
				return down
			}
		}
	})
	begin := func(who, session, prompt string) string {
		t.Helper()
		h.key = text(who)
		return h.rest(h.begin(prompt, `"session":"`+session+`"`).ID).ID
	}
	first, parked := begin("ann", "s/1", "hi"), begin("ann", "s/1", "write {\"n\":1}")
	other, bobs := begin("ann", "s2", "hi"), begin("bob", "s/1", "hi")

	remove := func(who, path string, want int) {
		t.Helper()
		h.key = text(who)
		if resp, body := h.do("DELETE", path, ""); resp.StatusCode != want || want == http.StatusNoContent && body != "" {
			t.Errorf("%s by %s: %d %s", path, who, resp.StatusCode, body)
		}
	}
	remove("ann", "/api/sessions/s3", 404)
	remove("bob", "/api/sessions/s2", 404)
	remove("bob", "/api/principals/ann", 404)
	mu.Lock()
	down = errors.New("the disk is full")
	mu.Unlock()
	remove("ann", "/api/sessions/s2", 500)
	if got := h.runs("ann"); len(got) != 3 {
		t.Errorf("ann has %v", got)
	}
	mu.Lock()
	removed, down = nil, nil
	mu.Unlock()
	remove("ann", "/api/sessions/s%2F1", 204)
	if got := h.runs("ann"); !slices.Equal(got, []string{other}) {
		t.Errorf("ann has %v, want %s", got, other)
	}
	if len(h.approvals.Pending(parked)) != 0 {
		t.Error("somebody is still asked about a run that is gone")
	}
	slices.Sort(removed)
	want := []string{"ann " + first + " s/1 ann", "ann " + parked + " s/1 ann"}
	slices.Sort(want)
	if !slices.Equal(removed, want) {
		t.Errorf("audited %q, want %q", removed, want)
	}
	remove("ann", "/api/sessions/s%2F1", 404)
	for range 2 {
		remove("ann", "/api/principals/ann", 204)
	}
	if got := h.runs(""); !slices.Equal(got, []string{bobs}) {
		t.Errorf("what is left: %v, want %s", got, bobs)
	}
}

// While a run goes on nothing of its session is removed.
func TestDataOfRunsThatGoOnIsKept(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	ended := h.rest(h.begin("hi", `"session":"s1"`).ID)
	h.model.step = make(chan struct{}, 1)
	goes := h.begin("hi", `"session":"s1"`)
	h.refused("DELETE", "/api/sessions/s1", "", 409, "run_running")
	if got := h.runs(""); len(got) != 2 {
		t.Errorf("%v is left of %s and %s", got, ended.ID, goes.ID)
	}
	h.model.step <- struct{}{}
	h.rest(goes.ID)
	if resp, body := h.do("DELETE", "/api/sessions/s1", ""); resp.StatusCode != http.StatusNoContent {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if got := h.runs(""); len(got) != 0 {
		t.Errorf("%v is left", got)
	}
}

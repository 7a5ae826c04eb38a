package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// Only the owner of a run gets different answers for a run that the store has removed by age and one that never existed.
func TestRunIsGone(t *testing.T) {
	t.Parallel()
	h := open(t, func(s *setting) {
		s.opts = func(o *server.Options) { o.Setup.Keys = []server.Key{key("ann"), key("bob")} }
	})
	h.key = text("ann")
	r := h.rest(h.begin("look {\"n\":1}").ID)
	keeper, ok := h.index.(store.Retainer)
	if !ok {
		t.Fatalf("%T", h.index)
	}
	if err := keeper.DeleteBefore(t.Context(), time.Now().Add(1000*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "/events", "/export", "/events?after=3"} {
		resp, body := h.do("GET", "/api/runs/"+r.ID+path, "")
		if resp.StatusCode != http.StatusGone || !strings.Contains(body, "run_gone") || !strings.Contains(body, "bounded time") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
		if resp, body := h.do("GET", "/api/runs/"+r.ID+path, "", "Authorization", "Bearer "+text("bob")); resp.StatusCode != 404 || strings.Contains(body, "gone") {
			t.Errorf("%s to a stranger: %d %s", path, resp.StatusCode, body)
		}
	}
}

package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// If the store is full for a key, every endpoint that starts a run answers with an error that lets the client try again.
// The runs of another key do not count.
func TestStoreIsFull(t *testing.T) {
	t.Parallel()
	h := open(t, func(s *setting) {
		s.store = store.NewMemory(&store.MemoryOptions{MaxRuns: 4, Share: 4})
		s.opts = func(o *server.Options) { o.Setup.Keys = []server.Key{key("ann"), key("bob")} }
	})
	waits := h.begin(`write {"n":1}`)
	bodies := []string{chatBody("hi", `,"lathe":{"session":"s"}`, false), chatBody("hi", `,"lathe":{"session":"s"}`, true),
		chatBody("hi", `,"lathe":{"detach":true}`, false), chatBody("hi", `,"lathe":{"detach":true}`, true)}
	for i, body := range bodies {
		resp, said := h.do("POST", "/v1/chat/completions", body)
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || !strings.Contains(said, "overloaded") {
			t.Errorf("chat %d: %d, Retry-After %q, %s", i, resp.StatusCode, resp.Header.Get("Retry-After"), said)
		}
	}
	resp, said := h.do("POST", "/api/runs", `{"model":"sim/any","prompt":"hi"}`)
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("a run: %d %s", resp.StatusCode, said)
	}
	for i, body := range bodies {
		if resp, said := h.do("POST", "/v1/chat/completions", body, "Authorization", "Bearer "+text("bob")); resp.StatusCode != http.StatusOK {
			t.Errorf("another key, chat %d: %d %s", i, resp.StatusCode, said)
		}
	}
	h.show(waits.ID)
}

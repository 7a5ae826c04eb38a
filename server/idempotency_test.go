package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// once begins a run with an Idempotency-Key and returns its id, "" where it was refused.
func (h *runFixture) once(key, prompt string, header ...string) (id string, resp *http.Response, body string) {
	h.t.Helper()
	resp, body = h.do("POST", "/api/runs", `{"model":"sim/any","prompt":"`+prompt+`"}`, append(header, "Idempotency-Key", key)...)
	if resp.StatusCode == http.StatusCreated {
		id = parse[run](h.t, body).ID
	}
	return id, resp, body
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	kept := store.NewMemory(nil)
	with := func(s *setting) {
		s.store = kept
		s.opts = func(o *server.Options) { o.Setup.Keys = []server.Key{key("ann"), key("bob")} }
	}
	h := open(t, with)
	first, resp, body := h.once("k1", "hi")
	if first == "" || resp.Header.Get("Idempotency-Replayed") != "" || len(first) != len("run_")+26 || strings.Contains(body, "sha256") {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	h.rest(first)
	if again, resp, _ := h.once("k1", "hi"); again != first || resp.Header.Get("Idempotency-Replayed") != "true" || resp.Header.Get("Location") != "/api/runs/"+first {
		t.Errorf("the same request began %s, not %s", again, first)
	}
	// White space and the order of members do not make another request.
	if resp, body := h.do("POST", "/api/runs", "{ \"prompt\":\"hi\",\n\"model\":\"sim/any\"}", "Idempotency-Key", `"k1"`); resp.Header.Get("Location") != "/api/runs/"+first {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if _, resp, body := h.once("k1", "ho"); resp.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(body, "idempotency_key_reused") {
		t.Errorf("another request under the key: %d %s", resp.StatusCode, body)
	}
	if other, _, _ := h.once("k2", "hi"); other == first || other == "" {
		t.Errorf("another key began %s", other)
	}
	if other, _, _ := h.once("k1", "hi", "Authorization", "Bearer "+text("bob")); other == first || other == "" {
		t.Errorf("another principal began %s", other)
	}
	for _, bad := range []string{`""`, strings.Repeat("x", 256), "naïve"} {
		h.refused("POST", "/api/runs", `{"model":"sim/any","prompt":"hi"}`, 400, "invalid_request", "Idempotency-Key", bad)
	}
	// Another process knows it, and it is good for a day at least, and not for ever.
	later := open(t, with)
	later.clock.add(24 * time.Hour)
	if again, _, _ := later.once("k1", "hi"); again != first {
		t.Errorf("another process, a day later, began %s, not %s", again, first)
	}
	later.clock.add(24 * time.Hour)
	if again, _, _ := later.once("k1", "hi"); again == first || again == "" {
		t.Errorf("two days later it is still %s", again)
	}
}

func TestIdempotencyKeyOfManyAtOnce(t *testing.T) {
	t.Parallel()
	h := open(t, nil)
	var all sync.WaitGroup
	var ids sync.Map
	for i := range 16 {
		all.Go(func() {
			id, resp, body := h.once(fmt.Sprintf("k%d", i%2), "hi")
			if id == "" {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
			ids.Store(id, i%2)
		})
	}
	all.Wait()
	n := 0
	ids.Range(func(id, _ any) bool {
		n++
		h.rest(id.(string))
		return true
	})
	if rows, _, err := h.index.Runs(t.Context(), &store.RunFilter{}); err != nil || len(rows) != 2 || n != 2 {
		t.Errorf("%d runs under %d ids, %v", len(rows), n, err)
	}
}

// A key whose run the store has removed begins it no second time.
func TestIdempotencyKeyOfARunThatIsGone(t *testing.T) {
	t.Parallel()
	kept := store.NewMemory(&store.MemoryOptions{MaxFinished: 1})
	h := open(t, func(s *setting) {
		s.store, s.policy = kept, policy.AllowAll()
		s.opts = func(o *server.Options) { o.Setup.Keys = []server.Key{key("ann"), key("bob")} }
	})
	const prompt = `write {\"n\":1}`
	first, resp, body := h.once("k1", prompt)
	if first == "" {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	h.rest(first)
	second, resp, body := h.once("k2", prompt)
	if second == "" {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	h.rest(second)
	if _, resp, body = h.once("k1", prompt); resp.StatusCode != http.StatusGone || !strings.Contains(body, "run_gone") {
		t.Errorf("the key of a run that is gone: %d %s", resp.StatusCode, body)
	}
	if n := h.log.wrote.Load(); n != 2 {
		t.Errorf("%d written, want 2", n)
	}
	other, resp, body := h.once("k1", "hi", "Authorization", "Bearer "+text("bob"))
	if other == "" {
		t.Errorf("the same key of another principal: %d %s", resp.StatusCode, body)
	}
}

package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

const clusterKey = "the key of the cluster"

// join makes the runFixture one of several on a store, and looks for runs until the test ends.
func (h *runFixture) join(t *testing.T, kept store.Shared, change ...func(*setting)) {
	t.Helper()
	s := h.setting(func(s *setting) {
		s.store, s.now = kept, nil
		for _, c := range change {
			c(s)
		}
		own := s.opts
		s.opts = func(o *server.Options) {
			o.Limits.Claim = 10 * time.Millisecond
			o.Limits.Poll = 20 * time.Millisecond
			o.Cluster.Key = secret.New(clusterKey)
			if own != nil {
				own(o)
			}
		}
	})
	h.fixture = serve(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	var tending sync.WaitGroup
	tending.Go(func() { h.gateway.Maintain(ctx) })
	t.Cleanup(func() {
		cancel()
		tending.Wait()
	})
}

// advertise stores the address of the test server, as Serve does if it has one.
func (h *runFixture) advertise(t *testing.T, kept store.Shared, runID string) {
	t.Helper()
	owner, err := kept.Owner(t.Context(), runID)
	if err != nil || owner == "" {
		t.Fatalf("the run is carried by %q, %v", owner, err)
	}
	if err := kept.Advertise(t.Context(), owner, h.url, time.Hour); err != nil {
		t.Fatal(err)
	}
}

// Any process answers for any run: it shows it, tells all of its events once and its text as it comes, takes
// answers and results, and ends it.
func TestF15_AnyProcessServesAnyRun(t *testing.T) {
	t.Parallel()
	kept := store.NewMemory(nil)
	first, second := &runFixture{}, &runFixture{}
	first.join(t, kept)
	second.join(t, kept)

	first.model.step = make(chan struct{})
	r := first.begin("look {\"n\":1}\n\nlook {\"n\":2}")
	first.advertise(t, kept, r.ID)
	begun := make(chan struct{})
	var watching sync.WaitGroup
	var events []*told
	watching.Go(func() {
		once := sync.OnceFunc(func() { close(begun) })
		events = second.watchUntil(r.ID, 0, func(*told) bool {
			once()
			return false
		})
	})
	<-begun
	for range 3 {
		first.model.step <- struct{}{}
	}
	watching.Wait()
	close(first.model.step)
	last := int64(0)
	for i := range events {
		if e := events[i]; !strings.HasSuffix(e.Type, "Delta") {
			if last++; e.ID != fmt.Sprint(last) {
				t.Errorf("event %s follows %d", e.ID, last-1)
			}
		}
	}
	if done := second.show(r.ID); done.Status != "completed" || done.Last != last {
		t.Errorf("%+v, told %d", done, last)
	}

	asked := first.rest(first.begin("write {\"n\":1}").ID)
	if status, body := second.answer(second.show(asked.ID), "approve"); status != 200 && status != 202 {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := first.answer(asked, "deny"); status != http.StatusConflict {
		t.Errorf("a second decision: %d", status)
	}
	if done := second.watchUntil(asked.ID, 0, never); !strings.Contains(done[len(done)-1].Content.Answer, `{"n":1}`) {
		t.Errorf("%s", done[len(done)-1].Line)
	}
	if n := first.log.wrote.Load() + second.log.wrote.Load(); n != 1 {
		t.Errorf("it was written %d times", n)
	}

	slow := second.begin("hold {\"n\":1}")
	<-second.log.held
	if resp, body := first.do("POST", "/api/runs/"+slow.ID+"/cancel", ""); resp.StatusCode != 200 && resp.StatusCode != 202 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if ended := first.watchUntil(slow.ID, 0, never); !strings.Contains(ended[len(ended)-1].Line, `"cancelled"`) {
		t.Errorf("%s", ended[len(ended)-1].Line)
	}
}

// The server sends the deltas of a run only to processes that present the cluster key.
func TestDeltasWantTheClusterKey(t *testing.T) {
	t.Parallel()
	kept := store.NewMemory(nil)
	h := &runFixture{}
	h.join(t, kept)
	h.model.step = make(chan struct{})
	r := h.begin("hello")
	h.watchUntil(r.ID, 0, func(e *told) bool { return e.Type == "ModelCallStarted" })
	ask := func(id, authorization string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+"/cluster/v1/runs/"+id+"/deltas", nil)
		if err != nil {
			t.Fatal(err)
		}
		if authorization != "" {
			req.Header.Set("Authorization", authorization)
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	for _, given := range []string{"", "Bearer ", "Bearer another key of nobody", "Basic " + clusterKey, clusterKey} {
		if resp := ask(r.ID, given); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q: %d", given, resp.StatusCode)
		}
	}
	if resp := ask("run_none", "Bearer "+clusterKey); resp.StatusCode != http.StatusNotFound {
		t.Errorf("a run that is not carried here: %d", resp.StatusCode)
	}
	told := ask(r.ID, "Bearer "+clusterKey)
	if told.StatusCode != http.StatusOK {
		t.Fatalf("%d", told.StatusCode)
	}
	h.model.step <- struct{}{}
	if lines, err := io.ReadAll(told.Body); err != nil || !strings.Contains(string(lines), `"TextDelta"`) || strings.Contains(string(lines), "RunFinished") {
		t.Errorf("%s, %v", lines, err)
	}
	h.rest(r.ID)
}

func TestClusterIsChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []server.Cluster{
		{Key: secret.New("short")}, {Address: "http://10.0.0.1:1"}, {Key: secret.New(clusterKey), Address: "10.0.0.1:1"},
		{Key: secret.New(clusterKey), Address: "http://user@10.0.0.1"}, {Key: secret.New(clusterKey), Address: "http://10.0.0.1/path"},
	} {
		f := serve(t, nil)
		_, err := server.New(&server.Options{Engine: f.engine, Index: f.index, Setup: server.Setup{Models: f.models}, Cluster: c})
		if err == nil || strings.Contains(fmt.Sprint(err), clusterKey) {
			t.Errorf("%q: %v", c.Address, err)
		}
	}
}

// The same Idempotency-Key begins one run, whichever of many processes is asked at once.
func TestIdempotencyKeyHoldsEverywhere(t *testing.T) {
	t.Parallel()
	kept := store.NewMemory(nil)
	fixtures := []*runFixture{{}, {}, {}}
	for _, h := range fixtures {
		h.join(t, kept)
	}
	ids := make([]string, 12)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() { ids[i], _, _ = fixtures[i%len(fixtures)].once("k1", "hi") })
	}
	all.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Errorf("got %q", ids)
			break
		}
	}
	fixtures[0].rest(ids[0])
	rows, _, err := kept.Runs(t.Context(), nil)
	if err != nil || len(rows) != 1 {
		t.Errorf("%d runs, %v", len(rows), err)
	}
}

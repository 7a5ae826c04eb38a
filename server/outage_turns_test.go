package server_test

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// An unreadable is a store that does not answer questions while down is set. It counts those about requests.
type unreadable struct {
	*store.Memory
	down  atomic.Bool
	asked atomic.Int64
}

var errUnreadable = &lathe.Error{Code: lathe.CodeUnavailable, Op: "test", Err: errors.New("the store is down")}

func (s *unreadable) Read(ctx context.Context, runID string, after int64) iter.Seq2[event.Event, error] {
	if s.down.Load() {
		return func(yield func(event.Event, error) bool) { yield(event.Event{}, errUnreadable) }
	}
	return s.Memory.Read(ctx, runID, after)
}

func (s *unreadable) FindRequest(ctx context.Context, digest store.RequestDigest) (store.RequestRecord, error) {
	s.asked.Add(1)
	if s.down.Load() {
		return store.RequestRecord{}, errUnreadable
	}
	return s.Memory.FindRequest(ctx, digest)
}

// While the store does not answer, hidden turns that a call names are not taken for turns that do not exist: the request can be sent
// again, and finds them later. Answers of text, which name nothing, are answered without them, and find them later, too.
func TestHiddenTurnsAreNotLostInAnOutage(t *testing.T) {
	t.Parallel()
	kept := store.NewMemory(nil)
	f := serve(t, &setting{model: mixed(), store: kept})
	c := wireClients["chat"]
	tools := []*lathe.ToolSpec{weatherSpec()}
	a := c.ask(f, false, tools, lathe.User("hi"))
	turn := []lathe.Message{lathe.User("hi"), bare(a.message), c.gives(a.message.Calls()[0].ID)}
	text := c.ask(f, false, tools, turn...)
	if a.err != nil || text.err != nil {
		t.Fatal(a.err, text.err)
	}
	for name, history := range map[string][]lathe.Message{
		"a call": turn,
		"a text": {lathe.User("hi"), a.message, turn[2], text.message, lathe.User("And?")},
	} {
		s := &unreadable{Memory: kept}
		model := mixed()
		g := serve(t, &setting{model: model, store: s})
		c.ask(g, false, tools, lathe.User("a request that reads the keys"))
		s.down.Store(true)
		b := c.ask(g, false, tools, history...)
		if name == "a call" && (b.status != 503 || b.header.Get("Retry-After") == "") || name == "a text" && b.status == 503 && b.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", name, b.status, b.body)
		}
		s.down.Store(false)
		before := len(model.all())
		if b = c.ask(g, false, tools, history...); b.err != nil {
			t.Errorf("%s: %v", name, b.err)
		}
		if got := transcript(model.all()[before].Messages); !strings.Contains(got, "calculator:s1") || !strings.Contains(got, "=s2") {
			t.Errorf("%s: the model was sent\n%s", name, got)
		}
	}
}

// While the store does not answer, a request with an answer to an approval can be sent again, and the answer counts then.
func TestApprovalAnswersAreNotLostInAnOutage(t *testing.T) {
	t.Parallel()
	c := wireClients["responses"]
	for how, after := range map[string]string{"at the end": "", "before a message": `,{"type":"message","role":"user","content":"look {}"}`} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := &unreadable{Memory: store.NewMemory(nil)}
			h := open(t, func(set *setting) { set.store = s })
			post := func(input string) *wireAnswer {
				return c.send(t.Context(), h.fixture, false, `{"model":"sim/demo","input":[{"type":"message","role":"user","content":"write {\"n\":1}"}`+input+
					`],"tools":[{"type":"mcp","server_label":"lathe","require_approval":"always"}]}`)
			}
			a := post("")
			var request string
			for _, p := range a.message.Parts {
				if o, ok := p.(lathe.Opaque); ok && strings.Contains(string(o.JSON), `"mcp_approval_request"`) {
					request = string(o.JSON)
				}
			}
			if a.err != nil || request == "" {
				t.Fatalf("%v: %s", a.err, a.body)
			}
			approves := "," + request + `,{"type":"mcp_approval_response","approval_request_id":"` + parse[struct{ ID string }](t, request).ID + `","approve":true}` + after
			s.down.Store(true)
			if b := post(approves); b.status != 503 || b.header.Get("Retry-After") == "" {
				t.Errorf("in an outage: %d %s", b.status, b.body)
			}
			s.down.Store(false)
			if b := post(approves); b.err != nil || h.log.wrote.Load() != 1 {
				t.Errorf("after it: %v, written %d times: %s", b.err, h.log.wrote.Load(), b.body)
			}
		})
	}
}

// While the store does not answer, a request that names an object of the vendor's account can be sent again; and an object that is
// named at several places is looked up once.
func TestObjectsAreNotForbiddenInAnOutage(t *testing.T) {
	t.Parallel()
	c := wireClients["messages"]
	s := &unreadable{Memory: store.NewMemory(nil)}
	f, _ := upstream(t, "messages", []server.Key{key("none")}, func(set *setting) {
		set.store, set.nothing = s, false
		set.opts = func(o *server.Options) { o.Setup.Tools, o.Setup.Keys = nil, []server.Key{key("none")} }
	})
	const file = `{"type":"document","source":{"type":"file","file_id":"file_1"}},`
	naming := `{"model":"sim/demo","stream":true,"max_tokens":9,"messages":[{"role":"user","content":[` + file + file + file + `{"type":"text","text":"x"}]}]}`
	if a := c.send(t.Context(), f, true, `{"model":"sim/demo","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"x"}]}`); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	s.down.Store(true)
	if a := c.send(t.Context(), f, true, naming); a.status != 503 && a.status != 529 || a.header.Get("Retry-After") == "" {
		t.Errorf("in an outage: %d %s", a.status, a.body)
	}
	s.down.Store(false)
	lookups := func() int64 {
		before := s.asked.Load()
		if a := c.send(t.Context(), f, true, naming); a.status != 200 {
			t.Errorf("after it: %d %s", a.status, a.body)
		}
		return s.asked.Load() - before
	}
	if first, second := lookups(), lookups(); first != second+1 { // the second request looks up no object
		t.Errorf("an object that is named three times takes %d lookups", first-second)
	}
}

func (s *unreadable) Runs(ctx context.Context, f *store.RunFilter) ([]store.RunSummary, string, error) {
	if s.down.Load() {
		return nil, "", &lathe.Error{Code: lathe.CodeTimeout, Op: "test", Err: context.DeadlineExceeded}
	}
	return s.Memory.Runs(ctx, f)
}

func (s *unreadable) ModelCalls(ctx context.Context, f *store.RunFilter) ([]store.CallSummary, string, error) {
	if s.down.Load() {
		return nil, "", errUnreadable
	}
	return s.Memory.ModelCalls(ctx, f)
}

// While the store does not answer, a question about runs can be asked again.
func TestQuestionsAboutRunsInAnOutage(t *testing.T) {
	t.Parallel()
	s := &unreadable{Memory: store.NewMemory(nil)}
	f := serve(t, &setting{model: mixed(), store: s})
	s.down.Store(true)
	for _, path := range []string{"api/runs", "api/runs/run_1", "api/runs/run_1/events", "api/runs/run_1/export", "api/stats", "api/approvals",
		"api/sessions", "api/tools?stats=true", "api/chat/run_1/stream", "v1/responses/resp_1"} {
		if resp, body := f.do(http.MethodGet, "/"+path, ""); resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %s, Retry-After %q: %s", path, resp.Status, resp.Header.Get("Retry-After"), body)
		}
	}
}

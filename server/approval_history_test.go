package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/store"
)

// A listened is a model that keeps what it was asked.
type listened struct {
	lathe.Model
	mu    sync.Mutex
	asked []string
}

func (l *listened) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	raw, _ := json.Marshal(req.Messages) // for comparison alone
	l.mu.Lock()
	l.asked = append(l.asked, string(raw))
	l.mu.Unlock()
	return l.Model.Generate(ctx, req)
}

// last is the last conversation that the model got.
func (l *listened) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked[len(l.asked)-1]
}

// all are the conversations that the model got.
func (l *listened) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.asked)
}

// showItems asks for requests for approvals as items, without a tool that declares it.
const showItems = `,"lathe":{"show":"items"}`

// approvalIn returns the id of the request for an approval among items.
func approvalIn(t *testing.T, items []json.RawMessage) string {
	t.Helper()
	for _, item := range items {
		if i := parse[struct{ ID, Type string }](t, string(item)); i.Type == "mcp_approval_request" {
			return i.ID
		}
	}
	t.Fatalf("no approval is asked for: %s", items)
	return ""
}

// Clients of Responses send the whole history again, and with it the answers to approvals of earlier turns. The next question
// reaches the model, which sees the call once and not that it waited.
func TestApprovalResponsesInTheHistoryAreNotTakenAgain(t *testing.T) {
	t.Parallel()
	var model *listened
	h := open(t, func(s *setting) {
		model = &listened{Model: s.model}
		s.model = model
	})
	history := `{"type":"message","role":"user","content":"write {\"n\":1}"}`
	post := func(more string) []json.RawMessage {
		t.Helper()
		resp, body := h.do("POST", "/v1/responses", `{"model":"sim/demo"`+showItems+`,"input":[`+history+more+`]}`)
		if resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		return parse[struct{ Output []json.RawMessage }](t, body).Output
	}
	keep := func(items []json.RawMessage) {
		for _, item := range items {
			history += "," + string(item)
		}
	}
	asked := post("")
	keep(asked)
	response := fmt.Sprintf(`,{"type":"mcp_approval_response","approval_request_id":%q,"approve":true}`, approvalIn(t, asked))
	approved := post(response)
	history += response
	keep(approved)
	answer := post(`,{"type":"message","role":"user","content":"What is 7 + 35?"}`)
	last := model.last()
	if !strings.Contains(last, "7 + 35") || fmt.Sprint(answer) == fmt.Sprint(approved) {
		t.Errorf("the question did not reach the model, which got %s", last)
	}
	if strings.Contains(last, "has not been called") || strings.Count(last, "Turn 1") != 1 || strings.Count(last, `"arguments":`) != 1 {
		t.Errorf("the model got %s", last)
	}
	if got := h.log.wrote.Load(); got != 1 {
		t.Errorf("written %d times", got)
	}
}

// An answer to an approval with a further message stores the answer, and the message is answered.
func TestApprovalResponseBeforeAMessage(t *testing.T) {
	t.Parallel()
	var model *listened
	h := open(t, func(s *setting) {
		model = &listened{Model: s.model}
		s.model = model
	})
	const ask = `{"type":"message","role":"user","content":"write {\"n\":1}"}`
	_, body := h.do("POST", "/v1/responses", `{"model":"sim/demo"`+showItems+`,"input":[`+ask+`]}`)
	asked := parse[struct{ Output []json.RawMessage }](t, body).Output
	id := approvalIn(t, asked)
	history := ask
	for _, item := range asked {
		history += "," + string(item)
	}
	resp, body := h.do("POST", "/v1/responses", fmt.Sprintf(`{"model":"sim/demo","input":[%s,{"type":"mcp_approval_response","approval_request_id":%q,"approve":true},`+
		`{"type":"message","role":"user","content":"What is 7 + 35?"}]}`, history, id))
	if all := model.all(); resp.StatusCode != 200 || !slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, "7 + 35") }) {
		t.Errorf("%s: the model got %s", body, all) // the run of the approval may have been the last to ask it
	}
	if len(h.waits("")) != 0 {
		t.Error("the call still waits")
	}
}

// A halting is a model that waits after the first piece of the turn that follows a result.
type halting struct {
	lathe.Model
	said, proceed chan struct{}
}

func (m *halting) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		waits := req.Messages[len(req.Messages)-1].Role == lathe.RoleTool
		for d, err := range m.Model.Generate(ctx, req) {
			if !yield(d, err) {
				return
			}
			if waits {
				waits = false
				close(m.said)
				<-m.proceed
			}
		}
	}
}

// A readStore is a store that calls read when the rest of a log is read.
type readStore struct {
	*store.Memory
	read func()
}

func (s *readStore) Read(ctx context.Context, runID string, after int64) iter.Seq2[event.Event, error] {
	if after > 0 {
		s.read()
	}
	return s.Memory.Read(ctx, runID, after)
}

// A stream that begins to follow a run in the middle of a turn has the whole text of the turn.
func TestStreamFollowsFromTheMiddleOfATurn(t *testing.T) {
	t.Parallel()
	model := &halting{said: make(chan struct{}), proceed: make(chan struct{})}
	var follows atomic.Bool
	h := open(t, func(s *setting) {
		model.Model, s.model = s.model, model
		kept := &readStore{Memory: store.NewMemory(nil)}
		kept.read = func() {
			if follows.CompareAndSwap(true, false) {
				close(model.proceed)
			}
		}
		s.store = kept
	})
	const ask = `{"type":"message","role":"user","content":"write {\"n\":1}"}`
	_, body := h.do("POST", "/v1/responses", `{"model":"sim/demo"`+showItems+`,"input":[`+ask+`]}`)
	id := approvalIn(t, parse[struct{ Output []json.RawMessage }](t, body).Output)
	h.answerOnly("approve")
	<-model.said
	follows.Store(true)
	resp, body := h.do("POST", "/v1/responses", fmt.Sprintf(`{"model":"sim/demo","stream":true,"input":[%s,{"type":"mcp_approval_response","approval_request_id":%q,"approve":true}]}`, ask, id))
	if resp.StatusCode != 200 || !strings.Contains(body, `"text":"The tools said: {\"n\":1}"`) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

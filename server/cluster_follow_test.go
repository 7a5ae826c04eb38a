package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// A reached is a transport that calls begun when another process has begun to send deltas.
type reached struct {
	http.Transport
	begun  func()
	passed func() // if not nil, it is called when the client has read the last text of the turn
}

func (r *reached) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.Transport.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusOK {
		r.begun()
		if r.passed != nil {
			resp.Body = &readText{ReadCloser: resp.Body, passed: r.passed}
		}
	}
	return resp, err
}

// readText is the body of a response. It calls passed when the client reads on after the text `5.`, the last one of the turn, which the client
// has published by then.
type readText struct {
	io.ReadCloser
	read   []byte
	passed func()
}

func (b *readText) Read(p []byte) (int, error) {
	if bytes.Contains(b.read, []byte(`"5."`)) {
		b.passed()
	}
	n, err := b.ReadCloser.Read(p)
	b.read = append(b.read, p[:n]...)
	return n, err
}

// An answer that follows a run of another process from the middle of a turn has the whole text of the turn.
func TestStreamFollowsAnotherProcessFromTheMiddleOfATurn(t *testing.T) {
	t.Parallel()
	kept := store.NewMemory(nil)
	model := &halting{said: make(chan struct{}), proceed: make(chan struct{})}
	cluster := func(s *setting) {
		s.store = kept
		own := s.opts
		s.opts = func(o *server.Options) {
			if own != nil {
				own(o)
			}
			o.Cluster.Key = secret.New(clusterKey)
		}
	}
	owner := open(t, func(s *setting) {
		model.Model, s.model = s.model, model
		cluster(s)
	})
	relay := &reached{begun: sync.OnceFunc(func() { close(model.proceed) })}
	defer relay.CloseIdleConnections()
	other := open(t, func(s *setting) {
		cluster(s)
		own := s.opts
		s.opts = func(o *server.Options) {
			own(o)
			o.Cluster.Client = &http.Client{Transport: relay}
		}
	})
	const ask = `{"type":"message","role":"user","content":"write {\"n\":1}"}`
	resp, body := owner.do("POST", "/v1/responses", `{"model":"sim/demo"`+showItems+`,"input":[`+ask+`]}`)
	id := approvalIn(t, parse[struct{ Output []json.RawMessage }](t, body).Output)
	owner.answerOnly("approve")
	<-model.said
	owner.advertise(t, kept, resp.Header.Get("X-Lathe-Run-Id"))
	resp, body = other.do("POST", "/v1/responses", fmt.Sprintf(`{"model":"sim/demo","stream":true,"input":[%s,{"type":"mcp_approval_response","approval_request_id":%q,"approve":true}]}`, ask, id))
	if resp.StatusCode != 200 || !strings.Contains(body, `"text":"The tools said: {\"n\":1}"`) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// inCluster makes a process one of several that have a store.
func inCluster(kept store.Shared, change func(*setting)) func(*setting) {
	return func(s *setting) {
		s.store = kept
		change(s)
		own := s.opts
		s.opts = func(o *server.Options) {
			o.Cluster.Key, o.Limits.Poll = secret.New(clusterKey), 5*time.Millisecond
			if own != nil {
				own(o)
			}
		}
	}
}

// A client whose answer is held while another process executes the run gets the thinking of its turns as a client of that process does, with
// the signatures and in the same order: the next request is the same one, and the server accepts it.
func TestFollowersGetTheSignaturesOfThinking(t *testing.T) {
	t.Parallel()
	for how, stream := range bothWays {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			sent := map[bool]string{}
			for _, elsewhere := range []bool{false, true} {
				s, kept := newBoundServer(), store.NewMemory(nil)
				first := open(t, inCluster(kept, func(set *setting) {
					set.model = s.model(t, "keep")
					set.opts = func(o *server.Options) { o.Setup.Hold = time.Hour }
				}))
				decides := first
				if elsewhere {
					decides = open(t, inCluster(kept, func(set *setting) { set.model = s.model(t, "keep") }))
				}
				c, done := wireClients["messages"], make(chan *wireAnswer)
				go func() { done <- c.ask(first.fixture, stream, nil, lathe.User("write 5")) }()
				for len(decides.waits("")) == 0 {
					time.Sleep(time.Millisecond)
				}
				decides.decideOnly("approve")
				a := <-done
				if a.err != nil || !strings.Contains(a.message.Text(), "The tools said") && !strings.Contains(a.message.Text(), "5") {
					t.Fatalf("%v: %s", a.err, a.body)
				}
				if b := c.ask(first.fixture, stream, nil, lathe.User("write 5"), c.back(a.message), lathe.User("Thanks.")); b.err != nil || strings.Contains(b.body, `"dropped"`) {
					t.Errorf("%v: %s", b.err, b.body)
				}
				last := s.bodies[len(s.bodies)-1]
				if len(s.refused) > 0 || strings.Count(last, `{"type":"thinking"`) != 2 || strings.Contains(last, `"signature":""`) {
					t.Errorf("elsewhere %v: refused %q, the last request is\n%s", elsewhere, s.refused, last)
				}
				sent[elsewhere] = last
			}
			if sent[false] != sent[true] {
				t.Errorf("behind a run of another process the request is\n%s\nelse\n%s", sent[true], sent[false])
			}
		})
	}
}

// A heldModel is a model that waits before one delta of the turn that follows a result.
type heldModel struct {
	lathe.Model
	at            int // the number of the delta, from 0
	said, proceed chan struct{}
	breaks        error         // at the end of the turn; nil: it ends as it does
	passed        chan struct{} // the model returns breaks after this is closed
}

func (m *heldModel) Generate(ctx context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	return func(yield func(lathe.Delta, error) bool) {
		n, answers := 0, req.Messages[len(req.Messages)-1].Role == lathe.RoleTool
		for d, err := range m.Model.Generate(ctx, req) {
			if answers && n == m.at {
				close(m.said)
				<-m.proceed
			}
			if answers && m.breaks != nil && d.Kind == lathe.DeltaFinish {
				<-m.passed
				yield(lathe.Delta{}, m.breaks)
				return
			}
			if n++; !yield(d, err) {
				return
			}
		}
	}
}

// A turn that breaks off has no message: its followers get the text that waited for it.
func TestFollowersOfABrokenTurnGetItsText(t *testing.T) {
	t.Parallel()
	kept, s := store.NewMemory(nil), newBoundServer()
	strict, err := provider.Responses("sim/fault-strict-signatures", &provider.Options{BaseURL: "http://models.example", Entry: "x", Transport: s, Retry: provider.Retry{Attempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	model := &heldModel{Model: strict, said: make(chan struct{}), proceed: make(chan struct{}), breaks: errors.New("the connection broke"), passed: make(chan struct{})}
	owner := open(t, inCluster(kept, func(set *setting) { set.model = model }))
	relay := &reached{begun: sync.OnceFunc(func() { close(model.proceed) }), passed: sync.OnceFunc(func() { close(model.passed) })}
	defer relay.CloseIdleConnections()
	other := open(t, inCluster(kept, func(set *setting) {
		set.model = strict
		set.opts = func(o *server.Options) { o.Cluster.Client = &http.Client{Transport: relay} }
	}))
	const ask = `{"type":"message","role":"user","content":"write 5"}`
	resp, body := owner.do("POST", "/v1/responses", `{"model":"sim/demo"`+showItems+`,"input":[`+ask+`]}`)
	id := approvalIn(t, parse[struct{ Output []json.RawMessage }](t, body).Output)
	owner.answerOnly("approve")
	<-model.said
	owner.advertise(t, kept, resp.Header.Get("X-Lathe-Run-Id"))
	a := wireClients["responses"].send(t.Context(), other.fixture, true,
		fmt.Sprintf(`{"model":"sim/demo","stream":true,"input":[%s,{"type":"mcp_approval_response","approval_request_id":%q,"approve":true}]}`, ask, id))
	if !strings.Contains(a.body, `"delta":"5."`) || !strings.Contains(a.body, "response.failed") {
		t.Errorf("%v: %s", a.err, a.body)
	}
}

// The same holds for a client that gets the deltas of a run that another process executes, from the first one on, and from the middle of the
// turn.
func TestFollowersOfDeltasGetTheReasoning(t *testing.T) {
	t.Parallel()
	for _, at := range []int{0, 1} {
		t.Run(fmt.Sprint("from delta ", at), func(t *testing.T) {
			t.Parallel()
			kept, s := store.NewMemory(nil), newBoundServer()
			strict, err := provider.Responses("sim/fault-strict-signatures", &provider.Options{BaseURL: "http://models.example", Entry: "x", Transport: s, Retry: provider.Retry{Attempts: 1}})
			if err != nil {
				t.Fatal(err)
			}
			model := &heldModel{Model: strict, at: at, said: make(chan struct{}), proceed: make(chan struct{})}
			owner := open(t, inCluster(kept, func(set *setting) { set.model = model }))
			relay := &reached{begun: sync.OnceFunc(func() { close(model.proceed) })}
			defer relay.CloseIdleConnections()
			other := open(t, inCluster(kept, func(set *setting) {
				set.model = strict
				set.opts = func(o *server.Options) { o.Cluster.Client = &http.Client{Transport: relay} }
			}))
			const ask = `{"type":"message","role":"user","content":"write 5"}`
			resp, body := owner.do("POST", "/v1/responses", `{"model":"sim/demo"`+showItems+`,"input":[`+ask+`]}`)
			id := approvalIn(t, parse[struct{ Output []json.RawMessage }](t, body).Output)
			owner.answerOnly("approve")
			<-model.said
			owner.advertise(t, kept, resp.Header.Get("X-Lathe-Run-Id"))
			a := wireClients["responses"].send(t.Context(), other.fixture, true,
				fmt.Sprintf(`{"model":"sim/demo","stream":true,"input":[%s,{"type":"mcp_approval_response","approval_request_id":%q,"approve":true}]}`, ask, id))
			var kinds []string
			for _, p := range a.message.Parts {
				switch p := p.(type) {
				case lathe.Reasoning:
					kinds = append(kinds, fmt.Sprint("reasoning ", p.Text != "" && p.Data != ""))
				case lathe.Text:
					kinds = append(kinds, "text")
				default: // the call of this server
				}
			}
			if a.err != nil || !slices.Equal(kinds, []string{"reasoning true", "text"}) {
				t.Errorf("%v, %q: %s", a.err, kinds, a.body)
			}
		})
	}
}

package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/sqlite"
)

// A reply is what a client of chat completions sees.
type reply struct {
	text   string
	finish string
	runID  string
	reason string
	error  string
	quiet  int // comments
}

// complete asks for a completion of the messages, streamed or not.
func (h *runFixture) complete(stream bool, messages string, header ...string) reply {
	h.t.Helper()
	return h.completeWith("", stream, messages, header...)
}

// completeWith sends further members, each behind a comma.
func (h *runFixture) completeWith(members string, stream bool, messages string, header ...string) reply {
	h.t.Helper()
	body := `{"model":"sim/any","messages":[` + messages + `],"stream":` + map[bool]string{true: "true", false: "false"}[stream] + members + `}`
	resp, text := h.do("POST", "/v1/chat/completions", body, header...)
	if resp.StatusCode != http.StatusOK {
		h.t.Fatalf("%d %s", resp.StatusCode, text)
	}
	type chunk struct {
		Choices []struct {
			Delta, Message struct{ Content string }
			Finish         string `json:"finish_reason"`
		}
		Lathe struct {
			RunID  string `json:"run_id"`
			Reason string
		}
		Error json.RawMessage
	}
	var out reply
	take := func(line string) {
		c := parse[chunk](h.t, line)
		for _, choice := range c.Choices {
			out.text += choice.Delta.Content + choice.Message.Content
			out.finish += choice.Finish
		}
		out.runID, out.reason, out.error = out.runID+c.Lathe.RunID, out.reason+c.Lathe.Reason, out.error+string(c.Error)
	}
	if !stream {
		take(text)
		return out
	}
	for line := range strings.Lines(text) {
		switch data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); {
		case strings.HasPrefix(line, ":"):
			out.quiet++
		case ok && data != "[DONE]":
			take(data)
		}
	}
	return out
}

// comments returns a channel that has a value once a stream that the client reads has had another comment.
func (h *runFixture) comments() <-chan struct{} {
	had := make(chan struct{}, 1)
	h.client.Transport = &commentedTransport{h.client.Transport, had}
	return had
}

type commentedTransport struct {
	http.RoundTripper
	had chan<- struct{}
}

func (c *commentedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = &commented{resp.Body, c.had}
	}
	return resp, err
}

type commented struct {
	io.ReadCloser
	had chan<- struct{}
}

func (c *commented) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	if bytes.HasPrefix(b[:n], []byte(":")) || bytes.Contains(b[:n], []byte("\n:")) {
		select {
		case c.had <- struct{}{}:
		default:
		}
	}
	return n, err
}

func said(role, text string) string {
	raw, _ := json.Marshal(text) // a text
	return `{"role":"` + role + `","content":` + string(raw) + `}`
}

// answerOnly approves or denies the only call that waits, of a run that no process executes.
func (h *runFixture) answerOnly(verb string) {
	h.t.Helper()
	if status, body := h.decideOnly(verb); status != http.StatusOK {
		h.t.Fatalf("%d %s", status, body)
	}
}

// decideOnly approves or denies the only call that waits. The status is 202 if the run is still executed, and reads the
// decision when it is suspended.
func (h *runFixture) decideOnly(verb string) (status int, body string) {
	h.t.Helper()
	waits := h.waits("")
	if len(waits) != 1 {
		h.t.Fatalf("%d calls wait", len(waits))
	}
	resp, body := h.do("POST", "/api/runs/"+waits[0].RunID+"/approvals/"+waits[0].ID, `{"decision":"`+verb+`","digest":"`+waits[0].Digest+`"}`)
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusAccepted {
		h.t.Fatalf("%d %s", resp.StatusCode, body)
	}
	return resp.StatusCode, body
}

var bothWays = map[string]bool{"whole": false, "streamed": true}

// A completion whose run waits says so, is not taken for an empty answer, and what is executed after the approval is
// in the conversation of the next turn.
func TestCompletionThatWaitsSaysSo(t *testing.T) {
	t.Parallel()
	for name, stream := range bothWays {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, nil)
			ask := said("user", "write {\"n\":1}")
			got := h.complete(stream, ask)
			if got.finish != "stop" || got.reason != "awaiting_approval" || !strings.HasPrefix(got.text, "Turn 1. \n\n") ||
				!strings.Contains(got.text, "write has not been called") || strings.Count(got.text, got.runID) != 2 ||
				!strings.Contains(got.text, "`lathe runs approve "+got.runID+" --server http://127.0.0.1:") {
				t.Fatalf("%+v", got)
			}
			// An equal request is answered by the same run, streamed or not: no second approval is requested.
			for _, other := range bothWays {
				if again := h.complete(other, ask); again.text != got.text || again.runID != got.runID || again.reason != got.reason {
					t.Errorf("asked again: %+v", again)
				}
			}
			turn := ask + "," + said("assistant", got.text)
			// While the call waits for approval, its result for the model says so.
			next := h.complete(stream, turn+","+said("user", "did you?"))
			if next.reason != "answered" || !strings.Contains(next.text, "awaiting_approval") || strings.Contains(next.text, "has not been called") || h.log.wrote.Load() != 0 {
				t.Errorf("while it waits: %+v", next)
			}
			h.answerOnly("approve")
			h.rest(got.runID)
			after := h.complete(stream, turn+","+said("user", "did you?"))
			if after.reason != "answered" || after.text != `The tools said: {"n":1}` || h.log.wrote.Load() != 1 {
				t.Errorf("after the approval: %+v, wrote %d", after, h.log.wrote.Load())
			}
			roles := ""
			for _, m := range h.export(after.runID)[:1] {
				for _, msg := range parse[struct {
					Content struct{ Messages []struct{ Role string } }
				}](t, m).Content.Messages {
					roles += msg.Role + " "
				}
			}
			if roles != "user assistant tool assistant user " {
				t.Errorf("the model sees %s", roles)
			}
			// The answer that no client has got is given once; then the same request is a new one.
			if got := h.complete(stream, ask); got.reason != "answered" || !strings.Contains(got.text, `The tools said: {"n":1}`) || h.log.wrote.Load() != 1 {
				t.Errorf("the same request after the approval: %+v", got)
			}
			if got := h.complete(stream, ask); got.reason != "awaiting_approval" {
				t.Errorf("on purpose: %+v", got)
			}
		})
	}
}

// The sentence is taken out of what the model sees where its run is unknown, of another key or of another
// session: nothing of that run is joined.
func TestT25_WaitingSentenceOfAnotherSessionJoinsNothing(t *testing.T) {
	t.Parallel()
	h := open(t, func(s *setting) {
		s.opts = func(o *server.Options) { o.Setup.Keys = []server.Key{key("ann"), key("bob")} }
	})
	ask := said("user", "write {\"n\":1}")
	got := h.complete(false, ask)
	h.answerOnly("approve")
	h.rest(got.runID)
	bob := []string{"Authorization", "Bearer " + text("bob")}
	for name, tt := range map[string]struct {
		members, messages string
		header            []string
	}{
		"another key":     {"", ask + "," + said("assistant", got.text), bob},
		"another session": {`,"lathe":{"session":"s2"}`, said("user", "write {\"n\":2}") + "," + said("assistant", got.text), nil},
		"no such run":     {"", ask + "," + said("assistant", strings.ReplaceAll(got.text, got.runID, "run_01")), nil},
	} {
		next := h.completeWith(tt.members, false, tt.messages+","+said("user", "look {\"n\":5}"), tt.header...)
		log := ""
		if len(tt.header) == 0 {
			log = h.export(next.runID)[0]
		}
		if strings.Contains(next.text, `{"n":1}`) || strings.Contains(log, "has not been called") || strings.Contains(log, `"tool"`) {
			t.Errorf("%s: %+v\n%s", name, next, log)
		}
	}
}

// The sentence is enough to find its run, whatever the client has changed before it: agents put the date or a listing of files into the
// first message.
func TestWaitingSentenceBehindChangedMessages(t *testing.T) {
	t.Parallel()
	for name, verb := range map[string]string{"before the decision": "", "approved": "approve", "denied": "deny"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, nil)
			got := h.complete(false, said("user", "Today is Monday.")+","+said("user", "write {\"n\":1}"))
			if verb != "" {
				h.answerOnly(verb)
				h.rest(got.runID)
			}
			next := h.complete(false, said("user", "Today is Tuesday.")+","+said("user", "write {\"n\":1}")+","+said("assistant", got.text)+","+said("user", "look {\"n\":5}"))
			log := h.export(next.runID)[0]
			if !strings.Contains(log, `"name":"write"`) || strings.Contains(log, "has not been called") || strings.Contains(log, "Today is Monday") {
				t.Errorf("%+v\n%s", next, log)
			}
		})
	}
}

// With a hold the answer is held open until the decision, and the run goes on in the same answer.
func TestHoldGoesOnInTheSameAnswer(t *testing.T) {
	t.Parallel()
	for name, stream := range bothWays {
		for _, verb := range []string{"approve", "deny"} {
			t.Run(name+" "+verb, func(t *testing.T) {
				t.Parallel()
				h := open(t, func(s *setting) {
					s.opts = func(o *server.Options) {
						o.Setup.Hold, o.Limits.KeepAlive = time.Hour, 10*time.Millisecond
					}
				})
				comments := h.comments()
				done := make(chan reply)
				go func() { done <- h.complete(stream, said("user", "write {\"n\":1}\n\nwrite {\"n\":2}")) }()
				for range 2 { // each turn asks
					for len(h.waits("")) == 0 {
						time.Sleep(time.Millisecond)
					}
					if stream {
						<-comments
					}
					h.decideOnly(verb)
				}
				got := <-done
				wrote := map[string]int64{"approve": 2}[verb]
				if got.reason != "answered" || got.error != "" || strings.Contains(got.text, "has not been called") || h.log.wrote.Load() != wrote ||
					!strings.HasPrefix(got.text, "Turn 1. \n\nTurn 2. \n\nThe tools said: ") {
					t.Errorf("%+v, wrote %d", got, h.log.wrote.Load())
				}
				if stream && got.quiet == 0 {
					t.Error("nothing kept the stream alive")
				}
			})
		}
	}
}

// A hold that ends without a decision ends with the sentence, and the run waits on.
func TestHoldEnds(t *testing.T) {
	t.Parallel()
	for name, stream := range bothWays {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, func(s *setting) {
				s.opts = func(o *server.Options) { o.Setup.Hold = 20 * time.Millisecond }
			})
			got := h.complete(stream, said("user", "write {\"n\":1}"))
			if got.reason != "awaiting_approval" || !strings.Contains(got.text, "has not been called") || len(h.waits("")) != 1 {
				t.Errorf("%+v", got)
			}
			h.answerOnly("approve")
			if done := h.rest(got.runID); done.Status != "completed" || h.log.wrote.Load() != 1 {
				t.Errorf("%+v", done)
			}
		})
	}
}

// A client that leaves while its answer is held leaves the run as it waits.
func TestHoldOutlivesItsClient(t *testing.T) {
	t.Parallel()
	h := open(t, func(s *setting) {
		s.opts = func(o *server.Options) { o.Setup.Hold, o.Limits.KeepAlive = time.Hour, 5*time.Millisecond }
	})
	leave, _ := h.begins(said("user", "write {\"n\":1}"))
	for len(h.waits("")) == 0 {
		time.Sleep(time.Millisecond)
	}
	leave()
	id := h.waits("")[0].RunID
	h.decideOnly("approve")
	h.watchUntil(id, 0, func(e *told) bool { return e.Type == "RunFinished" })
	if done := h.rest(id); done.Status != "completed" || h.log.wrote.Load() != 1 {
		t.Errorf("%+v", done)
	}
}

// begins asks for a streamed completion, and returns when its head is there.
func (h *runFixture) begins(messages string) (leave func(), resp *http.Response) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.url+"/v1/chat/completions", strings.NewReader(`{"model":"sim/any","stream":true,"messages":[`+messages+`]}`))
	if err != nil {
		h.t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	if resp, err = client.Do(req); err != nil {
		h.t.Fatal(err)
	}
	return func() {
		_ = resp.Body.Close()
		client.CloseIdleConnections()
	}, resp
}

// An equal request is answered by the run that waits also after a restart.
func TestEqualRequestAfterARestart(t *testing.T) {
	t.Parallel()
	kept := store.NewMemory(nil)
	build := func() *runFixture { return open(t, func(s *setting) { s.store = kept }) }
	first := build()
	ask := said("user", "write {\"n\":1}")
	got := first.complete(false, ask)
	second := build()
	defer second.tend()()
	if again := second.complete(true, ask); again.runID != got.runID || again.text == "" || again.reason != "awaiting_approval" {
		t.Errorf("%+v, want the run %s", again, got.runID)
	}
	second.decideOnly("approve") // 202 while a process claims the run to look at it
	second.watchUntil(got.runID, 0, func(e *told) bool { return e.Type == "RunFinished" })
	second.rest(got.runID)
	if done := second.complete(true, ask); done.runID != got.runID || done.reason != "answered" || second.log.wrote.Load() != 1 {
		t.Errorf("%+v", done)
	}
}

// tend has the gateway look after the runs of its store until stop is called, and returns once it has begun to.
func (h *runFixture) tend() (stop func()) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	var tending sync.WaitGroup
	tending.Go(func() { h.gateway.Maintain(ctx) })
	for h.pending() == "0" {
		time.Sleep(time.Millisecond)
	}
	return func() {
		cancel()
		tending.Wait()
	}
}

// pending returns the gauge of open approvals.
func (h *runFixture) pending() string {
	h.t.Helper()
	_, body := h.do("GET", "/metrics", "")
	return h.openApprovals(body)
}

// gauge is pending without a request to the server.
func (h *runFixture) gauge() string {
	h.t.Helper()
	rec := httptest.NewRecorder()
	h.metrics.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(h.t.Context(), http.MethodGet, "/metrics", http.NoBody))
	return h.openApprovals(rec.Body.String())
}

func (h *runFixture) openApprovals(metrics string) string {
	h.t.Helper()
	for line := range strings.Lines(metrics) {
		if n, ok := strings.CutPrefix(line, "lathe_approvals_pending "); ok {
			return strings.TrimSpace(n)
		}
	}
	h.t.Fatal("there is no gauge of open approvals")
	return ""
}

// The gauge counts what waits in the store: after a restart, and where another process has asked or was answered.
func TestApprovalsPendingIsThatOfTheStore(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]func() store.RunIndex{
		"alone":  func() store.RunIndex { return alone{store.NewMemory(nil)} },
		"shared": func() store.RunIndex { return store.NewMemory(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept := kept()
			build := func() *runFixture {
				return open(t, func(s *setting) {
					s.store = kept
					s.opts = func(o *server.Options) { o.Limits.Expiry = 5 * time.Millisecond }
				})
			}
			first := build()
			one := first.rest(first.begin("write {\"n\":1}\nwrite {\"n\":2}").ID)
			first.rest(first.begin("write {\"n\":3}").ID)
			second := build()
			defer second.tend()()
			if got := second.pending(); got != "3" {
				t.Errorf("after a restart: %s", got)
			}
			if resp, body := first.do("POST", "/api/runs/"+one.ID+"/cancel", ""); resp.StatusCode != 200 {
				t.Fatalf("%d %s", resp.StatusCode, body)
			}
			for second.pending() != "1" { // the other process has ended it; a timeout of the test says that this never comes
				time.Sleep(time.Millisecond)
			}
		})
	}
}

// A server that starts on a store counts the calls that wait before it gets a request, and without waiting for the next
// look at the store.
func TestApprovalsPendingAfterARestart(t *testing.T) {
	t.Parallel()
	inMemory := store.NewMemory(nil)
	path := filepath.Join(t.TempDir(), "runs.db")
	for name, start := range map[string]func(t *testing.T) store.RunIndex{
		"shared": func(*testing.T) store.RunIndex { return inMemory },
		"SQLite": func(t *testing.T) store.RunIndex {
			t.Helper()
			kept, err := sqlite.Open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := kept.Close(); err != nil {
					t.Error(err)
				}
			})
			return kept
		},
	} {
		build := func(t *testing.T) *runFixture {
			t.Helper()
			return open(t, func(s *setting) {
				s.store = start(t)
				s.opts = func(o *server.Options) { o.Limits.Expiry = 24 * time.Hour } // one look at the store, when it starts
			})
		}
		t.Run(name, func(t *testing.T) {
			t.Run("before", func(t *testing.T) {
				h := build(t)
				h.rest(h.begin("write {\"n\":1}\nwrite {\"n\":2}").ID)
				h.rest(h.begin("write {\"n\":3}").ID)
			})
			t.Run("after", func(t *testing.T) {
				h := build(t)
				if got := h.gauge(); got != "0" {
					t.Fatalf("before the server looks at its store: %s", got)
				}
				ctx, stop := context.WithCancel(t.Context())
				var tending sync.WaitGroup
				tending.Go(func() { h.gateway.Maintain(ctx) })
				defer tending.Wait()
				defer stop()
				deadline := time.Now().Add(time.Minute)
				for h.gauge() != "3" {
					if time.Now().After(deadline) {
						t.Fatalf("the gauge is %s, want 3", h.gauge())
					}
					time.Sleep(time.Millisecond)
				}
			})
		})
	}
}

package server_test

import (
	"context"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/store"
)

// A countedLogs is a store that counts how often the log of each run is read from its beginning.
type countedLogs struct {
	*store.Memory
	mu    sync.Mutex
	reads map[string]int
}

func newCountedLogs() *countedLogs {
	return &countedLogs{Memory: store.NewMemory(nil), reads: map[string]int{}}
}

func (s *countedLogs) Read(ctx context.Context, runID string, after int64) iter.Seq2[event.Event, error] {
	if after == 0 {
		s.mu.Lock()
		s.reads[runID]++
		s.mu.Unlock()
	}
	return s.Memory.Read(ctx, runID, after)
}

// during returns how often the log of a run was read during a function.
func (s *countedLogs) during(runID string, do func()) int {
	count := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.reads[runID]
	}
	before := count()
	do()
	return count() - before
}

// decide approves the call s1 of a run.
func (f *fixture) decide(run string) {
	f.t.Helper()
	_, got := f.do("GET", "/api/runs/"+run, "")
	r := parse[struct {
		Open []struct {
			ID     string `json:"tool_call_id"`
			Digest string `json:"args_digest"`
		} `json:"open_calls"`
	}](f.t, got)
	for _, call := range r.Open {
		if call.ID != "s1" {
			continue
		}
		if resp, got := f.do("POST", "/api/runs/"+run+"/approvals/s1", `{"decision":"approve","digest":"`+call.Digest+`"}`); resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusAccepted {
			f.t.Fatalf("status %d: %s", resp.StatusCode, got)
		}
		return
	}
	f.t.Fatalf("there is no call s1: %s", got)
}

// A conversation has several turns of one run, since the run waited for an approval and went on. A process that does not know them reads
// the log of the run once in a request.
func TestALogIsReadOnceForAllTurnsOfItsRun(t *testing.T) {
	t.Parallel()
	onWires(t, func(t *testing.T, c *wireClient, stream bool) {
		logs := newCountedLogs()
		process := func() (*fixture, *fake) {
			model := &fake{turn: func(_ int, req *lathe.Request) lathe.Message {
				switch strings.Count(transcript(req.Messages), "tool =") {
				case 0:
					return says(calls("s1", "calculator", `{"expression":"6 * 7"}`), calls("c1", "weather", `{"city":"Oslo"}`))
				case 2:
					return says(calls("c2", "weather", `{"city":"Rome"}`))
				}
				return says(lathe.Text{Text: "It is done."})
			}}
			return serve(t, &setting{model: model, store: logs, approvals: approval.NewQueue(nil), policy: policy.Effects{ReadOnly: lathe.Ask}}), model
		}
		f, _ := process()
		tools, history := []*lathe.ToolSpec{weatherSpec()}, []lathe.Message{lathe.User("hi")}
		run := ""
		for turn := range 2 {
			a := c.ask(f, stream, tools, history...)
			if a.err != nil || len(a.message.Calls()) != 1 {
				t.Fatalf("%v: %s", a.err, a.body)
			}
			if run == "" {
				run = a.header.Get("X-Lathe-Run-Id")
				f.decide(run)
			} else if other := a.header.Get("X-Lathe-Run-Id"); other != run {
				t.Fatalf("turn %d is of the run %s, and the first one of %s", turn, other, run)
			}
			history = append(history, c.back(a.message), c.gives(a.message.Calls()[0].ID))
		}
		f.stop()
		g, model := process()
		history = append(history, lathe.User("And?")) // else the request resumes the run, which reads its log
		reads := logs.during(run, func() {
			if a := c.ask(g, stream, tools, history...); a.err != nil || a.message.Text() != "It is done." {
				t.Errorf("%v: %s", a.err, a.body)
			}
		})
		if got := transcript(model.all()[0].Messages); reads != 1 || !strings.Contains(got, "calculator:s1 weather:c1\ntool =s1\ntool =c1\nassistant weather:c2\ntool =c2") {
			t.Errorf("the log was read %d times, and the model was sent\n%s", reads, got)
		}
	})
}

// A conversation has the sentence of a waiting run twice, since the client asked in between.
func TestALogIsReadOnceForAllSentencesOfItsRun(t *testing.T) {
	t.Parallel()
	logs := newCountedLogs()
	h := open(t, func(s *setting) { s.store = logs })
	got := h.complete(false, said("user", `write {"n":1}`))
	history := said("user", `write {"n":1}`) + "," + said("assistant", got.text) + "," + said("user", "And now?") + "," + said("assistant", got.text)
	reads := logs.during(got.runID, func() {
		if next := h.complete(false, history+","+said("user", "What is 1 + 1?")); next.reason != "answered" {
			t.Errorf("%+v", next)
		}
	})
	if reads != 1 {
		t.Errorf("the log was read %d times", reads)
	}
}

// Carriers that are too large name their run: its log is read once for all of them. The request names another model, so that the turns are
// found by the carriers alone.
func TestALogIsReadOnceForAllCarriersOfItsRun(t *testing.T) {
	t.Parallel()
	logs := newCountedLogs()
	long := strings.Repeat("x", 50<<10)
	f := serve(t, &setting{store: logs, model: &fake{turn: func(_ int, req *lathe.Request) lathe.Message {
		switch n := strings.Count(transcript(req.Messages), "tool ="); {
		case n < 2:
			return says(lathe.Text{Text: "Turn " + strconv.Itoa(n) + " " + long}, calls("s"+strconv.Itoa(n), "calculator", `{"expression":"1 + `+strconv.Itoa(n)+`"}`))
		default:
			return says(lathe.Text{Text: "It is done."})
		}
	}}})
	c := wireClients["messages"]
	a := c.ask(f, true, nil, lathe.User("hi"))
	if carriers := strings.Count(a.body, `lathe1.`); a.err != nil || carriers != 2 {
		t.Fatalf("%d carriers, %v", carriers, a.err)
	}
	next := strings.Replace(c.body(false, nil, lathe.User("hi"), c.back(a.message), lathe.User("And?")), "sim/demo", "sim/other", 1)
	reads := logs.during(a.header.Get("X-Lathe-Run-Id"), func() {
		if b := c.send(t.Context(), f, false, next); b.err != nil || b.header.Get("X-Lathe-Lost-Joins") != "" {
			t.Errorf("lost %q, %v", b.header.Get("X-Lathe-Lost-Joins"), b.err)
		}
	})
	if reads != 1 {
		t.Errorf("the log was read %d times", reads)
	}
}

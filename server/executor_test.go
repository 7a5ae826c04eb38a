package server_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/store/sqlite"
)

// A stepper is an executor: each run is a goroutine that executes one step after the other, and waits until the run is woken.
type stepper struct {
	t      testing.TB
	engine *engine.Engine
	loops  func(target string) (*loop.Loop, func(), error)
	leave  context.CancelCauseFunc
	left   context.Context

	mu   sync.Mutex
	runs map[string]*steppedRun
	over sync.WaitGroup
}

type steppedRun struct {
	woken  chan struct{}
	cancel context.CancelCauseFunc // of the step in progress

	why map[server.Wake]bool
}

func newStepper(t testing.TB) *stepper {
	s := &stepper{t: t, runs: map[string]*steppedRun{}}
	s.left, s.leave = context.WithCancelCause(context.Background())
	return s
}

// begin makes the stepper execute the runs of the server until the end of the test.
func (s *stepper) begin(h *runFixture) {
	s.engine, s.loops = h.engine, h.gateway.Loop
	s.t.Cleanup(func() {
		s.leave(lathe.ErrLeft)
		s.over.Wait()
	})
}

func (s *stepper) Name() string { return "stepper" }

func (s *stepper) Start(ctx context.Context, l *loop.Loop, in *loop.Input) (string, error) {
	id, err := s.engine.Accept(ctx, l, in)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs[id] == nil {
		r := &steppedRun{woken: make(chan struct{}, 1), why: map[server.Wake]bool{}}
		s.runs[id] = r
		s.over.Go(func() { s.execute(id, in.Target, r) })
	}
	return id, nil
}

func (s *stepper) Wake(_ context.Context, id, target string, why server.Wake) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[id]
	if r == nil || target == "" {
		return &lathe.Error{Code: lathe.CodeNotFound, Op: "stepper: wake", Err: lathe.ErrNotFound}
	}
	r.why[why] = true
	if why == server.WakeCancel && r.cancel != nil {
		r.cancel(context.Canceled)
	}
	select {
	case r.woken <- struct{}{}:
	default:
	}
	return nil
}

// wokenFor reports whether the run was woken for that reason.
func (s *stepper) wokenFor(id string, why server.Wake) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[id] != nil && s.runs[id].why[why]
}

func (s *stepper) execute(id, target string, r *steppedRun) {
	after := int64(1)
	for {
		ctx, cancel := context.WithCancelCause(s.left)
		s.mu.Lock()
		opts := &engine.StepOptions{After: after, Cancel: r.why[server.WakeCancel], Resume: r.why[server.WakeResume]}
		r.cancel = cancel
		s.mu.Unlock()
		l, release, err := s.loops(target)
		if err != nil {
			s.t.Error(err)
			return
		}
		step, err := s.engine.Step(ctx, l, id, opts)
		release()
		cancel(nil)
		switch {
		case s.left.Err() != nil, lathe.CodeOf(err) == lathe.CodeNotFound:
			return
		case err != nil && !errors.Is(err, context.Canceled):
			s.t.Errorf("a step: %v", err)
			return
		case err != nil:
			continue
		}
		after = step.LastID
		switch step.Status {
		case "":
		case "parked":
			select {
			case <-r.woken:
			case <-s.left.Done():
				return
			}
		default:
			return
		}
	}
}

// openStepped opens a server whose detached runs a stepper executes, on each kind of store.
func openStepped(t *testing.T, change func(*setting), check func(*testing.T, *runFixture, *stepper)) {
	t.Helper()
	for name, open := range map[string]func(*testing.T) store.RunIndex{
		"shared": func(*testing.T) store.RunIndex { return store.NewMemory(nil) },
		"sqlite": func(t *testing.T) store.RunIndex {
			kept, err := sqlite.Open(filepath.Join(t.TempDir(), "runs.db"), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = kept.Close() })
			return kept
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept := open(t)
			h := &runFixture{}
			x := newStepper(t)
			set := h.setting(change)
			set.store = kept
			before := set.opts
			set.opts = func(o *server.Options) {
				if before != nil {
					before(o)
				}
				o.Executor = x
			}
			h.fixture = serve(t, set)
			x.begin(h)
			check(t, h, x)
		})
	}
}

// A detached run of an executor is begun, watched, approved, shown, exported and removed as every other, and no supervisor executes it.
func TestExecutorRunsAreServed(t *testing.T) {
	t.Parallel()
	openStepped(t, nil, func(t *testing.T, h *runFixture, x *stepper) {
		r := h.begin("look {\"n\":1}\nwrite {\"n\":2}\n\nlook {\"n\":3}")
		if r = h.rest(r.ID); r.Status != "parked" || len(r.Open) == 0 {
			t.Fatalf("%+v", r)
		}
		if h.crew.Active() != 0 {
			t.Error("the supervisor executes it")
		}
		tail := h.tail(r.ID, 0, "")
		defer tail.close()
		if status, body := h.answer(r, "approve"); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
		var last int64
		deltas := 0
		for e := tail.next(); e != nil; e = tail.next() {
			if e.Num == 0 {
				deltas++
				continue
			}
			if last++; e.Num != last {
				t.Fatalf("event %d where %d is next", e.Num, last)
			}
		}
		if r = h.show(r.ID); r.Status != "completed" || r.Last != last || deltas == 0 || h.log.wrote.Load() != 1 || !strings.Contains(r.Answer, `{"n":3}`) {
			t.Errorf("%d events and %d deltas of %+v", last, deltas, r)
		}
		if lines := h.export(r.ID); int64(len(lines)) != last || !strings.Contains(lines[0], `"executor":"stepper"`) {
			t.Errorf("%d lines, the first is %s", len(lines), lines[0])
		}
		if rows := h.stored(&store.RunFilter{RunID: r.ID}); len(rows) != 1 || rows[0].Executor != "stepper" {
			t.Errorf("%+v", rows)
		}
		h.refused("POST", "/api/runs/"+r.ID+"/cancel", "", http.StatusConflict, "run_ended")
		if resp, body := h.do("DELETE", "/api/runs/"+r.ID, ""); resp.StatusCode != http.StatusNoContent {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
	})
}

// The results of client tools reach a run of an executor, each once.
func TestExecutorRunsTakeResults(t *testing.T) {
	t.Parallel()
	openStepped(t, nil, func(t *testing.T, h *runFixture, _ *stepper) {
		r := h.begin("ask {}", `"client_tools":[{"type":"function","function":{"name":"ask","parameters":{"type":"object"}}}]`)
		if r = h.rest(r.ID); r.Status != "parked" || len(r.Open) != 1 {
			t.Fatalf("%+v", r)
		}
		results := func(text string) string {
			return `{"results":[{"tool_call_id":"` + r.Open[0].ID + `","content":"` + text + `"}]}`
		}
		if resp, body := h.do("POST", "/api/runs/"+r.ID+"/tool_results", results("blue")); resp.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		if r := h.rest(r.ID); r.Status != "completed" || !strings.Contains(r.Answer, "blue") {
			t.Errorf("%+v", r)
		}
		h.refused("POST", "/api/runs/"+r.ID+"/tool_results", results("red"), http.StatusConflict, "run_ended")
	})
}

// A run of an executor is cancelled while it waits, and in the middle of a call.
func TestExecutorRunsAreCancelled(t *testing.T) {
	t.Parallel()
	openStepped(t, nil, func(t *testing.T, h *runFixture, x *stepper) {
		waits := h.begin(`write {"n":1}`)
		waits = h.rest(waits.ID)
		calls := h.begin(`hold {"n":1}`)
		<-h.log.held
		for _, id := range []string{waits.ID, calls.ID} {
			resp, body := h.do("POST", "/api/runs/"+id+"/cancel", "")
			if r := parse[run](t, body); resp.StatusCode != http.StatusOK || r.Status != "cancelled" {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
			if !x.wokenFor(id, server.WakeCancel) {
				t.Error("the executor was not asked")
			}
		}
		if h.log.wrote.Load() != 0 {
			t.Error("a call that was not approved was made")
		}
	})
}

// A run that waits is removed, and its executor is woken so that it ends what it has of the run.
func TestExecutorRunsAreRemoved(t *testing.T) {
	t.Parallel()
	openStepped(t, nil, func(t *testing.T, h *runFixture, x *stepper) {
		r := h.rest(h.begin(`write {"n":1}`).ID)
		if resp, body := h.do("DELETE", "/api/runs/"+r.ID, ""); resp.StatusCode != http.StatusNoContent {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		h.refused("GET", "/api/runs/"+r.ID, "", http.StatusNotFound, "run_not_found")
		if !x.wokenFor(r.ID, server.WakeCancel) {
			t.Error("the executor was not woken")
		}
	})
}

// A run that was parked, `interrupted`, is resumed by a client, and not by input.
func TestExecutorRunsAreResumed(t *testing.T) {
	t.Parallel()
	openStepped(t, nil, func(t *testing.T, h *runFixture, x *stepper) {
		r := h.rest(h.begin(`write {"n":1}`).ID)
		paused := event.Event{ID: r.Last + 1, RunID: r.ID, Turn: 1, Data: &event.RunPaused{Reason: lathe.ReasonInterrupted, Pending: []string{}}}
		if _, err := h.index.Append(t.Context(), r.ID, r.Last, paused); err != nil {
			t.Fatal(err)
		}
		if resp, body := h.do("POST", "/api/runs/"+r.ID+"/resume", ""); resp.StatusCode != http.StatusAccepted {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		if !x.wokenFor(r.ID, server.WakeResume) {
			t.Error("the executor was not asked to resume it")
		}
		h.watchUntil(r.ID, r.Last+1, func(e *told) bool { return e.Type == "RunPaused" })
		if r = h.show(r.ID); r.Reason != string(lathe.ReasonAwaitingApproval) {
			t.Errorf("%+v", r)
		}
	})
}

// A completion with `detach` is a run of the executor, and its client gets the whole answer. One without is executed in this process.
func TestExecutorAnswersCompletions(t *testing.T) {
	t.Parallel()
	openStepped(t, nil, func(t *testing.T, h *runFixture, _ *stepper) {
		for name, stream := range bothWays {
			for detach, executor := range map[string]string{`,"lathe":{"detach":true}`: "stepper", `,"lathe":{"session":"s"}`: ""} {
				resp, body := h.do("POST", "/v1/chat/completions", `{"model":"sim/any","messages":[`+said("user", `look {"n":7}`)+`],"stream":`+map[bool]string{true: "true", false: "false"}[stream]+detach+`}`)
				if resp.StatusCode != http.StatusOK || !strings.Contains(body, "The too") || !strings.Contains(body, "7") {
					t.Errorf("%s %s: %d %s", name, detach, resp.StatusCode, body)
				}
				id := resp.Header.Get("X-Lathe-Run-Id")
				if rows := h.stored(&store.RunFilter{RunID: id}); len(rows) != 1 || rows[0].Executor != executor || rows[0].Status != "completed" {
					t.Errorf("%s %s: %+v", name, detach, rows)
				}
			}
		}
	})
}

// A chat page continues a detached run of the executor after its approval.
func TestExecutorAnswersPages(t *testing.T) {
	t.Parallel()
	var kept []string // one tool call at most
	change := func(s *setting) {
		s.tools, s.policy = []lathe.Tool{uiKeeper(&kept)}, policy.Effects{ReadOnly: lathe.Allow, Writes: lathe.Ask}
		s.model = &uiTurns{say: []lathe.Finish{uiSays("I keep it.", lathe.ToolCall{ID: "c1", Name: "keep", Arguments: `{"text":"x"}`}), uiSays("Done.")}}
	}
	for _, where := range []string{"stepper", ""} {
		t.Run("by "+where, func(t *testing.T) {
			kept = nil
			h := &runFixture{}
			x := newStepper(t)
			set := h.setting(change)
			set.opts = func(o *server.Options) { o.Executor = x }
			h.fixture = serve(t, set)
			x.begin(h)
			detach := ""
			if where != "" {
				detach = `,"lathe":{"detach":true}`
			}
			asked := h.uiPage(strings.TrimSuffix(uiHello, "}")+detach+"}", "")
			if !strings.Contains(asked, `"tool-approval-request"`) || len(kept) > 0 {
				t.Fatalf("kept %v:\n%s", kept, asked)
			}
			rest := h.uiPage(uiApprove(t, asked, true), "")
			if !strings.Contains(rest, `"output":"kept x"`) || !strings.Contains(rest, "Done.") || len(kept) != 1 {
				t.Errorf("kept %v:\n%s", kept, rest)
			}
			if rows := h.stored(nil); len(rows) != 1 || rows[0].Executor != where || rows[0].Status != "completed" {
				t.Errorf("%+v", rows)
			}
		})
	}
}

// A run that is run again with recorded results is executed in this process, since its loop has no name; one with live tools by the executor.
func TestExecutorReplays(t *testing.T) {
	t.Parallel()
	openStepped(t, func(s *setting) {
		s.opts = func(o *server.Options) {
			models := o.Setup.Models
			o.Setup.Replay = func(model string, _ []event.Event) (*loop.Loop, error) {
				m, err := models.Model(model)
				if err != nil {
					return nil, err
				}
				return m.Loop, nil
			}
		}
	}, func(t *testing.T, h *runFixture, _ *stepper) {
		r := h.rest(h.begin(`look {"n":1}`).ID)
		for tools, executor := range map[string]string{"recorded": "", "live": "stepper"} {
			resp, body := h.do("POST", "/api/runs/"+r.ID+"/replay", `{"tools":"`+tools+`"}`)
			if resp.StatusCode != http.StatusAccepted {
				t.Fatalf("%d %s", resp.StatusCode, body)
			}
			again := h.rest(parse[run](t, body).ID)
			if rows := h.stored(&store.RunFilter{RunID: again.ID}); again.Status != "completed" || again.Replays != r.ID || len(rows) != 1 || rows[0].Executor != executor {
				t.Errorf("%s: %+v, %+v", tools, again, rows)
			}
		}
	})
}

// An Idempotency-Key holds for runs of an executor.
func TestExecutorRunsOnce(t *testing.T) {
	t.Parallel()
	openStepped(t, nil, func(t *testing.T, h *runFixture, _ *stepper) {
		body := `{"model":"sim/any","prompt":"look {\"n\":1}"}`
		ids := map[string]bool{}
		for i := range 3 {
			resp, text := h.do("POST", "/api/runs", body, "Idempotency-Key", "k")
			if resp.StatusCode != http.StatusCreated || (resp.Header.Get("Idempotency-Replayed") != "") != (i > 0) {
				t.Errorf("%d %v %s", resp.StatusCode, resp.Header, text)
			}
			ids[parse[run](t, text).ID] = true
		}
		if len(ids) != 1 || len(h.stored(nil)) != 1 {
			t.Errorf("%d runs", len(h.stored(nil)))
		}
	})
}

// A server without the executor of a run shows the run, and refuses what would change it: nothing is stored, and nothing is resumed.
func TestExecutorOfAnotherServer(t *testing.T) {
	t.Parallel()
	kept := store.NewMemory(nil)
	h := &runFixture{}
	x := newStepper(t)
	set := h.setting(nil)
	set.store, set.opts = kept, func(o *server.Options) { o.Executor = x }
	h.fixture = serve(t, set)
	x.begin(h)
	r := h.rest(h.begin(`write {"n":1}`).ID)

	other := open(t, func(s *setting) { s.store, s.approvals = kept, approval.NewQueue(nil) })
	stop := other.tend()
	defer stop()
	if got := other.show(r.ID); got.Status != "parked" || len(got.Open) != 1 {
		t.Fatalf("%+v", got)
	}
	if n, err := other.gateway.Recover(t.Context()); n != 0 || err != nil {
		t.Errorf("%d runs are resumed, %v", n, err)
	}
	approve := "/api/runs/" + r.ID + "/approvals/" + r.Open[0].ID
	other.refused("POST", approve, `{"decision":"approve","digest":"`+r.Open[0].Digest+`"}`, http.StatusConflict, "run_elsewhere")
	other.refused("POST", "/api/runs/"+r.ID+"/cancel", "", http.StatusConflict, "run_elsewhere")
	other.refused("POST", "/api/runs/"+r.ID+"/resume", "", http.StatusConflict, "run_elsewhere")
	if signals, err := kept.Signals(t.Context(), r.ID); err != nil || len(signals) != 0 {
		t.Errorf("%d signals are stored, %v", len(signals), err)
	}
	if status, body := h.answer(r, "approve"); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	if r = h.rest(r.ID); r.Status != "completed" {
		t.Errorf("%+v", r)
	}
}

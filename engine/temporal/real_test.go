package temporal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/internal/testkit/enginetest"
	"github.com/lathe-run/lathe/internal/testkit/pgtest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// serverEnv names the Temporal server that `make temporal` builds.
const serverEnv = "LATHE_TEMPORAL_SERVER"

// The same workflow on a real server, with a PostgreSQL server as its store and workers that are processes of their own.
func TestRealServer(t *testing.T) {
	binary := os.Getenv(serverEnv)
	if binary == "" {
		t.Skip("no Temporal server: run `make temporal`, which builds one")
	}
	address := startServer(t, binary)
	t.Run("restart", func(t *testing.T) { testRestart(t, address) })
	t.Run("ends", func(t *testing.T) { testEnds(t, address) })
	t.Run("continues", func(t *testing.T) { testContinues(t, binary) })
	t.Run("upgrade", func(t *testing.T) { testUpgrade(t, address) })
	t.Run("kills", func(t *testing.T) { testKills(t, binary) })
	t.Run("record", func(t *testing.T) { testRecord(t, address, binary) })
}

// A trial is the test's part of a site.
type trial struct {
	*peer
	t      *testing.T
	ctx    context.Context
	offset int64 // of the journal
	mu     sync.Mutex
	seen   []entry
	tails  map[string]*enginetest.Tail
}

// newTrial makes a site on the server. change may alter it.
func newTrial(t *testing.T, address string, change func(*site)) *trial {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	t.Cleanup(cancel)
	s := &site{Server: address, Database: pgtest.URL(t), Queue: "agents-" + strings.ReplaceAll(t.Name(), "/", "-"), Journal: filepath.Join(t.TempDir(), "journal"), Name: "test", TTL: time.Hour, Limit: 10 * time.Minute}
	if change != nil {
		change(s)
	}
	p, err := s.connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return &trial{peer: p, t: t, ctx: ctx, tails: map[string]*enginetest.Tail{}}
}

// until polls what is outside of this process, until fn returns true.
func (x *trial) until(what string, fn func() bool) {
	x.t.Helper()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		if fn() {
			tick.Stop()
			return
		}
		select {
		case <-tick.C:
		case <-x.ctx.Done():
			x.t.Fatalf("%s: it does not happen", what)
		}
	}
}

// entries returns the journal.
func (x *trial) entries() []entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	f, err := os.Open(x.Journal)
	if err != nil {
		x.t.Error(err)
		return x.seen
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, x.offset, 1<<30))
	if err != nil {
		x.t.Error(err)
	}
	for {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			return x.seen
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			x.t.Errorf("the journal has the line %q: %v", line, err)
		}
		x.seen, x.offset, text = append(x.seen, e), x.offset+int64(len(line))+1, rest
	}
}

// count returns how many entries of a kind a run has in the journal; "" stands for all runs.
func (x *trial) count(kind, run string) (n int) {
	for _, e := range x.entries() {
		if e.Kind == kind && (run == "" || e.Run == run) {
			n++
		}
	}
	return n
}

// last returns the process that made the last call.
func (x *trial) last() string {
	for _, e := range slices.Backward(x.entries()) {
		if e.Kind == "deed" {
			return e.Deed.Process
		}
	}
	return ""
}

// start starts a run of a scenario.
func (x *trial) start(scenario, id string) {
	x.t.Helper()
	in := &loop.Input{Run: lathe.RunInfo{RunID: id, SessionID: "s"}, Messages: []lathe.Message{lathe.User(scenario + " " + id)},
		ClientTools: []*lathe.ToolSpec{{Name: "mine", Description: "The client's.", Owner: lathe.OwnerClient, Schema: json.RawMessage(`{"type":"object"}`)}}}
	if _, err := x.flow.Start(x.ctx, x.client, x.Queue, in); err != nil {
		x.t.Errorf("%s: %v", id, err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tails[id] = &enginetest.Tail{RunID: id}
}

// status is the answer of the query; ok is false if no worker answered it in time.
func (x *trial) status(id string) (s Status, ok bool) {
	ctx, cancel := context.WithTimeout(x.ctx, 10*time.Second)
	defer cancel()
	v, err := x.client.QueryWorkflow(ctx, id, "", QueryStatus)
	return s, err == nil && v.Get(&s) == nil
}

// parked waits until the workflow of a run waits, and returns its status.
func (x *trial) parked(id string) (s Status) {
	x.t.Helper()
	x.until(id+" waits", func() (ok bool) {
		s, ok = x.status(id)
		return ok && s.Status == "parked"
	})
	return s
}

// update sends an update and waits for its outcome. The same id is the same update.
func (x *trial) update(id, name, key string, args ...any) error {
	ctx, cancel := context.WithTimeout(x.ctx, 30*time.Second)
	defer cancel()
	h, err := x.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: id, UpdateName: name, UpdateID: name + "-" + key, Args: args, WaitForStage: client.WorkflowUpdateStageCompleted})
	if err != nil {
		return err
	}
	return h.Get(ctx, nil)
}

// must fails the test if an update has failed.
func (x *trial) must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

// finished waits for the end of a workflow, and returns its result.
func (x *trial) finished(id string) *Result {
	x.t.Helper()
	var out Result
	if err := x.client.GetWorkflow(x.ctx, id, "").Get(x.ctx, &out); err != nil {
		x.t.Fatalf("%s: %v", id, err)
	}
	return &out
}

// watch adds the events that follow to the tail of a run.
func (x *trial) watch(id string) {
	x.mu.Lock()
	tail := x.tails[id]
	x.mu.Unlock()
	var last int64
	if n := len(tail.IDs); n > 0 {
		last = tail.IDs[n-1]
	}
	for e, err := range x.store.Read(x.ctx, id, last) {
		if err != nil {
			return
		}
		line, err := e.MarshalJSON()
		if err != nil {
			x.t.Error(err)
		}
		tail.IDs, tail.Lines = append(tail.IDs, e.ID), append(tail.Lines, string(line))
	}
}

// judge checks all runs of the trial, and returns what they were.
func (x *trial) judge(kills int) *enginetest.Table {
	x.t.Helper()
	h := &enginetest.History{Tools: siteTools, Kills: kills}
	published := map[string]map[int64]int{}
	asked := map[string]int{}
	for _, e := range x.entries() {
		switch e.Kind {
		case "deed":
			h.Deeds = append(h.Deeds, *e.Deed)
		case "model":
			asked[e.Run]++
		case "event":
			if published[e.Run] == nil {
				published[e.Run] = map[int64]int{}
			}
			if published[e.Run][e.ID]++; published[e.Run][e.ID] > 1 {
				x.t.Errorf("%s: event %d was published twice", e.Run, e.ID)
			}
		}
	}
	for id, tail := range x.tails {
		x.watch(id)
		tail.Whole = true
		l := enginetest.RunLog{ID: id, Acked: true, Asked: asked[id]}
		for e, err := range x.store.Read(x.ctx, id, 0) {
			if err != nil {
				x.t.Fatal(err)
			}
			l.Events = append(l.Events, e)
		}
		rows, _, err := x.store.Runs(x.ctx, &store.RunFilter{RunID: id})
		if err != nil || len(rows) != 1 {
			x.t.Fatalf("%s: %d rows, %v", id, len(rows), err)
		}
		l.Row = &rows[0]
		h.Runs, h.Tails = append(h.Runs, l), append(h.Tails, *tail)
		if s, err := loop.Fold(l.Events); err != nil || s.Finished == nil {
			x.t.Errorf("%s has not ended: %v", id, err)
		}
	}
	bad := h.Check()
	for _, v := range bad {
		x.t.Error(v)
	}
	table := &enginetest.Table{}
	table.Add(h, bad)
	return table
}

// history returns the history of a workflow; run is "" for its last one.
func (x *trial) history(id, run string) *historypb.History {
	x.t.Helper()
	h := &historypb.History{}
	for events := x.client.GetWorkflowHistory(x.ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		if err != nil {
			x.t.Fatal(err)
		}
		h.Events = append(h.Events, e)
	}
	return h
}

func approve(s *Status) ApprovalAnswer {
	return ApprovalAnswer{CallID: s.Waiting[0].CallID, Digest: s.Waiting[0].Digest, Answer: approval.Answer{Verb: approval.Approve, By: "ann"}}
}

// A run with two tools waits for an approval while its only worker is stopped and another one is started.
func testRestart(t *testing.T, address string) {
	x := newTrial(t, address, nil)
	first := x.serve(t, "first", nil)
	x.start("two", "run_1")
	s := x.parked("run_1")
	first.stop(t)
	x.serve(t, "second", nil)
	x.must(x.update("run_1", UpdateApproval, "1", approve(&s)))
	if out := x.finished("run_1"); out.Reason != lathe.ReasonAnswered {
		t.Errorf("%+v", out)
	}
	table := x.judge(1)
	var by []string
	for _, e := range x.entries() {
		if e.Kind == "deed" {
			by = append(by, e.Deed.Tool+" "+e.Deed.Process)
		}
	}
	if got := strings.Join(by, ", "); got != "look first, ask_pay second" || table.Resumed > 1 {
		t.Errorf("%s; resumed %d times", got, table.Resumed)
	}
}

// How runs end: by a cancel request that is repeated, by the cancellation of the workflow, by their time limit, and after a request for
// approval has expired.
func testEnds(t *testing.T, address string) {
	x := newTrial(t, address, func(s *site) { s.TTL, s.Limit = 4*time.Second, 3*time.Second })
	x.serve(t, "worker", nil)
	x.start("asks", "run_expires")
	x.start("waits", "run_limit")
	x.start("waits", "run_cancel")
	x.until("run_cancel begins", func() bool { return x.count("model", "run_cancel") > 0 })
	for i := range 3 {
		err := x.update("run_cancel", UpdateCancel, fmt.Sprint(i))
		if i == 0 {
			x.must(err)
		} else if err != nil && !strings.Contains(err.Error(), "completed") {
			t.Errorf("cancel again: %v", err)
		}
	}
	x.start("asks", "run_workflow")
	x.parked("run_workflow")
	x.must(x.client.CancelWorkflow(x.ctx, "run_workflow", ""))
	for id, reason := range map[string]lathe.Reason{"run_cancel": lathe.ReasonCancelled, "run_limit": lathe.ReasonRunTimeout, "run_expires": lathe.ReasonAnswered} {
		if out := x.finished(id); out.Reason != reason {
			t.Errorf("%s: %+v, want %s", id, out, reason)
		}
	}
	if err := x.client.GetWorkflow(x.ctx, "run_workflow", "").Get(x.ctx, nil); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("a workflow that was cancelled ends with %v", err)
	}
	x.judge(0)
	if n := x.count("deed", ""); n != 0 {
		t.Errorf("%d tools were called", n)
	}
	for id, code := range map[string]lathe.Code{"run_expires": lathe.CodeApprovalExpired, "run_workflow": lathe.CodeCancelled} {
		s, err := engine.ReadState(x.ctx, x.store, id)
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := s.Messages[2].Parts[0].(lathe.ToolResult); !ok || r.Code != code {
			t.Errorf("%s: the call is answered %+v", id, r)
		}
	}
}

// A run with several histories: the server suggests a new one after some events, and an approval arrives in one of them.
func testContinues(t *testing.T, binary string) {
	x := newTrial(t, startServer(t, binary, "-set", "limit.historyCount.suggestContinueAsNew=20"), nil)
	x.serve(t, "worker", nil)
	x.start("long", "run_1")
	s := x.parked("run_1")
	x.must(x.update("run_1", UpdateApproval, "1", approve(&s)))
	if out := x.finished("run_1"); out.Reason != lathe.ReasonAnswered {
		t.Errorf("%+v", out)
	}
	x.judge(0)
	histories := 0
	for run, ok := "", true; ok; histories++ {
		begun := x.history("run_1", run).Events[0].GetWorkflowExecutionStartedEventAttributes()
		run = begun.GetContinuedExecutionRunId()
		ok = run != ""
	}
	if histories < 3 {
		t.Errorf("the run has %d histories", histories)
	}
	t.Logf("one run in %d histories", histories)
}

// With deployment versions, a run stays on the version that started it, and new runs are executed by the current one.
func testUpgrade(t *testing.T, address string) {
	x := newTrial(t, address, nil)
	handle := x.client.WorkerDeploymentClient().GetHandle("agents")
	current := func(build string) {
		x.until("version "+build, func() bool { // its workers have polled
			_, err := handle.SetCurrentVersion(x.ctx, client.WorkerDeploymentSetCurrentVersionOptions{BuildID: build})
			return err == nil
		})
	}
	x.serve(t, "old", func(s *site) { s.Build = "1" })
	current("1")
	x.start("two", "run_old")
	s := x.parked("run_old")
	x.serve(t, "new", func(s *site) { s.Build = "2" })
	current("2")
	x.start("two", "run_new")
	n := x.parked("run_new")
	x.must(x.update("run_old", UpdateApproval, "1", approve(&s)))
	x.must(x.update("run_new", UpdateApproval, "1", approve(&n)))
	for _, id := range []string{"run_old", "run_new"} {
		if out := x.finished(id); out.Reason != lathe.ReasonAnswered {
			t.Errorf("%s: %+v", id, out)
		}
	}
	x.judge(0)
	for _, e := range x.entries() {
		if e.Kind == "deed" && "run_"+e.Deed.Process != e.Run {
			t.Errorf("%s of %s was executed by the %s worker", e.Deed.Tool, e.Run, e.Deed.Process)
		}
	}
}

// Workers are killed under load, again and again: every run comes to its end, no event is lost or doubled, and no write is repeated. Most
// runs have several histories, and half of the workers are killed in a call.
func testKills(t *testing.T, binary string) {
	const kills, clients, workers = 50, 8, 3
	x := newTrial(t, startServer(t, binary, "-set", "limit.historyCount.suggestContinueAsNew=30"), func(s *site) { s.Takes = 100 * time.Millisecond })
	rng := rand.New(rand.NewPCG(1, 1))
	began := time.Now()
	settling := make(chan struct{})
	var over sync.WaitGroup
	for c := range clients {
		over.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-settling:
					return
				case <-x.ctx.Done():
					return
				default: // one more
				}
				x.accompany(fmt.Sprintf("run_%d_%d", c, n))
			}
		})
	}
	up, names := make([]*process, workers), make([]string, workers)
	for i := range up {
		names[i] = fmt.Sprintf("w%d", i)
		up[i] = x.serve(t, names[i], nil)
	}
	for i := range kills {
		want := x.count("model", "") + x.count("deed", "") + 1 + rng.IntN(20)
		x.until("work", func() bool { return x.count("model", "")+x.count("deed", "") >= want })
		k := rng.IntN(workers)
		if last := x.last(); i%2 == 0 && slices.Contains(names, last) {
			k = slices.Index(names, last)
		}
		up[k].kill()
		names[k] = fmt.Sprintf("w%d", workers+i)
		up[k] = x.serve(t, names[k], nil)
	}
	close(settling)
	over.Wait()
	seconds := time.Since(began).Seconds()
	table := x.judge(kills)
	t.Logf("%d runs, %d kills, %.0f seconds; resumed %d times, %d calls answered interrupted; runs not done %d, events lost or doubled %d, writes repeated %d, other promises broken %d",
		table.Runs, kills, seconds, table.Resumed, table.Interrupted, table.NotDone, table.LostOrDoubled, table.Repeated, table.NoEffect+table.Others)
	if table.Runs < clients || table.Resumed == 0 {
		t.Error("the kills hit nothing")
	}
}

// accompany makes a run, gives it the answers that it waits for, and watches it to its end.
func (x *trial) accompany(id string) {
	x.start("load", id)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		x.watch(id)
		s, err := engine.ReadState(x.ctx, x.store, id)
		switch {
		case err != nil: // the next time
		case s.Finished != nil:
			var out Result
			if err := x.client.GetWorkflow(x.ctx, id, "").Get(x.ctx, &out); err != nil || out.Reason != lathe.ReasonAnswered || out.LastEventID != s.LastID {
				x.t.Errorf("%s: %+v, %v; its log ends with event %d", id, out, err, s.LastID)
			}
			return
		case s.Paused == lathe.ReasonInterrupted:
			_ = x.update(id, UpdateResume, fmt.Sprint(s.LastID)) // the next time
		case s.Paused != "":
			for i := range s.Open {
				x.answer(id, &s.Open[i])
			}
		}
		select {
		case <-tick.C:
		case <-x.ctx.Done():
			x.t.Errorf("%s does not end: %v", id, err)
			return
		}
	}
}

// answer answers an open call. An answer that is rejected, as the workflow does not know yet that it waits, is sent again later.
func (x *trial) answer(id string, call *loop.OpenCall) {
	var err error
	switch {
	case call.Asked:
		err = x.update(id, UpdateApproval, call.ID, ApprovalAnswer{CallID: call.ID, Digest: call.Digest, Answer: approval.Answer{Verb: approval.Approve, By: "ann"}})
	case call.Tool == "mine":
		err = x.update(id, UpdateResult, call.ID, ClientResult{CallID: call.ID, Data: json.RawMessage(`{"did":"it"}`)})
	}
	var failed *sdk.ActivityError
	if errors.As(err, &failed) { // an answer was accepted, and was not stored
		x.t.Errorf("%s: %v", id, err)
	}
}

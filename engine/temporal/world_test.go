package temporal

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// A world is a store with a workflow, its tools, and what these did.
type world struct {
	t         *testing.T
	env       *testsuite.TestWorkflowEnvironment
	kept      *store.Memory
	w         *Workflow
	approvals *approval.Queue
	seen      *seen

	mu     sync.Mutex
	writes map[string]int // by idempotency key
	reads  map[string]int
	steps  []string // the activities that were executed
	fail   func(n int, name string) fault
	store  func(*store.Memory) store.Store
}

// A fault is what happens to an attempt of an activity.
type fault uint8

const (
	none   fault = iota
	before       // its worker is lost before it began
	after        // its worker is lost when it is done: its result does not arrive
)

// seen is a sink that counts events by id.
type seen struct {
	mu     sync.Mutex
	events map[int64]int
	deltas int
}

func (s *seen) Emit(_ context.Context, e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if event.IsDelta(e.Data) {
		s.deltas++
		return
	}
	s.events[e.ID]++
}

// script is a model that answers a conversation with its nth message, where n counts its messages in it.
type script []lathe.Message

func (script) Describe() lathe.ModelInfo { return lathe.ModelInfo{} }

func (m script) Generate(_ context.Context, req *lathe.Request) iter.Seq2[lathe.Delta, error] {
	n := 0
	for i := range req.Messages {
		if req.Messages[i].Role == lathe.RoleAssistant {
			n++
		}
	}
	return func(yield func(lathe.Delta, error) bool) {
		reason := lathe.FinishStop
		if len(m[n].Calls()) > 0 {
			reason = lathe.FinishToolCalls
		} else if !yield(lathe.Delta{Kind: lathe.DeltaText, Text: m[n].Text()}, nil) {
			return
		}
		yield(lathe.Delta{Kind: lathe.DeltaFinish, Finish: &lathe.Finish{Reason: reason, Message: m[n], Usage: lathe.Usage{InputTokens: 1, TotalTokens: 1}}}, nil)
	}
}

// calls is a message of the model with calls "id tool".
func calls(words ...string) lathe.Message {
	m := lathe.Message{Role: lathe.RoleAssistant}
	for _, w := range words {
		id, name, _ := strings.Cut(w, " ")
		m.Parts = append(m.Parts, lathe.ToolCall{ID: id, Name: name, Arguments: `{}`})
	}
	return m
}

func (w *world) Done(m map[string]int) func(context.Context, struct{}) (string, error) {
	return func(ctx context.Context, _ struct{}) (string, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		m[lathe.CallMetaFrom(ctx).IdempotencyKey]++
		return "done " + lathe.CallMetaFrom(ctx).CallID, nil
	}
}

// newWorld returns a world in which the model says the messages. more are further tools.
func newWorld(t *testing.T, messages script, change func(*world), more ...lathe.Tool) *world {
	t.Helper()
	w := &world{t: t, kept: store.NewMemory(nil), writes: map[string]int{}, reads: map[string]int{}, seen: &seen{events: map[int64]int{}},
		fail: func(int, string) fault { return none }, store: func(m *store.Memory) store.Store { return m }}
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	w.env = suite.NewTestWorkflowEnvironment()
	w.env.SetTestTimeout(10 * time.Minute)
	w.env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: 10 * time.Minute}) // both go by the wall clock
	if change != nil {
		change(w)
	}
	w.approvals = approval.NewQueue(&approval.QueueOptions{Now: w.env.Now})
	tools := append([]lathe.Tool{
		tool.Func("look", "Looks.", w.Done(w.reads), &tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}}),
		tool.Func("save", "Saves.", w.Done(w.writes), &tool.FuncOptions{Effect: lathe.Writes, Show: []string{"*"}}),
		tool.Func("pay", "Pays.", w.Done(w.writes), &tool.FuncOptions{Effect: lathe.Writes, Show: []string{"*"}}),
	}, more...)
	kept := w.store(w.kept)
	e, err := engine.New(&engine.Options{Store: kept, Now: w.env.Now})
	if err != nil {
		t.Fatal(err)
	}
	loops := func(string) (*loop.Loop, error) { // a worker of its own for each step
		set, err := tool.NewSet(tools...)
		if err != nil {
			return nil, err
		}
		runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.Tools{Allow: []string{"look", "save", "leak", "remote", "weather"}, Ask: []string{"pay"}, Deny: []string{"never"}}, Approver: w.approvals, Now: w.env.Now})
		if err != nil {
			return nil, err
		}
		return loop.New(messages, runner, &loop.Options{Now: w.env.Now})
	}
	w.w, err = NewWorkflow(nil, &Options{Engine: e, Store: kept, LoopFor: loops, Approvals: w.approvals, Sinks: []event.Sink{w.seen}})
	if err != nil {
		t.Fatal(err)
	}
	w.w.Register(w.env)
	return w
}

// execute executes the workflow of run_1, with the faults.
func (w *world) execute(in *Input) {
	w.t.Helper()
	for _, name := range []string{modelActivity, toolActivity} {
		w.env.OnActivity(name, mock.Anything, mock.Anything).Return(func(ctx context.Context, in *stepInput) (*stepOutput, error) { return w.step(ctx, in) }).Maybe()
	}
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "run_1"})
	w.env.ExecuteWorkflow(Name, in)
}

// step is the activity, with faults.
func (w *world) step(ctx context.Context, in *stepInput) (*stepOutput, error) {
	name := activity.GetInfo(ctx).ActivityType.Name
	w.mu.Lock()
	w.steps = append(w.steps, strings.TrimPrefix(name, "lathe."))
	f := w.fail(len(w.steps), name)
	w.mu.Unlock()
	if f == before {
		return nil, sdk.NewHeartbeatTimeoutError()
	}
	out, err := w.w.step(ctx, in)
	if f == after {
		return nil, sdk.NewHeartbeatTimeoutError()
	}
	return out, err
}

// start executes the workflow of run_1.
func (w *world) start(clientTools ...*lathe.ToolSpec) (*Result, error) {
	w.t.Helper()
	w.execute(&Input{Start: &Start{Messages: []lathe.Message{lathe.User("hi")}, SessionID: "s", ClientTools: clientTools}})
	if !w.env.IsWorkflowCompleted() {
		w.t.Fatal("the workflow does not end")
	}
	if err := w.env.GetWorkflowError(); err != nil {
		return nil, err
	}
	var out Result
	if err := w.env.GetWorkflowResult(&out); err != nil {
		w.t.Fatal(err)
	}
	return &out, nil
}

func (w *world) state() *loop.State {
	w.t.Helper()
	s, err := engine.ReadState(context.Background(), w.kept, "run_1")
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// check reports what must hold of every run that has ended: each call has one result, in call order; a tool that writes ran at most
// once for a call, and never for one that was not approved; no result of a tool that wrote is lost, unless the call is interrupted;
// the log is dense, and no event was published twice.
func (w *world) check() {
	w.t.Helper()
	s := w.state()
	if s.Finished == nil || len(s.Open) > 0 {
		w.t.Errorf("the run has not ended: %d calls are open", len(s.Open))
	}
	var open []string
	results := map[string]lathe.ToolResult{}
	for _, m := range s.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case lathe.ToolCall:
				open = append(open, p.ID)
			case lathe.ToolResult:
				if len(open) == 0 || open[0] != p.CallID {
					w.t.Errorf("the result of %s, where %v are open", p.CallID, open)
					continue
				}
				open = open[1:]
				results[p.CallID] = p
			}
		}
	}
	if len(open) > 0 {
		w.t.Errorf("calls without a result: %v", open)
	}
	for key, n := range w.writes {
		if n > 1 {
			w.t.Errorf("the call with the key %s ran %d times", key, n)
		}
	}
	for id := int64(1); id <= s.LastID; id++ {
		if n := w.seen.events[id]; n > 1 {
			w.t.Errorf("event %d was published %d times", id, n)
		}
	}
	for key := range w.writes {
		if len(w.writes) > len(results) {
			w.t.Errorf("%s was written, and no call has its result", key)
		}
	}
}

// results are the results of the run, as "call code", in order.
func (w *world) results() string {
	var out []string
	for _, m := range w.state().Messages {
		for _, p := range m.Parts {
			if r, ok := p.(lathe.ToolResult); ok {
				code := string(r.Code)
				if code == "" {
					code = "ok"
				}
				out = append(out, r.CallID+" "+code)
			}
		}
	}
	return strings.Join(out, ", ")
}

func total(m map[string]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}

// An update is sent to the workflow at a time, and its outcome is kept.
type update struct {
	accepted, rejected, done bool
	err                      error
}

func (w *world) update(at time.Duration, name string, args func() []any) *update {
	return w.updateAs(fmt.Sprintf("%s-%v", name, at), at, name, args)
}

// updateAs sends an update with that id.
func (w *world) updateAs(id string, at time.Duration, name string, args func() []any) *update {
	u := &update{}
	w.env.RegisterDelayedCallback(func() {
		w.env.UpdateWorkflow(name, id, &testsuite.TestUpdateCallback{
			OnAccept:   func() { u.accepted = true },
			OnReject:   func(err error) { u.rejected, u.err = true, err },
			OnComplete: func(_ any, err error) { u.done, u.err = true, err },
		}, args()...)
	}, at)
	return u
}

// waiting returns what the run waits for, by the query.
func (w *world) waiting() Status {
	v, err := w.env.QueryWorkflow(QueryStatus)
	if err != nil {
		w.t.Fatal(err)
	}
	var s Status
	if err := v.Get(&s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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
	"github.com/lathe-run/lathe/internal/testkit/enginetest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// The scenarios of every engine, in the SDK's test environment.
func TestConforms(t *testing.T) {
	t.Parallel()
	enginetest.Conform(t, &enginetest.ConformOptions{Open: func(t *testing.T, s *enginetest.Environment) enginetest.Engine {
		p := &testEngine{t: t, environment: s, runs: map[string]*envRun{}, stops: map[string]context.CancelCauseFunc{}, clock: time.Now}
		p.kept = store.NewMemory(&store.MemoryOptions{Now: p.now})
		if err := p.begin(); err != nil {
			t.Fatal(err)
		}
		return p
	}})
}

// A testEngine executes the workflows of a scenario in one environment each. Their activities are those of the process of the moment.
type testEngine struct {
	t           *testing.T
	environment *enginetest.Environment
	kept        *store.Memory
	runs        map[string]*envRun

	mu     sync.Mutex
	clock  func() time.Time // of the newest environment
	worker *envWorker
	stops  map[string]context.CancelCauseFunc // of the activities in progress, by id
	closed bool
}

// An envWorker is what a worker executes activities with.
type envWorker struct {
	host *enginetest.Host
	flow *Workflow
}

// An envRun is the environment of one run. The time of an environment passes at once when no activity is in progress, so each second a
// run that waits is held until the scenario continues.
type envRun struct {
	env     *testsuite.TestWorkflowEnvironment
	held    bool
	waits   chan struct{} // receives when the run is held
	release chan struct{} // and when it is not any more
	done    chan struct{} // closed at the end of the workflow
	busy    chan struct{} // full while a step is executed
}

func (p *testEngine) now() time.Time {
	p.mu.Lock()
	now := p.clock
	p.mu.Unlock()
	return now()
}

func (p *testEngine) current() *envWorker {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.worker
}

func (p *testEngine) begin() error {
	host, err := p.environment.Host(p.kept, p.now)
	if err != nil {
		return err
	}
	e, err := engine.New(&engine.Options{Store: host.Store, Now: p.now})
	if err != nil {
		return err
	}
	flow, err := NewWorkflow(host.Loop, &Options{Engine: e, Store: host.Store, Approvals: host.Approvals, Sinks: []event.Sink{host}})
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.worker = &envWorker{host, flow}
	return nil
}

// Start implements [enginetest.Engine].
func (p *testEngine) Start(ctx context.Context, in *loop.Input) (string, error) {
	r := &envRun{waits: make(chan struct{}), release: make(chan struct{}), done: make(chan struct{}), busy: make(chan struct{}, 1)}
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	r.env = suite.NewTestWorkflowEnvironment()
	r.env.SetStartTime(p.now())
	r.env.SetTestTimeout(time.Hour)
	r.env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Hour})
	p.mu.Lock()
	p.clock = r.env.Now
	p.mu.Unlock()
	flow := p.current().flow
	accepted, err := flow.Accept(ctx, in)
	if err != nil {
		return "", err
	}
	flow.Register(r.env)
	for _, name := range []string{modelActivity, toolActivity} {
		r.env.OnActivity(name, mock.Anything, mock.Anything).Return(func(ctx context.Context, in *stepInput) (*stepOutput, error) {
			ctx, stop := context.WithCancelCause(ctx)
			defer stop(nil)
			r.busy <- struct{}{} // unlike a server, the environment does not wait for an activity that it cancels
			defer func() { <-r.busy }()
			p.stopBy(in.RunID+activity.GetInfo(ctx).ActivityID, stop)
			now := p.current()
			out, err := now.flow.step(ctx, in)
			if now.host.Killed() {
				return nil, sdk.NewHeartbeatTimeoutError()
			}
			return out, err
		}).Maybe()
	}
	r.env.OnActivity(inputActivity, mock.Anything, mock.Anything).Return(func(ctx context.Context, in *external) error { return p.current().flow.input(ctx, in) }).Maybe()
	r.env.SetOnActivityCanceledListener(func(info *activity.Info) { p.stopActivity(accepted.RunID + info.ActivityID) })
	r.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: accepted.RunID})
	r.env.RegisterDelayedCallback(func() { p.hold(r) }, time.Second)
	p.runs[accepted.RunID] = r
	go func() {
		defer close(r.done)
		r.env.ExecuteWorkflow(Name, accepted)
	}()
	return accepted.RunID, nil
}

// stopBy records how an activity is cancelled.
func (p *testEngine) stopBy(id string, stop context.CancelCauseFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stops[id] = stop
}

// stopActivity cancels an activity, as the answer of the server to its heartbeat does; the environment itself does not.
func (p *testEngine) stopActivity(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if stop := p.stops[id]; stop != nil {
		stop(sdk.NewCanceledError())
	}
}

// hold blocks the environment while the run waits, until the scenario continues.
func (p *testEngine) hold(r *envRun) {
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if closed {
		return
	}
	v, err := r.env.QueryWorkflow(QueryStatus)
	var s Status
	if err == nil && v.Get(&s) == nil && s.Status == "parked" {
		r.waits <- struct{}{}
		<-r.release
	}
	r.env.RegisterDelayedCallback(func() { p.hold(r) }, time.Second)
}

// let lets the environment continue.
func (r *envRun) let() {
	if r.held {
		r.held = false
		r.release <- struct{}{}
	}
}

// update sends an update and waits for its result.
func (p *testEngine) update(runID, name string, args ...any) error {
	r := p.runs[runID]
	result := make(chan error, 3)
	r.env.RegisterDelayedCallback(func() {
		r.env.UpdateWorkflow(name, fmt.Sprintf("%s %v", name, p.now().UnixNano()), &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { result <- err }, OnComplete: func(_ any, err error) { result <- err }}, args...)
	}, 0)
	r.let()
	for {
		select {
		case err := <-result:
			return err
		case <-r.waits:
			r.release <- struct{}{}
		}
	}
}

// Answer implements [enginetest.Engine].
func (p *testEngine) Answer(_ context.Context, runID, callID, digest string, a *approval.Answer) error {
	return p.update(runID, UpdateApproval, ApprovalAnswer{CallID: callID, Digest: digest, Answer: *a})
}

// Result implements [enginetest.Engine].
func (p *testEngine) Result(_ context.Context, runID, callID string, out lathe.Output) error {
	return p.update(runID, UpdateResult, ClientResult{CallID: callID, Data: json.RawMessage(out.Data), IsError: out.IsError})
}

// Cancel implements [enginetest.Engine].
func (p *testEngine) Cancel(_ context.Context, runID string) error {
	return p.update(runID, UpdateCancel)
}

// Resume implements [enginetest.Engine].
func (p *testEngine) Resume(_ context.Context, runID string) error {
	return p.update(runID, UpdateResume)
}

// Await implements [enginetest.Engine].
func (p *testEngine) Await(ctx context.Context, runID string, after int64) (*loop.State, error) {
	r := p.runs[runID]
	for range 1_000 {
		r.let()
		select {
		case <-r.waits:
			r.held = true
		case <-r.done:
			if err := r.env.GetWorkflowError(); err != nil {
				return nil, err
			}
		}
		s, err := engine.ReadState(ctx, p.kept, runID)
		if err != nil || s.LastID > after && (s.Finished != nil || s.Paused != "") {
			return s, err
		}
	}
	return nil, errors.New("the run neither ends nor waits")
}

// Restart implements [enginetest.Engine].
func (p *testEngine) Restart(_ context.Context, kill bool) error {
	before := p.current()
	err := p.begin()
	if kill {
		before.host.Kill()
	}
	return err
}

// Store implements [enginetest.Engine].
func (p *testEngine) Store() store.RunIndex { return p.kept }

// Close implements [enginetest.Engine].
func (p *testEngine) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.current().host.Kill()
	for _, r := range p.runs {
		r.env.CancelWorkflow()
		r.let()
		for over := false; !over; {
			select {
			case <-r.waits:
				r.release <- struct{}{}
			case <-r.done:
				over = true
			}
		}
	}
}

package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/testkit/enginetest"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// The scenarios of every engine, on a real Temporal server.
func TestRealServerConforms(t *testing.T) {
	binary := os.Getenv(serverEnv)
	if binary == "" {
		t.Skip("no Temporal server: run `make temporal`, which builds one")
	}
	c, err := client.DialContext(t.Context(), client.Options{HostPort: startServer(t, binary), Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	enginetest.Conform(t, &enginetest.ConformOptions{RealTime: true, Open: func(t *testing.T, s *enginetest.Environment) enginetest.Engine {
		p := &realEngine{environment: s, client: c, queue: t.Name(), kept: store.NewMemory(nil)}
		if err := p.begin(); err != nil {
			t.Fatal(err)
		}
		return p
	}})
}

// A realEngine executes runs on a server, with one worker at a time in this process.
type realEngine struct {
	environment *enginetest.Environment
	client      client.Client
	queue       string
	kept        *store.Memory

	host   *enginetest.Host
	flow   *Workflow
	worker worker.Worker
}

// begin starts a worker.
func (p *realEngine) begin() (err error) {
	if p.host, err = p.environment.Host(p.kept, nil); err != nil {
		return err
	}
	e, err := engine.New(&engine.Options{Store: p.host.Store, Lease: 2 * time.Second})
	if err != nil {
		return err
	}
	p.flow, err = NewWorkflow(p.host.Loop, &Options{Engine: e, Store: p.host.Store, Approvals: p.host.Approvals, Sinks: []event.Sink{p.host}, Heartbeat: 2 * time.Second})
	if err != nil {
		return err
	}
	p.worker = worker.New(p.client, p.queue, worker.Options{StickyScheduleToStartTimeout: time.Second})
	p.flow.Register(p.worker)
	return p.worker.Start()
}

// Start implements [enginetest.Engine].
func (p *realEngine) Start(ctx context.Context, in *loop.Input) (string, error) {
	return p.flow.Start(ctx, p.client, p.queue, in)
}

// update sends an update and waits for its result.
func (p *realEngine) update(ctx context.Context, runID, name string, args ...any) error {
	h, err := p.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: runID, UpdateName: name, Args: args, WaitForStage: client.WorkflowUpdateStageCompleted})
	if err != nil {
		return err
	}
	return h.Get(ctx, nil)
}

// Answer implements [enginetest.Engine].
func (p *realEngine) Answer(ctx context.Context, runID, callID, digest string, a *approval.Answer) error {
	return p.update(ctx, runID, UpdateApproval, ApprovalAnswer{CallID: callID, Digest: digest, Answer: *a})
}

// Result implements [enginetest.Engine].
func (p *realEngine) Result(ctx context.Context, runID, callID string, out lathe.Output) error {
	return p.update(ctx, runID, UpdateResult, ClientResult{CallID: callID, Data: json.RawMessage(out.Data), IsError: out.IsError})
}

// Cancel implements [enginetest.Engine].
func (p *realEngine) Cancel(ctx context.Context, runID string) error {
	return p.update(ctx, runID, UpdateCancel)
}

// Resume implements [enginetest.Engine].
func (p *realEngine) Resume(ctx context.Context, runID string) error {
	return p.update(ctx, runID, UpdateResume)
}

// Await implements [enginetest.Engine]. The workflow may know the end of a step later than the store.
func (p *realEngine) Await(ctx context.Context, runID string, after int64) (*loop.State, error) {
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		s, err := engine.ReadState(ctx, p.kept, runID)
		if err != nil || s.LastID <= after || s.Finished == nil && s.Paused == "" {
			continue
		}
		v, err := p.client.QueryWorkflow(ctx, runID, "", QueryStatus)
		var status Status
		if err == nil && v.Get(&status) == nil && status.LastEventID == s.LastID && status.Status != "running" {
			return s, nil
		}
	}
	return nil, errors.New("the run neither ends nor waits")
}

// Restart implements [enginetest.Engine].
func (p *realEngine) Restart(_ context.Context, kill bool) error {
	if kill {
		p.host.Kill()
	}
	p.worker.Stop()
	return p.begin()
}

// Store implements [enginetest.Engine].
func (p *realEngine) Store() store.RunIndex { return p.kept }

// Close implements [enginetest.Engine].
func (p *realEngine) Close() {
	p.host.Kill()
	p.worker.Stop()
}

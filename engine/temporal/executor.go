package temporal

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/server"
	"github.com/lathe-run/lathe/store"
)

// TaskQueue is the default of ExecutorOptions.TaskQueue.
const TaskQueue = "lathe"

const (
	reachTimeout = 5 * time.Second        // of one request to Temporal
	retryEvery   = time.Second            // between two attempts to reach the workflows of runs
	sweepEvery   = time.Minute            // between two searches for runs whose workflow was not started or has missed a signal
	resumeEvery  = 100 * time.Millisecond // between two attempts to resume a run
	stopTimeout  = 24 * time.Hour         // of the worker; Drain ends the steps earlier
	maxMissed    = 10_000                 // maximum number of runs whose workflows could not be reached; beyond it Start returns an error
)

// ExecutorOptions are the options of [NewExecutor]. The zero value is usable.
type ExecutorOptions struct {
	TaskQueue string // task queue of the workflows and their activities; "": [TaskQueue]
	// MaxSteps is the maximum number of concurrent steps in this process; 0: [engine.MaxRuns].
	MaxSteps int
	Log      *slog.Logger // receives log records; nil: no logging
}

// An Executor executes the detached runs of a gateway as workflows. It is a [server.Executor] and also a Temporal worker. Its methods may
// be called from several goroutines at once.
type Executor struct {
	flow   *Workflow
	client client.Client
	index  store.RunIndex
	opts   ExecutorOptions
	ctx    context.Context // of background tasks; done after Drain
	stop   context.CancelFunc
	tasks  sync.WaitGroup

	mu     sync.Mutex
	worker worker.Worker
	missed map[string]missed // requests to workflows that could not be reached, by run id
	ended  bool
}

// missed is a request that the workflow of a run has not received.
type missed struct {
	target string
	start  bool // the workflow may not have been started
	why    server.Wake
}

var _ server.Executor = (*Executor)(nil)

// NewExecutor returns an executor for the runs of w. The store of w must be a [store.RunIndex]. c is the Temporal client of the namespace;
// the caller must close it after Drain. opts may be nil. An error has the code invalid_config.
func NewExecutor(c client.Client, w *Workflow, opts *ExecutorOptions) (*Executor, error) {
	x := &Executor{flow: w, client: c, missed: map[string]missed{}}
	if opts != nil {
		x.opts = *opts
	}
	index, ok := w.opts.Store.(store.RunIndex)
	if !ok || x.opts.MaxSteps < 0 {
		return nil, lathe.CodeInvalidConfig.Errorf("temporal: new executor", "the store must list its runs, and at least one step be allowed")
	}
	x.index = index
	x.opts.TaskQueue = cmp.Or(x.opts.TaskQueue, TaskQueue)
	x.opts.MaxSteps = cmp.Or(x.opts.MaxSteps, engine.MaxRuns)
	if x.opts.Log == nil {
		x.opts.Log = slog.New(slog.DiscardHandler)
	}
	x.ctx, x.stop = context.WithCancel(context.Background())
	return x, nil
}

// Name implements [server.Executor].
func (x *Executor) Name() string { return ExecutorName }

// Start implements [server.Executor].
func (x *Executor) Start(ctx context.Context, _ *loop.Loop, in *loop.Input) (string, error) {
	x.mu.Lock()
	full := len(x.missed) >= maxMissed
	x.mu.Unlock()
	if full {
		return "", unreached(errors.New("too many runs wait for it"))
	}
	accepted, err := x.flow.Accept(ctx, in)
	if err != nil {
		return "", err
	}
	m := missed{target: in.Target, start: true}
	if err := x.reach(ctx, accepted.RunID, m); err != nil {
		x.miss(accepted.RunID, m, err)
	}
	return accepted.RunID, nil
}

// Wake implements [server.Executor].
func (x *Executor) Wake(ctx context.Context, runID, target string, why server.Wake) error {
	m := missed{target: target, why: why}
	err := x.reach(ctx, runID, m)
	switch {
	case err == nil:
		return nil
	case why == server.WakeResume:
		return unreached(err)
	}
	x.miss(runID, m, err)
	return nil
}

func unreached(err error) error {
	return lathe.CodeUnavailable.Wrap("temporal: reach the workflow", err)
}

// miss stores a request that a workflow did not receive, to repeat it later.
func (x *Executor) miss(runID string, m missed, err error) {
	x.opts.Log.Warn("the workflow of a run could not be reached: it is tried again", "run_id", runID, "error", err)
	x.mu.Lock()
	defer x.mu.Unlock()
	old, isMissed := x.missed[runID]
	switch {
	case isMissed:
		m.start, m.why = m.start && old.start, max(m.why, old.why)
	case len(x.missed) >= maxMissed: // the next sweep finds the run
		return
	}
	x.missed[runID] = m
}

// reach makes one attempt to send m to the workflow of a run.
func (x *Executor) reach(ctx context.Context, runID string, m missed) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reachTimeout)
	defer cancel()
	switch {
	case m.start:
		return Launch(ctx, x.client, x.opts.TaskQueue, &Input{RunID: runID, Target: m.target})
	case m.why == server.WakeCancel:
		err := x.update(ctx, runID, UpdateCancel)
		if !ended(err) {
			return err
		}
		if rows, _, rerr := x.index.Runs(ctx, &store.RunFilter{RunID: runID}); rerr == nil && len(rows) == 0 {
			return nil // the run was deleted, so nothing executes it
		}
		return x.signal(ctx, runID, m.target) // starts a workflow, which reads the cancel request from the store
	case m.why == server.WakeResume:
		return x.resume(ctx, runID, m.target)
	}
	return x.signal(ctx, runID, m.target)
}

// resume resumes a run that is parked with reason `interrupted`. If the workflow has not recorded that state yet, resume wakes the workflow
// and repeats the request.
func (x *Executor) resume(ctx context.Context, runID, target string) error {
	for {
		err := x.update(ctx, runID, UpdateResume)
		var rejected *temporal.ApplicationError
		repeatable := ended(err) || errors.As(err, &rejected)
		if err == nil || !repeatable {
			return err
		}
		if err := x.signal(ctx, runID, target); err != nil {
			return err
		}
		select {
		case <-time.After(resumeEvery):
		case <-ctx.Done():
			return err
		}
	}
}

// update sends an update without input and waits until the workflow has completed it.
func (x *Executor) update(ctx context.Context, runID, name string) error {
	h, err := x.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: runID, UpdateName: name, WaitForStage: client.WorkflowUpdateStageCompleted})
	if err != nil {
		return err
	}
	return h.Get(ctx, nil)
}

// signal wakes the workflow of a run. If no workflow of the run is open, because an operator has terminated it or it was never started,
// signal starts one.
func (x *Executor) signal(ctx context.Context, runID, target string) error {
	opts := client.StartWorkflowOptions{ID: runID, TaskQueue: x.opts.TaskQueue, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE}
	_, err := x.client.SignalWithStartWorkflow(ctx, runID, SignalWake, nil, opts, Name, &Input{RunID: runID, Target: target})
	return err
}

// ended reports whether err means that no workflow of the run is open.
func ended(err error) bool {
	var none *serviceerror.NotFound
	return errors.As(err, &none)
}

// Begin starts the Temporal worker. It also starts a periodic search for runs whose workflow was not started or missed a signal, because a
// process stopped between its write to the store and its request to Temporal. Begin returns when the worker has started. The error has the
// code unavailable if the namespace does not exist or cannot be reached, and conflict if Begin was successful before or Drain was called.
func (x *Executor) Begin() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended || x.worker != nil {
		return lathe.CodeConflict.Errorf("temporal: begin", "the executor has begun or ended already")
	}
	w := worker.New(x.client, x.opts.TaskQueue, worker.Options{MaxConcurrentActivityExecutionSize: x.opts.MaxSteps, WorkerStopTimeout: stopTimeout})
	x.flow.Register(w)
	if err := w.Start(); err != nil {
		return unreached(err)
	}
	x.worker = w
	x.tasks.Go(x.repair)
	return nil
}

// Drain starts no more steps, and blocks until the steps in progress have ended. If ctx is done earlier, Drain interrupts them and waits
// until they have stopped; another worker continues their runs. After Drain, Begin returns an error.
func (x *Executor) Drain(ctx context.Context) {
	x.mu.Lock()
	w := x.worker
	x.worker, x.ended = nil, true
	x.mu.Unlock()
	x.stop()
	if w != nil {
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			w.Stop()
		}()
		select {
		case <-stopped:
		case <-ctx.Done():
			x.flow.leaveSteps()
			<-stopped
		}
	}
	x.tasks.Wait()
}

// repair repeats the requests that workflows have missed, until Drain is called.
func (x *Executor) repair() {
	tick := time.Tick(retryEvery)
	x.sweep()
	swept := time.Now()
	for {
		x.retry()
		select {
		case <-tick:
		case <-x.ctx.Done():
			return
		}
		if time.Since(swept) >= sweepEvery {
			swept = time.Now()
			x.sweep()
		}
	}
}

// retry makes one attempt for each missed request, and stops at the first that fails.
func (x *Executor) retry() {
	x.mu.Lock()
	left := maps.Clone(x.missed)
	x.mu.Unlock()
	for id, m := range left {
		if x.ctx.Err() != nil || x.reach(x.ctx, id, m) != nil {
			return
		}
		x.mu.Lock()
		if x.missed[id] == m {
			delete(x.missed, id)
		}
		x.mu.Unlock()
	}
}

// sweep finds runs in the store whose workflow may have missed its start or a signal, and reaches the workflows.
func (x *Executor) sweep() {
	for _, f := range []store.RunFilter{{Status: "running"}, {Status: "parked", Signaled: true}} {
		for r, err := range f.All(x.ctx, x.index) {
			if err != nil {
				if x.ctx.Err() == nil {
					x.opts.Log.Warn("the runs whose workflow was not started or has missed a signal could not be read", "code", lathe.CodeOf(err))
				}
				return
			}
			if r.Executor != ExecutorName {
				continue
			}
			m := missed{target: r.Target, start: f.Status == "running"}
			if err := x.reach(x.ctx, r.RunID, m); err != nil {
				if x.ctx.Err() == nil {
					x.miss(r.RunID, m, err)
				}
				return // the next sweep retries
			}
		}
	}
}

// Package temporal executes runs inside Temporal: a run is a workflow, and each model call and each tool call is an activity. It is a
// separate module, so that programs without Temporal do not depend on its SDK.
//
// # Where a run is stored
//
// The log of the run in the store contains its content, as with every other engine, so that the run API, the console, exports and sinks are
// the same. The history of the workflow contains the steps and what they waited for: ids, codes and counts. It contains content only in
// three places: the messages of an [Input] that was not accepted before, the input of updates, and the arguments and outputs of tools on
// other task queues. A payload codec stores this content elsewhere or encrypts it; see [NewCodec].
//
// # How a step is executed
//
// The workflow has no loop of its own. An activity executes each step of the run: [engine.Engine.Step] reads the log, continues the same
// loop with the same runner, and suspends it before the next effect. The activity returns which step follows, and the workflow chooses the
// options of the next activity accordingly. So policies, limits and redaction may change between two steps, and the replay of a workflow
// does not depend on them.
//
//	step                        activity         options
//	model call                  lathe.model      retried without limit, as long as the run's time limit allows
//	call of a tool that reads   lathe.tool       retried, with the same idempotency key
//	call of a tool that writes  lathe.tool       one attempt; after a lost worker, a step that settles: the call is answered
//	                                             interrupted, unless the tool is a tool.OutcomeChecker
//	tool on a task queue        its own name     one attempt if it writes, else retried; see [NewQueueTool]
//
// Heartbeats detect a lost worker. A worker that was only slow cannot write to the log afterwards: the store refuses its append.
//
// # Limits
//
// Concurrent calls that only read are one activity, and so are calls that waited for the same approval. Of calls that only read, those of
// tools on task queues may be executed one after the other or concurrently. A secret that was found in a result, and is not one of the
// known ones, is valid only within one step.
package temporal

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/runinput"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

// The names under which [Workflow.Register] registers the workflow and its activities.
const (
	Name = "lathe.run" // type of the workflow that executes a run

	modelActivity  = "lathe.model"
	toolActivity   = "lathe.tool"
	acceptActivity = "lathe.accept"
	inputActivity  = "lathe.input"
)

// ExecutorName is the value of the field Executor of [store.RunSummary] for runs that a [Workflow] executes.
const ExecutorName = "temporal"

// Options are the options of [NewWorkflow]. Engine and Store are required. They are copied.
type Options struct {
	// Engine executes the steps of runs. Its store must be Store, which all workers must share.
	Engine *engine.Engine
	Store  store.Store
	// LoopFor returns the loop for a target, which is the value of [loop.Input].Target; nil: every run uses the loop that was passed to
	// NewWorkflow.
	LoopFor func(target string) (*loop.Loop, error)
	// HoldLoop, if set, is called instead of LoopFor. The workflow calls release once, after the step that uses the loop.
	HoldLoop func(target string) (l *loop.Loop, release func(), err error)
	// Approvals contains the requests for approval. It must be the Approver of the loops' runners. nil: the update [UpdateApproval] cannot
	// answer a request.
	Approvals *approval.Queue
	// Sinks receive the events of the runs after those of the engine.
	Sinks []event.Sink
	// Heartbeat is the maximum time between two heartbeats of a worker's activity. After it, the activity counts as lost. 0: 10 s; a
	// negative value is an error.
	Heartbeat time.Duration
}

// A Workflow executes runs as Temporal workflows. It may be used by several Temporal workers.
type Workflow struct {
	loop *loop.Loop
	opts Options

	left       context.Context // done when the steps in progress must be left
	leaveSteps context.CancelFunc
}

// NewWorkflow returns a Workflow that executes runs of l. If opts has LoopFor or HoldLoop, l is not used and may be nil. If opts.Store is a
// [store.SignalStore], NewWorkflow makes opts.Approvals store its answers there. An error has the code invalid_config.
func NewWorkflow(l *loop.Loop, opts *Options) (*Workflow, error) {
	w := &Workflow{loop: l}
	w.left, w.leaveSteps = context.WithCancel(context.Background())
	if opts != nil {
		w.opts = *opts
	}
	var err error
	switch {
	case w.opts.Engine == nil || w.opts.Store == nil:
		err = errors.New("an engine and its store are required")
	case l == nil && w.opts.LoopFor == nil && w.opts.HoldLoop == nil:
		err = errors.New("a loop is required")
	case w.opts.Heartbeat < 0:
		err = fmt.Errorf("the heartbeat is %v, want more than 0", w.opts.Heartbeat)
	}
	if err != nil {
		return nil, lathe.CodeInvalidConfig.Wrap("temporal: new workflow", err)
	}
	if w.opts.LoopFor == nil {
		w.opts.LoopFor = func(string) (*loop.Loop, error) { return l, nil }
	}
	if w.opts.Heartbeat == 0 {
		w.opts.Heartbeat = 10 * time.Second
	}
	if q := w.opts.Approvals; q != nil {
		if signals, ok := w.opts.Store.(store.SignalStore); ok {
			q.Keep(signals)
		}
	}
	return w, nil
}

// Register registers the workflow and its activities with a Temporal worker. If the worker has deployment versioning, a run remains on the
// version of the worker that started it.
func (w *Workflow) Register(r worker.Registry) {
	r.RegisterWorkflowWithOptions(w.Run, workflow.RegisterOptions{Name: Name, VersioningBehavior: workflow.VersioningBehaviorPinned})
	for name, fn := range map[string]any{modelActivity: w.step, toolActivity: w.step, acceptActivity: w.accept, inputActivity: w.input} {
		r.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
}

// loopFor returns the loop for a target. If err is nil, the caller must call release.
func (w *Workflow) loopFor(target string) (l *loop.Loop, release func(), err error) {
	if w.opts.HoldLoop != nil {
		return w.opts.HoldLoop(target)
	}
	l, err = w.opts.LoopFor(target)
	return l, func() {}, err
}

// Accept stores the first event of a run and returns the input of its workflow, for [Launch]: the run id and the target, without content.
// If in.Run.RunID is set, Accept may be repeated and then changes nothing. If it is "", Accept generates an id, and so stores another run
// each time.
func (w *Workflow) Accept(ctx context.Context, in *loop.Input) (*Input, error) {
	l, release, err := w.loopFor(in.Target)
	if err != nil {
		return nil, err
	}
	defer release()
	own := *in
	runinput.Of(&own).Executor = ExecutorName
	id, err := w.opts.Engine.Accept(ctx, l, &own, w.opts.Sinks...)
	if err != nil {
		return nil, err
	}
	return &Input{RunID: id, Target: in.Target}, nil
}

// Start stores the first event of a run, as [Workflow.Accept] does, and starts its workflow on the task queue, as [Launch] does. It does
// not wait for the run. It returns the id of the run, which is also the id of the workflow. With the same in.Run.RunID, Start may be
// repeated: what was stored or started before is not changed. If the run was stored and its workflow could not be started, Start returns
// the id and the error.
func (w *Workflow) Start(ctx context.Context, c client.Client, taskQueue string, in *loop.Input) (string, error) {
	accepted, err := w.Accept(ctx, in)
	if err != nil {
		return "", err
	}
	return accepted.RunID, Launch(ctx, c, taskQueue, accepted)
}

// Launch starts the workflow of a run that [Workflow.Accept] has stored, and does not wait for its end. It does nothing if the workflow was
// started before. Its errors are those of the Temporal client.
func Launch(ctx context.Context, c client.Client, taskQueue string, in *Input) error {
	opts := client.StartWorkflowOptions{ID: in.RunID, TaskQueue: taskQueue,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING}
	_, err := c.ExecuteWorkflow(ctx, opts, Name, in)
	if alreadyStarted(err) {
		return nil
	}
	return err
}

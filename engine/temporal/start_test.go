package temporal

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/mock"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/loop"
)

// Start stores the beginning of the run, and what the workflow gets has no content. It may be repeated: a run that was started has one
// workflow.
func TestStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script{calls("a save"), lathe.Assistant("done")}, nil)
	var got *Input
	c := &mocks.Client{}
	c.On("ExecuteWorkflow", mock.Anything, mock.Anything, Name, mock.Anything).Run(func(args mock.Arguments) {
		o, ok := args[1].(client.StartWorkflowOptions)
		if !ok || o.ID != "run_1" || o.TaskQueue != "agents" || o.WorkflowIDReusePolicy != enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE {
			t.Errorf("the options are %+v", args[1])
		}
		got, _ = args[3].(*Input)
	}).Return(&mocks.WorkflowRun{}, nil).Once()
	c.On("ExecuteWorkflow", mock.Anything, mock.Anything, Name, mock.Anything).Return(nil, &serviceerror.WorkflowExecutionAlreadyStarted{}).Once()
	in := &loop.Input{Run: lathe.RunInfo{RunID: "run_1", SessionID: "s"}, Messages: []lathe.Message{lathe.User("a secret question")}}
	for range 2 {
		if id, err := w.w.Start(t.Context(), c, "agents", in); err != nil || id != "run_1" {
			t.Fatalf("%q, %v", id, err)
		}
	}
	if log := kinds(t, w.kept); log != "RunStarted\n" || len(w.steps) != 0 {
		t.Errorf("before its workflow the run has the log\n%s", log)
	}
	p, err := converter.GetDefaultDataConverter().ToPayload(got)
	if err != nil || strings.Contains(string(p.Data), "secret") {
		t.Errorf("the workflow gets %s, %v", p.GetData(), err)
	}
	gone := errors.New("no connection")
	c.On("ExecuteWorkflow", mock.Anything, mock.Anything, Name, mock.Anything).Return(nil, gone).Once()
	if _, err := w.w.Start(t.Context(), c, "agents", in); !errors.Is(err, gone) {
		t.Errorf("without a server: %v", err)
	}
	w.execute(got)
	if err := w.env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	w.check()
	if w.results() != "a ok" || total(w.writes) != 1 {
		t.Errorf("results %s", w.results())
	}
}

package temporal

import (
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/store"
)

var rewrite = flag.Bool("update", false, "write testdata/histories again: only for histories that no release has written")

// A tape writes a history in the form in which the server has it.
type tape struct {
	t      *testing.T
	events []*historypb.HistoryEvent
	now    time.Time
	task   int64 // the completion of the last workflow task

}

func (p *tape) add(e *historypb.HistoryEvent) int64 {
	p.now = p.now.Add(time.Second)
	e.EventId, e.EventTime = int64(len(p.events)+1), timestamppb.New(p.now)
	p.events = append(p.events, e)
	return e.EventId
}

func (p *tape) payloads(v any) *commonpb.Payloads {
	out, err := converter.GetDefaultDataConverter().ToPayloads(v)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

// workflowTask adds a workflow task that comes to its end.
func (p *tape) workflowTask() {
	scheduled := p.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, Attributes: &historypb.HistoryEvent_WorkflowTaskScheduledEventAttributes{
		WorkflowTaskScheduledEventAttributes: &historypb.WorkflowTaskScheduledEventAttributes{Attempt: 1}}})
	started := p.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED, Attributes: &historypb.HistoryEvent_WorkflowTaskStartedEventAttributes{
		WorkflowTaskStartedEventAttributes: &historypb.WorkflowTaskStartedEventAttributes{ScheduledEventId: scheduled}}})
	p.task = p.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, Attributes: &historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{
		WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{ScheduledEventId: scheduled, StartedEventId: started}}})
}

func (p *tape) begin(in *Input) {
	p.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
			TaskQueue: &taskqueuepb.TaskQueue{Name: "agents"}, WorkflowType: &commonpb.WorkflowType{Name: Name}, Input: p.payloads(in), OriginalExecutionRunId: "r", FirstExecutionRunId: "r", Attempt: 1, WorkflowId: "run_1"}}})
	p.workflowTask()
}

// activity adds an activity and what follows its end: out, or a timeout of its heartbeat if out is nil.
func (p *tape) activity(name string, out any) {
	id := int64(len(p.events) + 1)
	scheduled := p.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
		ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{ActivityId: strconv.FormatInt(id, 10), ActivityType: &commonpb.ActivityType{Name: name}, WorkflowTaskCompletedEventId: p.task}}})
	started := p.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED, Attributes: &historypb.HistoryEvent_ActivityTaskStartedEventAttributes{
		ActivityTaskStartedEventAttributes: &historypb.ActivityTaskStartedEventAttributes{ScheduledEventId: scheduled, Attempt: 1}}})
	if out == nil {
		p.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT, Attributes: &historypb.HistoryEvent_ActivityTaskTimedOutEventAttributes{
			ActivityTaskTimedOutEventAttributes: &historypb.ActivityTaskTimedOutEventAttributes{ScheduledEventId: scheduled, StartedEventId: started, Failure: heartbeatFailure()}}})
	} else {
		p.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
			ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: scheduled, StartedEventId: started, Result: p.payloads(out)}}})
	}
	p.workflowTask()
}

// timer adds a timer that fires.
func (p *tape) timer(d time.Duration) {
	id := strconv.Itoa(len(p.events) + 1)
	started := p.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_TIMER_STARTED, Attributes: &historypb.HistoryEvent_TimerStartedEventAttributes{
		TimerStartedEventAttributes: &historypb.TimerStartedEventAttributes{TimerId: id, StartToFireTimeout: durationpb.New(d), WorkflowTaskCompletedEventId: p.task}}})
	p.now = p.now.Add(d)
	p.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_TIMER_FIRED, Attributes: &historypb.HistoryEvent_TimerFiredEventAttributes{
		TimerFiredEventAttributes: &historypb.TimerFiredEventAttributes{TimerId: id, StartedEventId: started}}})
	p.workflowTask()
}

func (p *tape) finish(reason lathe.Reason, last int64) {
	p.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, Attributes: &historypb.HistoryEvent_WorkflowExecutionCompletedEventAttributes{
		WorkflowExecutionCompletedEventAttributes: &historypb.WorkflowExecutionCompletedEventAttributes{
			Result: p.payloads(&Result{RunID: "run_1", Reason: reason, Status: reason.Status(), LastEventID: last}), WorkflowTaskCompletedEventId: p.task}}})
}

func heartbeatFailure() *failurepb.Failure {
	return &failurepb.Failure{Message: "activity Heartbeat timeout", FailureInfo: &failurepb.Failure_TimeoutFailureInfo{TimeoutFailureInfo: &failurepb.TimeoutFailureInfo{TimeoutType: enumspb.TIMEOUT_TYPE_HEARTBEAT}}}
}

// histories are those in testdata/histories, by name.
func histories(t *testing.T) map[string]*tape {
	at := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	begin := func(in *Input) *tape {
		p := &tape{t: t, now: at}
		p.begin(in)
		return p
	}
	answered := lathe.ReasonAnswered
	tools := begin(&Input{Start: &Start{Messages: []lathe.Message{lathe.User("hi")}, SessionID: "s"}})
	tools.activity(acceptActivity, json.RawMessage("null"))
	tools.activity(modelActivity, &stepOutput{LastID: 3, Next: &next{CallID: "a", Tool: "look"}})
	tools.activity(toolActivity, &stepOutput{LastID: 7, Next: &next{CallID: "b", Tool: "save", Once: true}})
	tools.activity(toolActivity, nil) // its worker is lost
	tools.activity(toolActivity, &stepOutput{LastID: 11, Next: &next{}})
	tools.activity(modelActivity, &stepOutput{LastID: 14, Reason: answered, Status: "completed"})
	tools.finish(answered, 14)

	expires := begin(&Input{RunID: "run_1"})
	expires.activity(modelActivity, &stepOutput{LastID: 3, Next: &next{CallID: "a", Tool: "pay", Once: true}})
	expires.activity(toolActivity, &stepOutput{LastID: 7, Reason: lathe.ReasonAwaitingApproval, Status: "parked", Waiting: []Waiting{{CallID: "a", Digest: "d", ExpiresAt: expires.now.Add(time.Hour)}}})
	expires.timer(time.Hour)
	expires.activity(toolActivity, &stepOutput{LastID: 11, Next: &next{}})
	expires.activity(modelActivity, &stepOutput{LastID: 14, Reason: answered, Status: "completed"})
	expires.finish(answered, 14)

	queue := begin(&Input{RunID: "run_1"})
	queue.activity(modelActivity, &stepOutput{LastID: 3, Next: &next{CallID: "a", Tool: "remote", Once: true}})
	queue.activity(toolActivity, &stepOutput{LastID: 5, Calls: []remoteCall{{Queue: "elsewhere", Activity: "remote", Timeout: time.Minute, Attempts: 1, Input: CallInput{RunID: "run_1", CallID: "a", Tool: "remote", Arguments: json.RawMessage(`{}`)}}}})
	queue.activity("remote", &CallResult{Data: json.RawMessage(`{"shown":1}`)})
	queue.activity(toolActivity, &stepOutput{LastID: 7, Next: &next{}})
	queue.activity(modelActivity, &stepOutput{LastID: 10, Reason: answered, Status: "completed"})
	queue.finish(answered, 10)
	return map[string]*tape{"tools": tools, "expires": expires, "queue": queue}
}

// replay replays a history with the workflow of this version.
func replay(t *testing.T, h *historypb.History) error {
	t.Helper()
	e, err := engine.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWorkflow(nil, &Options{Engine: e, Store: store.NewMemory(nil), LoopFor: func(string) (*loop.Loop, error) { return nil, lathe.ErrNotFound }})
	if err != nil {
		t.Fatal(err)
	}
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DisableDeadlockDetection: true}) // it goes by the wall clock
	if err != nil {
		t.Fatal(err)
	}
	r.RegisterWorkflowWithOptions(w.Run, workflow.RegisterOptions{Name: Name})
	return r.ReplayWorkflowHistory(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)), h)
}

// The histories of former versions are replayed by this one: an upgrade does not break a workflow that is under way. They are written
// by tape, in the form of the server, and are not to be written again once a release has had them.
func TestReplay(t *testing.T) {
	t.Parallel()
	if *rewrite {
		for name, p := range histories(t) {
			text, err := temporalproto.CustomJSONMarshalOptions{Indent: "\t"}.Marshal(&historypb.History{Events: p.events})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll("testdata/histories", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join("testdata/histories", name+".json"), append(text, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	files, err := filepath.Glob("testdata/histories/*.json")
	if err != nil || len(files) < 3 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		h := &historypb.History{}
		if err := (temporalproto.CustomJSONUnmarshalOptions{}).Unmarshal(text, h); err != nil {
			t.Fatal(err)
		}
		if err := replay(t, h); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		// Without one of its activities the history is that of another workflow.
		for _, e := range h.Events {
			if a := e.GetActivityTaskScheduledEventAttributes(); a != nil && a.ActivityType.Name == toolActivity {
				a.ActivityType.Name = modelActivity
				break
			}
		}
		if err := replay(t, h); err == nil {
			t.Errorf("%s with another activity is replayed, too", name)
		}
	}
}

package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/setting"
)

// extTasks is the MCP extension in which a call continues after its request has been answered.
const extTasks = "io.modelcontextprotocol/tasks"

// Tasks are the options of tasks. Calls of clients of protocol version 2026-07-28 that declare the extension io.modelcontextprotocol/tasks
// may become tasks. Only the caller that started a task can access it. A task is stored in the memory of this process, and counts towards
// MaxCalls while it runs.
type Tasks struct {
	// After is the time after which a running call is answered with a task; 10 s. If it is negative, no call becomes a task
	// and the extension is not offered.
	After time.Duration `key:"after" default:"10s"`
	// TTL is the time after its start for which a task is stored; 1 h. A call that is still running then is cancelled.
	TTL time.Duration `key:"ttl" default:"1h"`
	// Poll is the poll interval that clients receive; 1 s.
	Poll time.Duration `key:"poll" default:"1s"`
	// Max bounds the stored tasks of all clients; 256. MaxOfCaller bounds those of one principal; a quarter of Max. A task beyond a bound
	// replaces the oldest task that has ended: of the principal, or of all clients. If no such task has ended, the call does not become a
	// task and is answered in its request.
	Max         int `key:"max" default:"256"`
	MaxOfCaller int
	// Rules are exceptions for single tools, by tool name.
	Rules map[string]TaskRule
}

// A TaskRule configures how the calls of one tool become tasks.
type TaskRule struct {
	AtOnce   bool // calls become tasks when they start: the client gets the tool's questions through the task
	Required bool // calls of clients that do not declare the extension are refused
}

// A taskUse says when the call of a request becomes a task.
type taskUse uint8

const (
	noTask     taskUse = iota // never
	taskIfSlow                // when it has taken Tasks.After, unless the number of tasks is at its limit
	taskAtOnce                // when it starts, and otherwise as taskIfSlow
)

// use returns the use of tasks for clients that declare the extension.
func (r TaskRule) use() taskUse {
	if r.AtOnce {
		return taskAtOnce
	}
	return taskIfSlow
}

func (o *Tasks) withDefaults() {
	setting.Fill(o)
	if o.MaxOfCaller <= 0 {
		o.MaxOfCaller = max(o.Max/4, 1)
	}
}

// knowsTasks reports whether a client declares the extension.
func knowsTasks(c *mcp.ClientCapabilities) bool {
	if c == nil {
		return false
	}
	_, ok := c.Extensions[extTasks]
	return ok
}

// errNoTasks is the error for a client that does not declare the extension.
func errNoTasks() error {
	data, err := json.Marshal(map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{extTasks: struct{}{}}}})
	if err != nil {
		return err
	}
	return &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the client does not name the extension " + extTasks, Data: data}
}

// A task is a runnerCall that continues after its request. It has no goroutine of its own: each request about the task receives from the
// exchange what has happened since, and updates the fields below mu.
type task struct {
	id    string
	owner string // Caller.owner of the caller that started the task
	x     *exchange
	timer *time.Timer // fires at the end of the TTL; used by the taskStore

	mu               sync.Mutex // locked while a request uses the task or x
	created, updated time.Time
	status           taskStatus
	result           mcp.Result     // of taskCompleted
	fault            *jsonrpc.Error // of taskFailed
}

type taskStatus string

const (
	taskWorking   taskStatus = "working"
	taskAsks      taskStatus = "input_required"
	taskCompleted taskStatus = "completed"
	taskFailed    taskStatus = "failed"
	taskCancelled taskStatus = "cancelled"
)

func (s taskStatus) final() bool { return s != taskWorking && s != taskAsks }

// taskResult is the form in which clients receive a task. In the response to tools/call it has no result.
type taskResult struct {
	mcp.ResultBase
	ResultType     string              `json:"resultType"`
	TaskID         string              `json:"taskId"`
	Status         taskStatus          `json:"status"`
	CreatedAt      time.Time           `json:"createdAt"`
	LastUpdatedAt  time.Time           `json:"lastUpdatedAt"`
	TTLMS          int64               `json:"ttlMs"`
	PollIntervalMS int64               `json:"pollIntervalMs"`
	Result         mcp.Result          `json:"result,omitempty"`
	Error          *jsonrpc.Error      `json:"error,omitempty"`
	InputRequests  mcp.InputRequestMap `json:"inputRequests,omitempty"`
}

// becomeTask makes the runnerCall a task and returns the result that names the task. It returns false if the number of tasks is at its
// limit.
func (x *exchange) becomeTask() (mcp.Result, bool) {
	t := x.rc.t
	now := t.s.opts.Now().UTC()
	k := &task{id: rand.Text() + rand.Text(), owner: t.caller.owner(), x: x, created: now, updated: now, status: taskWorking}
	shown := k.show("task")
	if !t.s.tasks.put(k, &t.s.opts.Tasks) {
		return nil, false
	}
	x.rc.client.detach()
	return shown, true
}

// show returns the task without result, error and questions.
func (k *task) show(resultType string) *taskResult {
	o := &k.x.rc.t.s.opts.Tasks
	return &taskResult{ResultType: resultType, TaskID: k.id, Status: k.status, CreatedAt: k.created, LastUpdatedAt: k.updated,
		TTLMS: max(o.TTL.Milliseconds(), 1), PollIntervalMS: max(o.Poll.Milliseconds(), 1)}
}

// refresh receives the result or the questions of the tool, if there are any, and updates the status. k.mu is held.
func (k *task) refresh(ctx context.Context) {
	if k.status.final() {
		return
	}
	was := k.status
	select {
	case r := <-k.x.done:
		k.end(ctx, &r)
	default:
		k.x.receiveQuestions()
		k.status = taskWorking
		if k.x.open != nil {
			k.status = taskAsks
		}
	}
	if k.status != was {
		k.updated = k.x.rc.t.s.opts.Now().UTC()
	}
}

func (k *task) end(ctx context.Context, r *lathe.ToolResult) {
	res, err := k.x.end(ctx, r)
	if err == nil {
		k.status, k.result = taskCompleted, res
		return
	}
	k.status = taskFailed
	if !errors.As(err, &k.fault) {
		k.fault = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the call could not be answered"}
	}
}

// taskParams are the parameters of all methods of the extension.
type taskParams struct {
	mcp.ParamsBase
	TaskID         string                     `json:"taskId"`
	InputResponses map[string]json.RawMessage `json:"inputResponses,omitempty"`
}

// taskMethods are the handlers of the methods of the extension.
var taskMethods = map[string]func(*task, *taskParams) mcp.Result{
	"tasks/get":    (*task).get,
	"tasks/update": (*task).update,
	"tasks/cancel": (*task).stop,
}

// serveTask handles a request of the extension. It returns an error if the caller does not own the task.
func (t *tenant) serveTask(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
	p, _ := req.GetParams().(*taskParams)
	r, ok := req.(*mcp.ServerRequest[*taskParams])
	switch {
	case !ok || p == nil || p.TaskID == "":
		return nil, invalidParams("the request names no task")
	case !modernVersion(protocolOf(r.ProtocolVersion(), p.Meta)):
		return nil, errNoMethod
	case !knowsTasks(r.ClientCapabilities()):
		return nil, errNoTasks()
	}
	k := t.s.tasks.find(p.TaskID, t.caller.owner())
	if k == nil {
		return nil, invalidParams("no such task")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refresh(ctx)
	return taskMethods[method](k, p), nil
}

func (k *task) get(*taskParams) mcp.Result {
	out := k.show("complete")
	switch k.status {
	case taskCompleted:
		out.Result = k.result
	case taskFailed:
		out.Error = k.fault
	case taskAsks:
		out.InputRequests = k.x.unanswered()
	case taskWorking, taskCancelled: // nothing to add
	}
	return out
}

// update passes the client's answers to the open questions to the tool. Answers to other questions are ignored.
func (k *task) update(p *taskParams) mcp.Result {
	if k.status == taskAsks {
		given := mcp.InputResponseMap{}
		for name := range k.x.open.questions {
			given[name] = decodeResponse(p.InputResponses[name])
		}
		k.x.deliverAnswers(given)
	}
	return acknowledged()
}

// decodeResponse decodes one response, or returns nil. It wraps the response into a map, because the SDK decodes only whole maps.
func decodeResponse(raw json.RawMessage) mcp.InputResponse {
	var one mcp.InputResponseMap
	if json.Unmarshal(slices.Concat([]byte(`{"a":`), raw, []byte{'}'}), &one) != nil {
		return nil
	}
	return one["a"]
}

// stop cancels the call. A task that has ended is not changed.
func (k *task) stop(*taskParams) mcp.Result {
	if !k.status.final() {
		k.status, k.updated = taskCancelled, k.x.rc.t.s.opts.Now().UTC()
		k.x.cancel()
	}
	return acknowledged()
}

// An emptyResult is a result without members of its own.
type emptyResult struct {
	mcp.ResultBase
	ResultType string `json:"resultType"`
}

func acknowledged() mcp.Result { return &emptyResult{ResultType: "complete"} }

// notDispatched is the handler under which the methods of tasks are registered with the SDK. It is never called: receive handles them.
func notDispatched(context.Context, *mcp.ServerSession, *taskParams) (*emptyResult, error) {
	return nil, internalError("the request did not reach its task")
}

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/gateway/mcp"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
)

const (
	tasksKey = "ann-ann-ann-ann-"
	knows    = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
)

// A taskClient makes requests of 2026-07-28 over HTTP.
type taskClient struct {
	t        *testing.T
	c        *http.Client
	url, key string
	caps     string
}

func (r *rig) tasks(t *testing.T) *taskClient {
	return &taskClient{t: t, c: client(t), url: r.web(), key: tasksKey, caps: knows}
}

// A taskAnswer is what came back.
type taskAnswer struct {
	status int
	raw    string
	Result struct {
		ResultType, TaskID, Status, CreatedAt, LastUpdatedAt string
		TTLMs, PollIntervalMs                                int64
		Content                                              []struct{ Text string }
		Result                                               *struct {
			Content []struct{ Text string }
			IsError bool
		}
		Error         *struct{ Code int }
		InputRequests map[string]json.RawMessage
	}
	Error *struct{ Code int }
}

func (c *taskClient) send(method, name, params string) *taskAnswer {
	c.t.Helper()
	msg := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,%s}}`, method, params, strings.Replace(able, `{"elicitation":{}}`, c.caps, 1))
	headers := []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Authorization", "Bearer " + c.key}
	if name != "" {
		headers = append(headers, "Mcp-Name", name)
	}
	status, _, raw := post(c.t, c.c, c.url, msg, headers...)
	if !strings.HasPrefix(raw, "{") {
		raw = "{" + raw
	}
	a := &taskAnswer{status: status, raw: raw}
	if err := json.Unmarshal([]byte(raw), a); err != nil {
		c.t.Fatalf("%v: %s", err, raw)
	}
	return a
}

func (c *taskClient) call(tool string) *taskAnswer {
	return c.send("tools/call", tool, fmt.Sprintf(`"name":%q,"arguments":{}`, tool))
}

func (c *taskClient) about(method, id, rest string) *taskAnswer {
	return c.send(method, id, fmt.Sprintf(`"taskId":%q%s`, id, rest))
}

// begin calls a tool, whose answer is a task.
func (c *taskClient) begin(tool string) (id string) {
	c.t.Helper()
	a := c.call(tool)
	if r := &a.Result; r.ResultType != "task" || r.TaskID == "" || r.Status != "working" || r.TTLMs <= 0 || r.PollIntervalMs <= 0 || r.CreatedAt == "" || r.Result != nil {
		c.t.Fatalf("no task: %s", a.raw)
	}
	return a.Result.TaskID
}

// until looks at a task until it has that status.
func (c *taskClient) until(id, status string) *taskAnswer {
	c.t.Helper()
	for {
		a := c.about("tasks/get", id, "")
		if a.Error != nil || a.Result.ResultType != "complete" || a.Result.TaskID != id {
			c.t.Fatalf("no task: %s", a.raw)
		}
		if a.Result.Status == status {
			return a
		}
	}
}

// over looks at a task until the run of its call has ended, which it does not by itself.
func (c *taskClient) over(r *rig, id string) {
	c.t.Helper()
	for !slices.Contains(r.log.types(), (&event.RunFinished{}).EventType()) {
		c.about("tasks/get", id, "")
	}
}

func (a *taskAnswer) code() int {
	if a.Error == nil {
		return 0
	}
	return a.Error.Code
}

// waits is a tool that goes on when the channel is closed, or when it is cancelled.
func waits(name string, release chan struct{}) *fake {
	return reader(name, func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		select {
		case <-release:
			return &lathe.Output{Data: json.RawMessage(`"ready"`)}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
}

func taskOptions(tasks mcp.Tasks) *mcp.Options {
	return &mcp.Options{Tasks: tasks, HTTP: mcp.HTTPOptions{Identify: mcp.Keys(
		mcp.Key{Secret: secret.New(tasksKey), Caller: mcp.Caller{Principal: "ann"}},
		mcp.Key{Secret: secret.New("bob-bob-bob-bob-"), Caller: mcp.Caller{Principal: "bob"}})}}
}

// A call that takes long is answered by a task, which holds what it comes to; one that does not is answered.
func TestLongCallsBecomeTasks(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	r := newRig(t, nil, taskOptions(mcp.Tasks{After: time.Millisecond}), waits("long", release))
	c := r.tasks(t)
	id := c.begin("long")
	if a := c.about("tasks/get", id, ""); a.Result.Status != "working" || a.Result.Result != nil {
		t.Errorf("got %s", a.raw)
	}
	close(release)
	a := c.until(id, "completed")
	if res := a.Result.Result; res == nil || res.IsError || len(res.Content) != 1 || res.Content[0].Text != "ready" {
		t.Errorf("got %s", a.raw)
	}
	if a := c.about("tasks/cancel", id, ""); a.Result.ResultType != "complete" || a.Result.Status != "" {
		t.Errorf("cancelled when it was over: %s", a.raw)
	}
	if a := c.until(id, "completed"); a.Result.Result == nil {
		t.Errorf("got %s", a.raw)
	}
	patient := newRig(t, nil, taskOptions(mcp.Tasks{After: time.Hour}), waits("quick", release)).tasks(t)
	if a := patient.call("quick"); a.Result.ResultType != "complete" || a.Result.TaskID != "" || a.Result.Content[0].Text != "ready" {
		t.Errorf("got %s", a.raw)
	}
}

// The client gets the questions of a task's tool from the task, and answers them with tasks/update, one by one or together.
func TestTasksAsk(t *testing.T) {
	t.Parallel()
	field := tool.Question{Form: &tool.Form{Message: "?", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}}
	asks := reader("asks", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		got, err := tool.AskerFrom(ctx).Ask(ctx, map[string]tool.Question{"a": field, "b": field})
		if err != nil {
			return nil, err
		}
		return &lathe.Output{Data: json.RawMessage(`[` + string(got["a"].Form) + `,` + string(got["b"].Form) + got["b"].Refused + `]`)}, nil
	})
	roots := reader("roots", func(ctx context.Context, _ json.RawMessage) (*lathe.Output, error) {
		_, err := tool.AskOne(ctx, "roots", tool.Question{Roots: true})
		return nil, err
	})
	fails := reader("fails", func(context.Context, json.RawMessage) (*lathe.Output, error) { panic("canary") })
	once := mcp.TaskRule{AtOnce: true}
	c := newRig(t, nil, taskOptions(mcp.Tasks{Rules: map[string]mcp.TaskRule{"asks": once, "roots": once, "fails": once}}), asks, roots, fails).tasks(t)
	id := c.begin("asks")
	if a := c.until(id, "input_required"); len(a.Result.InputRequests) != 2 {
		t.Fatalf("got %s", a.raw)
	}
	answer := func(responses string) {
		t.Helper()
		if a := c.about("tasks/update", id, `,"inputResponses":`+responses); a.Result.ResultType != "complete" || a.Result.Status != "" {
			t.Fatalf("got %s", a.raw)
		}
	}
	for _, odd := range []string{`{}`, `{"c":{"action":"accept"}}`, `{"a":7}`, `{"a":{"action":"accept","content":{"n":"x"}}}`, `{"a":{"roots":[]}}`, `null`} {
		answer(odd)
		if a := c.until(id, "input_required"); len(a.Result.InputRequests) != 2 {
			t.Fatalf("after %s: %s", odd, a.raw)
		}
	}
	answer(`{"a":{"action":"accept","content":{"n":1}}}`)
	if a := c.until(id, "input_required"); len(a.Result.InputRequests) != 1 || a.Result.InputRequests["b"] == nil {
		t.Fatalf("got %s", a.raw)
	}
	answer(`{"a":{"action":"decline"},"b":{"action":"accept","content":{"n":2}}}`)
	if a := c.until(id, "completed"); a.Result.Result.Content[0].Text != `[{"n":1},{"n":2}]` {
		t.Errorf("got %s", a.raw)
	}
	if a := c.until(c.begin("roots"), "failed"); a.Result.Error == nil || a.Result.Error.Code != -32021 || a.Result.Result != nil {
		t.Errorf("got %s", a.raw)
	}
	if a := c.until(c.begin("fails"), "completed"); !a.Result.Result.IsError || strings.Contains(a.raw, "canary") {
		t.Errorf("got %s", a.raw)
	}
}

func TestTasksAreCancelled(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, taskOptions(mcp.Tasks{After: time.Millisecond}), waits("long", nil))
	c := r.tasks(t)
	id := c.begin("long")
	for range 2 {
		if a := c.about("tasks/cancel", id, ""); a.Result.ResultType != "complete" || a.Result.Status != "" {
			t.Errorf("got %s", a.raw)
		}
	}
	c.over(r, id)
	if a := c.until(id, "cancelled"); a.Result.Result != nil || a.Result.Error != nil {
		t.Errorf("got %s", a.raw)
	}
}

// A task is its caller's alone, and of clients that know what it is.
func TestTasksAreTheirCallersAlone(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	rules := map[string]mcp.TaskRule{"needs": {Required: true}}
	r := newRig(t, nil, taskOptions(mcp.Tasks{After: time.Millisecond, Rules: rules}), waits("long", release), reader("needs", echo))
	c := r.tasks(t)
	id := c.begin("long")
	for name, change := range map[string]func(*taskClient) (string, int){
		"another caller": func(c *taskClient) (string, int) { c.key = "bob-bob-bob-bob-"; return id, -32602 },
		"another id":     func(*taskClient) (string, int) { return id + "x", -32602 },
		"no id":          func(*taskClient) (string, int) { return "", -32602 },
		"not known":      func(c *taskClient) (string, int) { c.caps = `{}`; return id, -32021 },
	} {
		other := *c
		of, want := change(&other)
		for method, rest := range map[string]string{"tasks/get": "", "tasks/update": `,"inputResponses":{}`, "tasks/cancel": ""} {
			if a := other.about(method, of, rest); a.code() != want {
				t.Errorf("%s, %s: %s", name, method, a.raw)
			}
		}
	}
	for name, header := range map[string]string{"no header": "", "another header": id + "x"} {
		if a := c.send("tasks/get", header, fmt.Sprintf(`"taskId":%q`, id)); a.code() != -32020 || a.status != 400 {
			t.Errorf("%s: %d %s", name, a.status, a.raw)
		}
	}
	for _, method := range []string{"tasks/list", "tasks/result"} {
		if a := c.about(method, id, ""); a.code() != -32601 {
			t.Errorf("%s: %s", method, a.raw)
		}
	}
	if a := c.about("tasks/get", id, ""); a.Result.Status != "working" {
		t.Errorf("what others did has changed it: %s", a.raw)
	}
	plain := *c
	plain.caps = `{}`
	if a := plain.call("needs"); a.code() != -32021 || !strings.Contains(a.raw, `"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}`) {
		t.Errorf("got %s", a.raw)
	}
	if a := c.call("needs"); a.Error != nil {
		t.Errorf("got %s", a.raw)
	}
}

// Tasks are bounded in number and time.
func TestTasksAreBounded(t *testing.T) {
	t.Parallel()
	release, other := make(chan struct{}), make(chan struct{})
	rules := map[string]mcp.TaskRule{"once": {AtOnce: true}}
	c := newRig(t, nil, taskOptions(mcp.Tasks{After: time.Millisecond, Max: 1, Rules: rules}), waits("long", release), waits("other", other), reader("once", echo)).tasks(t)
	id := c.begin("long")
	if a := c.call("once"); a.Result.ResultType != "complete" || a.Result.Content[0].Text != "{}" {
		t.Errorf("got %s", a.raw)
	}
	got := make(chan *taskAnswer)
	go func() { got <- c.call("other") }() // there is no room for another task: it is answered when it ends
	close(other)
	if a := <-got; a.Result.ResultType != "complete" || a.Result.Content[0].Text != "ready" {
		t.Errorf("got %s", a.raw)
	}
	close(release)
	c.until(id, "completed")
	r := newRig(t, nil, taskOptions(mcp.Tasks{After: time.Millisecond, TTL: time.Millisecond}), waits("long", nil))
	brief := r.tasks(t)
	id = brief.begin("long")
	brief.over(r, id)
	for brief.about("tasks/get", id, "").code() != -32602 {
	}
}

// A task that is over makes room for another one, whether or not its client has looked.
func TestTasksThatAreOverMakeRoom(t *testing.T) {
	t.Parallel()
	once := mcp.TaskRule{AtOnce: true}
	rules := map[string]mcp.TaskRule{"quick": once, "long": once}
	ann := newRig(t, nil, taskOptions(mcp.Tasks{Max: 2, MaxOfCaller: 2, Rules: rules}), waits("long", nil), reader("quick", echo)).tasks(t)
	bob := *ann
	bob.key = "bob-bob-bob-bob-"
	first, second := ann.begin("long"), ann.begin("quick")
	ann.about("tasks/cancel", first, "")
	ann.until(second, "completed")
	bob.begin("quick")
	if a := ann.about("tasks/get", first, ""); a.code() != -32602 {
		t.Errorf("the oldest is kept: %s", a.raw)
	}
	ann.until(second, "completed")
	bob.begin("quick")
	for deadline := time.Now().Add(time.Minute); bob.call("quick").Result.ResultType != "task"; {
		if time.Now().After(deadline) {
			t.Fatal("there is no room, and nothing goes on")
		}
	}
}

// One caller leaves room for others.
func TestTasksOfOneCallerAreBounded(t *testing.T) {
	t.Parallel()
	once := mcp.TaskRule{AtOnce: true}
	rules := map[string]mcp.TaskRule{"quick": once, "long": once}
	ann := newRig(t, nil, taskOptions(mcp.Tasks{Max: 4, Rules: rules}), waits("long", nil), reader("quick", echo)).tasks(t)
	bob := *ann
	bob.key = "bob-bob-bob-bob-"
	id := ann.begin("long")
	if a := ann.call("quick"); a.Result.ResultType != "complete" || a.Result.Content[0].Text != "{}" {
		t.Errorf("got %s", a.raw)
	}
	bob.begin("quick")
	ann.until(id, "working")
}

// No call becomes a task if tasks are disabled, or if the client speaks a protocol version before 2026-07-28.
func TestTasksAreOfOneEra(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"offered": time.Hour, "not offered": -1} {
		r := newRig(t, nil, &mcp.Options{Tasks: mcp.Tasks{After: after}}, reader("echo", echo))
		c := r.tasks(t)
		discovered := c.send("server/discover", "", `"x":1`)
		if has := strings.Contains(discovered.raw, `"extensions":{"io.modelcontextprotocol/tasks":{}}`); has != (after > 0) {
			t.Errorf("%s: %s", name, discovered.raw)
		}
		want := -32602
		if after < 0 {
			want = -32601
		}
		if a := c.about("tasks/get", "x", ""); a.code() != want {
			t.Errorf("%s: %s", name, a.raw)
		}
		status, id, begun := post(t, c.c, c.url, strings.Replace(hello, `"capabilities":{}`, `"capabilities":`+knows, 1))
		if status != 200 || strings.Contains(begun, "extensions") {
			t.Errorf("%s: %d %s", name, status, begun)
		}
		if status, _, old := post(t, c.c, c.url, `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x"}}`, "Mcp-Session-Id", id); !strings.Contains(old, "-32601") && status != 400 {
			t.Errorf("%s: %d %s", name, status, old)
		}
		if status, _, old := post(t, c.c, c.url, call(2, "echo", `{}`), "Mcp-Session-Id", id); status != 200 || !strings.Contains(old, `"content"`) {
			t.Errorf("%s: %d %s", name, status, old)
		}
	}
}

func TestTasksOverLines(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	r := newRig(t, nil, &mcp.Options{Tasks: mcp.Tasks{After: time.Millisecond}}, waits("long", release))
	with := strings.Replace(able, `{"elicitation":{}}`, knows, 1)
	l := r.talk(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"long","arguments":{},` + with + `}}`)
	var a taskAnswer
	if err := json.Unmarshal([]byte(l.await(`"id":1`)[0]), &a); err != nil || a.Result.TaskID == "" {
		t.Fatalf("%v: %+v", err, a)
	}
	close(release)
	for n := 2; a.Result.Status != "completed"; n++ {
		l.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tasks/get","params":{"taskId":%q,%s}}`, n, a.Result.TaskID, with))
		a = taskAnswer{}
		if err := json.Unmarshal([]byte(l.await(fmt.Sprintf(`"id":%d`, n))[0]), &a); err != nil || a.Error != nil {
			t.Fatalf("%v: %+v", err, a)
		}
	}
	if len(a.Result.Result.Content) != 1 || a.Result.Result.Content[0].Text != "ready" {
		t.Errorf("got %+v", a.Result)
	}
}

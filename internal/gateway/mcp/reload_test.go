package mcp_test

import (
	"testing"
	"time"

	"github.com/lathe-run/lathe/internal/gateway/mcp"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
)

// another is a runner of no tools.
func another(t *testing.T) *tool.Runner {
	t.Helper()
	set, err := tool.NewSet()
	if err != nil {
		t.Fatal(err)
	}
	runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll()})
	if err != nil {
		t.Fatal(err)
	}
	return runner
}

// A running call keeps its runner, and its task still belongs to its principal after Admit and Use. A caller whose key is
// no longer configured gets 401.
func TestCallsOutliveTheirRunner(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	r := newRig(t, nil, taskOptions(mcp.Tasks{After: time.Millisecond}), waits("long", release))
	ann := r.tasks(t)
	bob := *ann
	bob.key = "bob-bob-bob-bob-"
	id := ann.begin("long")
	r.server.Admit(&mcp.HTTPOptions{Identify: mcp.Keys(mcp.Key{Secret: secret.New(tasksKey),
		Caller: mcp.Caller{Principal: "ann", Allow: []string{"other"}}})})
	unused := r.server.Use(another(t))
	select {
	case <-unused:
		t.Error("the runner of a call is told to be unused")
	default:
	}
	if a := ann.call("long"); a.code() != -32602 {
		t.Errorf("a tool that is gone was called: %s", a.raw)
	}
	if a := bob.about("tasks/get", id, ""); a.status != 401 {
		t.Errorf("got %d %s", a.status, a.raw)
	}
	ann.until(id, "working")
	close(release)
	if a := ann.until(id, "completed"); a.Result.Result == nil || a.Result.Result.Content[0].Text != "ready" {
		t.Errorf("got %s", a.raw)
	}
	<-unused
	<-r.server.Use(another(t)) // no call uses the former runner
}

// Close ends what keeps a runner in use.
func TestCloseEndsTheUseOfARunner(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, taskOptions(mcp.Tasks{After: time.Millisecond}), waits("long", nil))
	r.tasks(t).begin("long")
	unused := r.server.Use(another(t))
	r.server.Close()
	<-unused
}

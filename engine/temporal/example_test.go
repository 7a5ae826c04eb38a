package temporal_test

import (
	"context"
	"log"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/approval"
	"github.com/lathe-run/lathe/engine"
	"github.com/lathe-run/lathe/engine/temporal"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/store"
	"github.com/lathe-run/lathe/tool"
)

// A worker that executes runs, with a tool of its own and a tool on another task queue. kept is the store that all workers share.
func ExampleNewWorkflow() {
	serve := func(model lathe.Model, kept store.Store) error {
		add := tool.Func("add", "Adds two numbers.", func(_ context.Context, in struct{ A, B float64 }) (float64, error) { return in.A + in.B, nil },
			&tool.FuncOptions{Effect: lathe.ReadOnly, Show: []string{"*"}})
		weather, err := temporal.NewQueueTool(&lathe.ToolSpec{Name: "weather", Description: "Returns the weather of a city.", Effect: lathe.ReadOnly,
			Schema: []byte(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`), Allowlist: []string{"degrees"}},
			&temporal.QueueOptions{TaskQueue: "weather"})
		if err != nil {
			return err
		}
		set, err := tool.NewSet(add, weather)
		if err != nil {
			return err
		}
		approvals := approval.NewQueue(nil)
		runner, err := tool.NewRunner(set, &tool.Options{Policy: policy.AllowAll(), Approver: approvals})
		if err != nil {
			return err
		}
		agent, err := loop.New(model, runner, nil)
		if err != nil {
			return err
		}
		runs, err := engine.New(&engine.Options{Store: kept})
		if err != nil {
			return err
		}
		flow, err := temporal.NewWorkflow(agent, &temporal.Options{Engine: runs, Store: kept, Approvals: approvals})
		if err != nil {
			return err
		}
		c, err := client.Dial(client.Options{HostPort: "127.0.0.1:7233", Namespace: "default"})
		if err != nil {
			return err
		}
		defer c.Close()
		w := worker.New(c, "agents", worker.Options{})
		flow.Register(w)
		return w.Run(worker.InterruptCh())
	}
	log.Printf("%T", serve)
}

// Command lathe is the task with package agent of Lathe.
package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/agent"
	"github.com/lathe-run/lathe/bench/frameworks/task"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/store/sqlite"
	"github.com/lathe-run/lathe/tool"
)

type assistant struct{ agent *agent.Agent }

func open(ctx context.Context, cfg *task.Config) (task.Assistant, error) {
	model, err := provider.OpenAI(cfg.Model, &provider.Options{BaseURL: cfg.ModelURL})
	if err != nil {
		return nil, err
	}
	runs, err := sqlite.Open(filepath.Join(cfg.State, "runs.db"), nil)
	if err != nil {
		return nil, err
	}
	a, err := agent.New(model, &agent.Options{Instructions: task.Instructions, Store: runs, Tools: []lathe.Tool{
		tool.Func(task.FindOrder, task.FindOrderText, cfg.Tools.FindOrder, &tool.FuncOptions{Effect: lathe.ReadOnly}),
		tool.Func(task.Refund, task.RefundText, cfg.Tools.Refund, &tool.FuncOptions{Effect: lathe.Writes}), // the policy asks
		tool.Func(task.Status, task.StatusText, cfg.Tools.Status, &tool.FuncOptions{Effect: lathe.ReadOnly}),
	}})
	if err != nil {
		return nil, err
	}
	_, err = a.Recover(ctx)
	return &assistant{a}, err
}

func (a *assistant) Ask(ctx context.Context, question string, out io.Writer) error {
	for e, err := range a.agent.Stream(context.WithoutCancel(ctx), lathe.User(question)) {
		if errors.Is(err, agent.ErrWaiting) {
			return nil
		}
		if err != nil {
			return err
		}
		if d, ok := e.Data.(*event.TextDelta); ok {
			_, _ = io.WriteString(out, d.Text)
		}
	}
	return nil
}

func (a *assistant) Waiting(ctx context.Context) (calls []task.Call, err error) {
	waiting, err := a.agent.Waiting(ctx)
	for _, r := range waiting {
		calls = append(calls, task.Call{ID: r.Digest, Run: r.RunID, Tool: r.Tool, Arguments: string(r.Arguments)})
	}
	return calls, err
}

func (a *assistant) Decide(ctx context.Context, id string, approved bool, out io.Writer) error {
	decide := a.agent.Deny
	if approved {
		decide = a.agent.Approve
	}
	waiting, err := a.agent.Waiting(ctx)
	if err != nil {
		return err
	}
	if err := decide(ctx, id, "ann"); err != nil {
		return err
	}
	for _, r := range waiting {
		if r.Digest == id {
			return a.Continue(ctx, r.RunID, out)
		}
	}
	return nil
}

func (a *assistant) Continue(ctx context.Context, run string, out io.Writer) error {
	res, err := a.agent.Wait(ctx, run)
	if err != nil && !errors.Is(err, agent.ErrWaiting) {
		return err
	}
	_, err = io.WriteString(out, res.Answer)
	return err
}

func main() { task.Serve(open) }

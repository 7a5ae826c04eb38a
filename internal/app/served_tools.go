package app

import (
	"context"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/internal/audit"
	"github.com/lathe-run/lathe/tool"
)

// servedTools are the tools of a revision and the runner that calls them.
type servedTools struct {
	set    *tool.Set
	runner *tool.Runner
	trail  *audit.Log // nil: there is no audit log
}

// Specs implements [server.Tools].
func (t servedTools) Specs() []*lathe.ToolSpec { return t.set.SharedSpecs() }

// Advertised implements [server.Tools].
func (t servedTools) Advertised(run *lathe.RunInfo, allow []string) []*lathe.ToolSpec {
	work := t.runner.Begin(run, &tool.RunOptions{Allow: allow})
	return work.Specs()
}

// Execute implements [server.Tools].
func (t servedTools) Execute(ctx context.Context, run *lathe.RunInfo, allow []string, limits lathe.Limits, call lathe.ToolCall, emit func(event.Data)) (lathe.ToolResult, error) {
	limits, _ = t.runner.Limits().Narrow(limits)
	work := t.runner.Begin(run, &tool.RunOptions{Allow: allow, Limits: &limits})
	msg := lathe.Message{Role: lathe.RoleAssistant, Parts: []lathe.Part{call}}
	work.Adopt(&msg)
	if t.trail != nil {
		emit = audited(ctx, t.trail, run, emit)
	}
	out := work.Execute(ctx, 1, []tool.Call{{ToolCall: msg.Calls()[0]}}, emit)
	if r, ok := out.Result(); ok {
		return r, nil
	}
	return lathe.ToolResult{}, lathe.CodeApprovalDenied.Wrap("serve: call a tool", lathe.ErrPending)
}

// Command eino is the task with the agent of eino, and with the two middlewares that its quickstart shows: one interrupts calls that need
// an approval, the other returns errors of tools to the model.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	"github.com/google/uuid"
	"github.com/lathe-run/lathe/bench/frameworks/task"
	"github.com/lathe-run/lathe/bench/frameworks/task/files"
)

// Types of checkpoints are registered for gob.
func init() {
	schema.Register[*approvalInfo]()
	schema.Register[*approvalResult]()
}

type approvalInfo struct{ ToolName, Arguments string }

type approvalResult struct{ Approved bool }

// approvals interrupts each refund.
type approvals struct {
	*adk.BaseChatModelAgentMiddleware
}

func (approvals) WrapInvokableToolCall(_ context.Context, next adk.InvokableToolCallEndpoint, tc *adk.ToolContext) (adk.InvokableToolCallEndpoint, error) {
	if tc.Name != task.Refund {
		return next, nil
	}
	return func(ctx context.Context, args string, opts ...tool.Option) (string, error) {
		interrupted, _, stored := tool.GetInterruptState[string](ctx)
		if !interrupted {
			return "", tool.StatefulInterrupt(ctx, &approvalInfo{tc.Name, args}, args)
		}
		target, hasData, decision := tool.GetResumeContext[*approvalResult](ctx)
		if !target || !hasData {
			return "", tool.StatefulInterrupt(ctx, &approvalInfo{tc.Name, stored}, stored)
		}
		if !decision.Approved {
			return task.Refused, nil
		}
		return next(ctx, stored, opts...)
	}, nil
}

// toolErrors returns errors of tools as results.
type toolErrors struct {
	*adk.BaseChatModelAgentMiddleware
}

func (toolErrors) WrapInvokableToolCall(_ context.Context, next adk.InvokableToolCallEndpoint, _ *adk.ToolContext) (adk.InvokableToolCallEndpoint, error) {
	return func(ctx context.Context, args string, opts ...tool.Option) (string, error) {
		result, err := next(ctx, args, opts...)
		if err == nil {
			return result, nil
		}
		if _, ok := compose.IsInterruptRerunError(err); ok {
			return "", err
		}
		return fmt.Sprintf("[tool error] %v", err), nil
	}, nil
}

// checkpoints are the states of interrupted runs, as files.
type checkpoints struct{ files.Folder[[]byte] }

func (c checkpoints) Set(_ context.Context, id string, data []byte) error { return c.Put(id, data) }

func (c checkpoints) Get(_ context.Context, id string) ([]byte, bool, error) {
	data, err := c.Folder.Get(id)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	return data, err == nil, err
}

type assistant struct {
	runner *adk.Runner
	waits  files.Folder[wait] // interrupted runs by id of their checkpoint
}

type wait struct {
	Interrupt string // id of the interrupt, for the resumption
	Info      approvalInfo
}

func open(ctx context.Context, cfg *task.Config) (task.Assistant, error) {
	model, err := openai.NewChatModel(ctx, &openai.ChatModelConfig{APIKey: "none", BaseURL: cfg.ModelURL + "/v1", Model: cfg.Model})
	if err != nil {
		return nil, err
	}
	find, err := utils.InferTool(task.FindOrder, task.FindOrderText, cfg.Tools.FindOrder)
	if err != nil {
		return nil, err
	}
	refund, err := utils.InferTool(task.Refund, task.RefundText, cfg.Tools.Refund)
	if err != nil {
		return nil, err
	}
	status, err := utils.InferTool(task.Status, task.StatusText, cfg.Tools.Status)
	if err != nil {
		return nil, err
	}
	agent, err := adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{
		Name: "orders", Description: "Answers questions about orders.", Instruction: task.Instructions, Model: model,
		ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{find, refund, status}}},
		Handlers:    []adk.ChatModelAgentMiddleware{approvals{}, toolErrors{}},
	})
	if err != nil {
		return nil, err
	}
	runner := adk.NewRunner(ctx, adk.RunnerConfig{Agent: agent, EnableStreaming: true,
		CheckPointStore: checkpoints{files.Folder[[]byte](filepath.Join(cfg.State, "checkpoints"))}})
	return &assistant{runner, files.Folder[wait](filepath.Join(cfg.State, "waits"))}, nil
}

func (a *assistant) Ask(ctx context.Context, question string, out io.Writer) error {
	id := uuid.NewString()
	_, err := a.follow(id, a.runner.Query(ctx, question, adk.WithCheckPointID(id)), out)
	return err
}

// follow writes the text of a run. If the run is interrupted, it stores what a person needs to decide, and returns true.
func (a *assistant) follow(id string, events *adk.AsyncIterator[*adk.AgentEvent], out io.Writer) (waits bool, err error) {
	for event, ok := events.Next(); ok; event, ok = events.Next() {
		if event.Err != nil {
			return false, event.Err
		}
		if event.Output != nil && event.Output.MessageOutput != nil && event.Output.MessageOutput.Role == schema.Assistant {
			if err := write(event.Output.MessageOutput, out); err != nil {
				return false, err
			}
		}
		if event.Action == nil || event.Action.Interrupted == nil {
			continue
		}
		for _, ic := range event.Action.Interrupted.InterruptContexts {
			if info, ok := ic.Info.(*approvalInfo); ok && ic.IsRootCause {
				waits = true
				if err := a.waits.Put(id, wait{ic.ID, *info}); err != nil {
					return true, err
				}
			}
		}
	}
	return waits, nil
}

func write(m *adk.MessageVariant, out io.Writer) error {
	if !m.IsStreaming {
		_, err := io.WriteString(out, m.Message.Content)
		return err
	}
	for {
		chunk, err := m.MessageStream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		_, _ = io.WriteString(out, chunk.Content)
	}
}

func (a *assistant) Waiting(context.Context) (calls []task.Call, err error) {
	all, err := a.waits.All()
	for id, w := range all {
		calls = append(calls, task.Call{ID: id, Run: id, Tool: w.Info.ToolName, Arguments: w.Info.Arguments})
	}
	return calls, err
}

func (a *assistant) Decide(ctx context.Context, id string, approved bool, out io.Writer) error {
	w, err := a.waits.Get(id)
	if err != nil {
		return err
	}
	events, err := a.runner.ResumeWithParams(ctx, id, &adk.ResumeParams{Targets: map[string]any{w.Interrupt: &approvalResult{approved}}})
	if err != nil {
		return err
	}
	if waits, err := a.follow(id, events, out); err != nil || waits {
		return err
	}
	return a.waits.Delete(id)
}

func main() { task.Serve(open) }

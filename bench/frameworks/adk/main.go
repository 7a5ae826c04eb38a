// Command adk is the task with ADK for Go, its confirmations and its sessions in SQLite.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"

	"github.com/glebarez/sqlite"
	"github.com/lathe-run/lathe/bench/frameworks/task"
	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model/gemini"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/session/database"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/adk/v2/tool/toolconfirmation"
	"google.golang.org/genai"
)

const app, user = "orders", "ann"

type assistant struct {
	runner   *runner.Runner
	sessions session.Service
}

// A result is the output of a tool, which must be an object.
type result struct {
	Result string `json:"result"`
}

func function[In any](name, text string, confirm bool, f func(context.Context, In) (string, error)) (tool.Tool, error) {
	return functiontool.New(functiontool.Config{Name: name, Description: text, RequireConfirmation: confirm},
		func(ctx agent.Context, in In) (result, error) {
			out, err := f(ctx, in)
			return result{out}, err
		})
}

func open(ctx context.Context, cfg *task.Config) (task.Assistant, error) {
	model, err := gemini.NewModel(ctx, cfg.Model, &genai.ClientConfig{APIKey: "none", Backend: genai.BackendGeminiAPI,
		HTTPOptions: genai.HTTPOptions{BaseURL: cfg.ModelURL}})
	if err != nil {
		return nil, err
	}
	find, err := function(task.FindOrder, task.FindOrderText, false, cfg.Tools.FindOrder)
	if err != nil {
		return nil, err
	}
	refund, err := function(task.Refund, task.RefundText, true, cfg.Tools.Refund)
	if err != nil {
		return nil, err
	}
	status, err := function(task.Status, task.StatusText, false, cfg.Tools.Status)
	if err != nil {
		return nil, err
	}
	orders, err := llmagent.New(llmagent.Config{Name: app, Model: model, Instruction: task.Instructions, Tools: []tool.Tool{find, refund, status}})
	if err != nil {
		return nil, err
	}
	sessions, err := database.NewSessionService(sqlite.Open(filepath.Join(cfg.State, "sessions.db")))
	if err != nil {
		return nil, err
	}
	if err := database.AutoMigrate(sessions); err != nil {
		return nil, err
	}
	r, err := runner.New(runner.Config{AppName: app, Agent: orders, SessionService: sessions})
	return &assistant{r, sessions}, err
}

func (a *assistant) Ask(ctx context.Context, question string, out io.Writer) error {
	s, err := a.sessions.Create(ctx, &session.CreateRequest{AppName: app, UserID: user})
	if err != nil {
		return err
	}
	return a.turn(ctx, s.Session.ID(), genai.NewContentFromText(question, genai.RoleUser), out)
}

func (a *assistant) turn(ctx context.Context, id string, content *genai.Content, out io.Writer) error {
	for event, err := range a.runner.Run(ctx, user, id, content, agent.RunConfig{StreamingMode: agent.StreamingModeSSE}) {
		if err != nil {
			return err
		}
		if event.ErrorCode != "" {
			return fmt.Errorf("%s: %s", event.ErrorCode, event.ErrorMessage)
		}
		if event.Partial && event.Content != nil {
			for _, part := range event.Content.Parts {
				_, _ = io.WriteString(out, part.Text)
			}
		}
	}
	return nil
}

// Waiting returns the requests for confirmation without an answer.
func (a *assistant) Waiting(ctx context.Context) (calls []task.Call, err error) {
	list, err := a.sessions.List(ctx, &session.ListRequest{AppName: app, UserID: user})
	if err != nil {
		return nil, err
	}
	for _, listed := range list.Sessions {
		s, err := a.sessions.Get(ctx, &session.GetRequest{AppName: app, UserID: user, SessionID: listed.ID()})
		if err != nil {
			return nil, err
		}
		open := map[string]task.Call{}
		for event := range s.Session.Events().All() {
			if event.Content == nil {
				continue
			}
			for _, part := range event.Content.Parts {
				if f := part.FunctionCall; f != nil && f.Name == toolconfirmation.FunctionCallName {
					original, err := toolconfirmation.OriginalCallFrom(f)
					if err != nil {
						return nil, err
					}
					arguments, _ := json.Marshal(original.Args)
					open[f.ID] = task.Call{ID: f.ID, Run: listed.ID(), Tool: original.Name, Arguments: string(arguments)}
				}
				if f := part.FunctionResponse; f != nil && f.Name == toolconfirmation.FunctionCallName {
					delete(open, f.ID)
				}
			}
		}
		for _, call := range open {
			calls = append(calls, call)
		}
	}
	return calls, nil
}

func (a *assistant) Decide(ctx context.Context, id string, approved bool, out io.Writer) error {
	waiting, err := a.Waiting(ctx)
	if err != nil {
		return err
	}
	for _, call := range waiting {
		if call.ID == id {
			return a.turn(ctx, call.Run, &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{
				ID: id, Name: toolconfirmation.FunctionCallName, Response: map[string]any{"confirmed": approved}}}}}, out)
		}
	}
	return fmt.Errorf("there is no request %s", id)
}

func main() { task.Serve(open) }

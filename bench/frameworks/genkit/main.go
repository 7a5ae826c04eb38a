// Command genkit is the task with the agents of Genkit for Go, which are in preview, and their store of files.
package main

import (
	"context"
	"io"
	"path/filepath"

	"github.com/firebase/genkit/go/ai"
	aix "github.com/firebase/genkit/go/ai/exp"
	"github.com/firebase/genkit/go/ai/exp/localstore"
	"github.com/firebase/genkit/go/ai/exp/tool"
	"github.com/firebase/genkit/go/genkit"
	genkitx "github.com/firebase/genkit/go/genkit/exp"
	"github.com/firebase/genkit/go/plugins/compat_oai"
	"github.com/lathe-run/lathe/bench/frameworks/task"
	"github.com/lathe-run/lathe/bench/frameworks/task/files"
)

// A confirmation is what a person decides.
type confirmation struct {
	Approved bool `json:"approved"`
}

type assistant struct {
	agent *aix.Agent[any]
	waits files.Folder[*ai.Part] // interrupted calls by session: the store of sessions has no list
}

func open(ctx context.Context, cfg *task.Config) (task.Assistant, error) {
	g := genkit.Init(ctx, genkit.WithExperimental(), genkit.WithPlugins(
		&compat_oai.OpenAICompatible{Provider: "local", APIKey: "none", BaseURL: cfg.ModelURL + "/v1"}))
	find := genkitx.DefineTool(g, task.FindOrder, task.FindOrderText, cfg.Tools.FindOrder)
	status := genkitx.DefineTool(g, task.Status, task.StatusText, cfg.Tools.Status)
	refund := genkitx.DefineInterruptibleTool(g, task.Refund, task.RefundText,
		func(ctx context.Context, in task.Order, decision *confirmation) (string, error) {
			if decision == nil {
				return "", tool.Interrupt(in)
			}
			if !decision.Approved {
				return task.Refused, nil
			}
			return cfg.Tools.Refund(ctx, in)
		})
	sessions, err := localstore.NewFileSessionStore[any](filepath.Join(cfg.State, "sessions"))
	if err != nil {
		return nil, err
	}
	agent := genkitx.DefineAgent(g, "orders", aix.InlinePrompt{
		ai.WithModelName("local/" + cfg.Model), ai.WithSystem(task.Instructions), ai.WithTools(find, refund, status),
	}, aix.WithSessionStore(sessions))
	return &assistant{agent, files.Folder[*ai.Part](filepath.Join(cfg.State, "waits"))}, nil
}

func (a *assistant) Ask(ctx context.Context, question string, out io.Writer) error {
	return a.turn(ctx, &aix.AgentInput{Message: ai.NewUserTextMessage(question)}, out)
}

// turn executes one turn of a session and stores a call that interrupts it.
func (a *assistant) turn(ctx context.Context, in *aix.AgentInput, out io.Writer, opts ...aix.InvocationOption[any]) error {
	conn, err := a.agent.Connect(ctx, opts...)
	if err != nil {
		return err
	}
	if err := conn.Send(in); err != nil {
		return err
	}
	if err := conn.Close(); err != nil {
		return err
	}
	var interrupted *ai.Part
	for chunk, err := range conn.Receive() {
		if err != nil {
			return err
		}
		if chunk.ModelChunk == nil {
			continue
		}
		_, _ = io.WriteString(out, chunk.ModelChunk.Text())
		for _, part := range chunk.ModelChunk.Content {
			if part.IsInterrupt() {
				interrupted = part
			}
		}
	}
	res, err := conn.Output()
	if err != nil {
		return err
	}
	if res.Error != nil {
		return res.Error
	}
	if interrupted != nil {
		return a.waits.Put(res.SessionID, interrupted)
	}
	return nil
}

func (a *assistant) Waiting(context.Context) (calls []task.Call, err error) {
	all, err := a.waits.All()
	for session, part := range all {
		in, _ := tool.InterruptAs[task.Order](part)
		calls = append(calls, task.Call{ID: session, Run: session, Tool: part.ToolRequest.Name, Arguments: in.Number})
	}
	return calls, err
}

func (a *assistant) Decide(ctx context.Context, session string, approved bool, out io.Writer) error {
	part, err := a.waits.Get(session)
	if err != nil {
		return err
	}
	restart, err := tool.Resume(part, confirmation{Approved: approved})
	if err != nil {
		return err
	}
	err = a.turn(ctx, &aix.AgentInput{Resume: &aix.ToolResume{Restart: []*ai.Part{restart}}}, out, aix.WithSessionID[any](session))
	if err != nil {
		return err
	}
	return a.waits.Delete(session)
}

func main() { task.Serve(open) }

// Command openai-compatible runs a prompt on any server of OpenAI's chat completions, with a tool
// that asks before it writes.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/event"
	"github.com/lathe-run/lathe/loop"
	"github.com/lathe-run/lathe/policy"
	"github.com/lathe-run/lathe/provider"
	"github.com/lathe-run/lathe/secret"
	"github.com/lathe-run/lathe/tool"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	prompt := cmp.Or(strings.Join(os.Args[1:], " "), "Add a note with the text buy milk.")
	if err := run(ctx, os.Stdout, os.Getenv, prompt); err != nil {
		log.Fatal(err)
	}
}

// run answers the prompt with the model that the environment names and writes what it says to w.
func run(ctx context.Context, w io.Writer, getenv func(string) string, prompt string) error {
	model, err := provider.OpenAI(cmp.Or(getenv("LATHE_MODEL"), "qwen3"), &provider.Options{
		BaseURL: cmp.Or(getenv("LATHE_BASE_URL"), "http://127.0.0.1:11434/v1"), // Ollama
		Key:     secret.New(getenv("LATHE_KEY")),
	})
	if err != nil {
		return err
	}
	defer model.CloseIdleConnections()

	tools, err := tool.NewSet(notes(w))
	if err != nil {
		return err
	}
	runner, err := tool.NewRunner(tools, &tool.Options{Policy: policy.Default(), Approver: printed{w}})
	if err != nil {
		return err
	}
	l, err := loop.New(model, runner, &loop.Options{Limits: lathe.Limits{MaxIterations: 4}})
	if err != nil {
		return err
	}
	in := &loop.Input{Messages: []lathe.Message{lathe.User(prompt)}}
	for e := range l.Run(ctx, in) {
		switch d := e.Data.(type) {
		case *event.TextDelta:
			fmt.Fprint(w, d.Text)
		case *event.ModelCallFinished:
			fmt.Fprintln(w)
		case *event.RunFinished:
			return loop.Failure(d.Result)
		default: // an event for another reader
		}
	}
	return nil
}

// notes is a tool that changes something, and says so: policy asks before it is called.
func notes(w io.Writer) lathe.Tool {
	type note struct {
		Text string `json:"text" jsonschema:"what to remember"`
	}
	return tool.Func("add_note", "Adds a note.", func(_ context.Context, in note) (map[string]bool, error) {
		fmt.Fprintf(w, "[note: %s]\n", in.Text)
		return map[string]bool{"saved": true}, nil
	}, &tool.FuncOptions{Effect: lathe.Writes, Show: []string{"saved"}})
}

// printed is an approver that prints each call and approves it. A real one asks a person.
type printed struct{ w io.Writer }

// Approve implements lathe.Approver.
func (p printed) Approve(_ context.Context, req *lathe.ApprovalRequest) (lathe.Approval, error) {
	fmt.Fprintf(p.w, "[approved: %s %s]\n", req.Tool.Name, req.Args)
	return lathe.Approval{Approved: true, By: "example", ReasonCode: "approved"}, nil
}

// Command openaigo is the task with openai-go: the loop, the approvals and their storage are the program's own.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"github.com/lathe-run/lathe/bench/frameworks/task"
	"github.com/lathe-run/lathe/bench/frameworks/task/files"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

const maxTurns = 10

type assistant struct {
	client        openai.Client
	cfg           *task.Config
	conversations files.Folder[conversation]
}

// A conversation is stored before it waits for an approval and after each model call.
type conversation struct {
	Messages []openai.ChatCompletionMessageParamUnion
	Open     []openai.ChatCompletionMessageToolCallUnion // calls of the last message without a result
	Waits    bool                                        // the first of them waits for an approval
}

func open(_ context.Context, cfg *task.Config) (task.Assistant, error) {
	client := openai.NewClient(option.WithAPIKey("none"), option.WithBaseURL(cfg.ModelURL+"/v1"))
	return &assistant{client, cfg, files.Folder[conversation](filepath.Join(cfg.State, "conversations"))}, nil
}

func tools() []openai.ChatCompletionToolUnionParam {
	function := func(name, text string, required ...string) openai.ChatCompletionToolUnionParam {
		properties := map[string]any{}
		for _, name := range required {
			properties[name] = map[string]any{"type": "string"}
		}
		return openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: name, Description: openai.String(text),
			Parameters: openai.FunctionParameters{"type": "object", "properties": properties, "required": append([]string{}, required...)}})
	}
	return []openai.ChatCompletionToolUnionParam{
		function(task.FindOrder, task.FindOrderText, "number"),
		function(task.Refund, task.RefundText, "number"),
		function(task.Status, task.StatusText),
	}
}

func (a *assistant) Ask(ctx context.Context, question string, out io.Writer) error {
	c := &conversation{Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(task.Instructions), openai.UserMessage(question)}}
	return a.run(ctx, uuid.NewString(), c, out)
}

// run calls the model and its tools until it answers or a call waits.
func (a *assistant) run(ctx context.Context, id string, c *conversation, out io.Writer) error {
	for range maxTurns {
		for len(c.Open) > 0 {
			call := c.Open[0]
			result, err := a.call(ctx, call.Function.Name, call.Function.Arguments, c)
			if c.Waits {
				return a.conversations.Put(id, *c)
			}
			if err != nil {
				result = "error: " + err.Error()
			}
			c.answer(result)
		}
		stream := a.client.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{Model: a.cfg.Model, Messages: c.Messages, Tools: tools()})
		acc := openai.ChatCompletionAccumulator{}
		for stream.Next() {
			chunk := stream.Current()
			acc.AddChunk(chunk)
			if len(chunk.Choices) > 0 {
				_, _ = io.WriteString(out, chunk.Choices[0].Delta.Content)
			}
		}
		if err := stream.Err(); err != nil {
			return err
		}
		if len(acc.Choices) == 0 {
			return errors.New("the model has sent nothing")
		}
		message := acc.Choices[0].Message
		c.Messages, c.Open = append(c.Messages, message.ToParam()), message.ToolCalls
		if err := a.conversations.Put(id, *c); err != nil {
			return err
		}
		if len(c.Open) == 0 {
			return nil
		}
	}
	return errors.New("too many turns")
}

// call executes a call. A refund is not executed but marked to wait.
func (a *assistant) call(ctx context.Context, name, arguments string, c *conversation) (string, error) {
	var in task.Order
	if err := json.NewDecoder(strings.NewReader(arguments)).Decode(&in); err != nil {
		return "", err
	}
	switch name {
	case task.FindOrder:
		return a.cfg.Tools.FindOrder(ctx, in)
	case task.Status:
		return a.cfg.Tools.Status(ctx, task.None{})
	case task.Refund:
		c.Waits = true
		return "", nil
	}
	return "", errors.New("there is no such tool")
}

// answer adds the result of the first open call.
func (c *conversation) answer(result string) {
	c.Messages = append(c.Messages, openai.ToolMessage(result, c.Open[0].ID))
	c.Open, c.Waits = c.Open[1:], false
}

func (a *assistant) Waiting(context.Context) (calls []task.Call, err error) {
	all, err := a.conversations.All()
	for id, c := range all {
		if c.Waits {
			calls = append(calls, task.Call{ID: id, Run: id, Tool: c.Open[0].Function.Name, Arguments: c.Open[0].Function.Arguments})
		}
	}
	return calls, err
}

func (a *assistant) Decide(ctx context.Context, id string, approved bool, out io.Writer) error {
	c, err := a.conversations.Get(id)
	if err != nil {
		return err
	}
	if !c.Waits {
		return errors.New("nothing waits in this conversation")
	}
	result := task.Refused
	if approved {
		var in task.Order
		if err := json.Unmarshal([]byte(c.Open[0].Function.Arguments), &in); err != nil {
			return err
		}
		if result, err = a.cfg.Tools.Refund(ctx, in); err != nil {
			result = "error: " + err.Error()
		}
	}
	c.answer(result)
	return a.run(ctx, id, &c, out)
}

func main() { task.Serve(open) }

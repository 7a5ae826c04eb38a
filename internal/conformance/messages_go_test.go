//go:build !one_sdk

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// messagesClient is anthropic-sdk-go of one major version, in one of messagesModes. Its history is JSON, which the types of each
// version read and write.
type messagesClient struct {
	mode    string
	history []json.RawMessage
	// send sends a request, and run has the tool runner execute the calls of the answers. They return the answers, and the message to add
	// to the history or all of it.
	send func(ctx context.Context, params []byte, stream bool) (answer string, added []byte, err error)
	run  func(ctx context.Context, params []byte, stream bool) (answers []string, history []byte, err error)
}

var messagesModes = []string{"whole", "stream", "runner", "streamed runner"}

func (c *messagesClient) add(role string, content any) {
	message, err := json.Marshal(map[string]any{"role": role, "content": content})
	if err != nil {
		panic(err) // it is texts
	}
	c.history = append(c.history, message)
}

func (c *messagesClient) user(text string) {
	c.add("user", []map[string]any{{"type": "text", "text": text}})
}

func (c *messagesClient) results(calls []call, output string) {
	var blocks []map[string]any
	for _, called := range calls {
		blocks = append(blocks, map[string]any{"type": "tool_result", "tool_use_id": called.ID, "content": []map[string]any{{"type": "text", "text": output}}})
	}
	c.add("user", blocks)
}

func (c *messagesClient) ask(ctx context.Context, model string, structured bool) (*wireAnswer, error) {
	request := map[string]any{"model": model, "max_tokens": 1000, "messages": c.history}
	if structured {
		request["output_config"] = map[string]any{"format": map[string]any{"type": "json_schema", "schema": answerSchema}}
	}
	stream := c.mode == "stream" || c.mode == "streamed runner"
	runs := c.mode == "runner" || c.mode == "streamed runner"
	if !runs {
		request["tools"] = []map[string]any{{"name": "weather", "input_schema": weatherSchema}}
	}
	params, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	if !runs {
		message, added, err := c.send(ctx, params, stream)
		if err != nil {
			return nil, err
		}
		c.history = append(c.history, added)
		return readMessage(message)
	}
	messages, history, err := c.run(ctx, params, stream)
	if err == nil && len(messages) == 0 {
		err = errors.New("the tool runner returned no answer")
	}
	if err != nil {
		return nil, err
	}
	var answers []*wireAnswer
	for _, message := range messages {
		a, err := readMessage(message)
		if err != nil {
			return nil, err
		}
		answers = append(answers, a)
	}
	last := answers[len(answers)-1]
	last.before = answers[:len(answers)-1]
	return last, json.Unmarshal(history, &c.history)
}

// readMessage reads the JSON of an answer, as the library keeps it.
func readMessage(raw string) (*wireAnswer, error) {
	var message struct {
		StopReason string `json:"stop_reason"`
		Usage      struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
		}
		Content []struct {
			Type, Text, Name, ID string
			Input, Content       json.RawMessage
			ToolUseID            string `json:"tool_use_id"`
		}
	}
	if err := json.Unmarshal([]byte(raw), &message); err != nil {
		return nil, fmt.Errorf("%w: %s", err, raw)
	}
	a := &wireAnswer{finish: message.StopReason, usage: message.Usage.Input + message.Usage.Output}
	uses := map[string]string{}
	for i := range message.Content {
		block := &message.Content[i]
		switch block.Type {
		case "text":
			a.text += block.Text
		case "tool_use":
			a.calls = append(a.calls, call{block.Name, string(block.Input), block.ID})
		case "mcp_tool_use":
			uses[block.ID] = block.Name
		case "mcp_tool_result":
			var content []struct{ Text string }
			if err := json.Unmarshal(block.Content, &content); err != nil || len(content) != 1 {
				return nil, errors.New("an mcp_tool_result without one text")
			}
			a.server = append(a.server, uses[block.ToolUseID]+" "+content[0].Text)
		}
	}
	return a, nil
}

package conformance

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

// messagesClient is anthropic-sdk-go.
type messagesClient struct {
	client   anthropic.Client
	stream   bool
	messages []anthropic.MessageParam
}

func newMessagesClient(base string, stream bool) *messagesClient {
	return &messagesClient{client: anthropic.NewClient(option.WithAPIKey("k"), option.WithBaseURL(base), option.WithMaxRetries(0)), stream: stream}
}

func (c *messagesClient) user(text string) {
	c.messages = append(c.messages, anthropic.NewUserMessage(anthropic.NewTextBlock(text)))
}

func (c *messagesClient) results(calls []call, output string) {
	var blocks []anthropic.ContentBlockParamUnion
	for _, called := range calls {
		blocks = append(blocks, anthropic.NewToolResultBlock(called.ID, output, false))
	}
	c.messages = append(c.messages, anthropic.NewUserMessage(blocks...))
}

func (c *messagesClient) ask(ctx context.Context, model string, structured bool) (*wireAnswer, error) {
	p := anthropic.MessageNewParams{Model: anthropic.Model(model), MaxTokens: 1000, Messages: c.messages,
		Tools: []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{Properties: weatherSchema["properties"], Required: []string{"city"}}, "weather")}}
	if structured {
		p.OutputConfig.Format.Schema = answerSchema
	}
	var message *anthropic.Message
	var err error
	if c.stream {
		message, err = c.streamed(ctx, p)
	} else {
		message, err = c.client.Messages.New(ctx, p)
	}
	if err != nil {
		return nil, err
	}
	a := &wireAnswer{finish: string(message.StopReason), usage: message.Usage.InputTokens + message.Usage.OutputTokens}
	uses := map[string]string{}
	for i := range message.Content {
		block := &message.Content[i]
		switch block.Type {
		case "text":
			a.text += block.Text
		case "tool_use":
			a.calls = append(a.calls, call{block.Name, string(block.Input), block.ID})
		case "mcp_tool_use": // which the library has in its beta only, and keeps as it came
			uses[block.ID] = block.Name
		case "mcp_tool_result":
			var result struct {
				Content []struct{ Text string }
			}
			if err := json.Unmarshal([]byte(block.RawJSON()), &result); err != nil || len(result.Content) != 1 {
				return nil, errors.New("an mcp_tool_result without one text")
			}
			a.server = append(a.server, uses[block.ToolUseID]+" "+result.Content[0].Text)
		}
	}
	c.messages = append(c.messages, message.ToParam())
	return a, nil
}

// streamed reads a stream with the library's accumulator.
func (c *messagesClient) streamed(ctx context.Context, p anthropic.MessageNewParams) (*anthropic.Message, error) {
	s := c.client.Messages.NewStreaming(ctx, p)
	defer s.Close()
	message, ended := &anthropic.Message{}, false
	for s.Next() {
		e := s.Current()
		if err := message.Accumulate(e); err != nil {
			return nil, err
		}
		ended = ended || e.Type == "message_stop"
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	if !ended {
		return nil, errors.New("the stream has no message_stop")
	}
	return message, nil
}

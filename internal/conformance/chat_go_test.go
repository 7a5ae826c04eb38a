package conformance

import (
	"context"
	"errors"

	"github.com/openai/openai-go/v3"
)

// chatClient is openai-go with chat completions.
type chatClient struct {
	client   openai.Client
	stream   bool
	messages []openai.ChatCompletionMessageParamUnion
}

func newChatClient(_ context.Context, base, mode string) (wireClient, error) {
	return &chatClient{client: newOpenAI(base), stream: mode == "stream"}, nil
}

func (c *chatClient) user(text string) { c.messages = append(c.messages, openai.UserMessage(text)) }

func (c *chatClient) results(calls []call, output string) {
	for _, called := range calls {
		c.messages = append(c.messages, openai.ToolMessage(output, called.ID))
	}
}

func (c *chatClient) ask(ctx context.Context, model string, structured bool) (*wireAnswer, error) {
	p := openai.ChatCompletionNewParams{Model: model, Messages: c.messages,
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "weather", Parameters: weatherSchema})}}
	if structured {
		p.ResponseFormat.OfJSONSchema = &openai.ResponseFormatJSONSchemaParam{JSONSchema: openai.ResponseFormatJSONSchemaJSONSchemaParam{Name: "answer", Schema: answerSchema}}
	}
	var completion *openai.ChatCompletion
	var err error
	if c.stream {
		completion, err = c.streamed(ctx, p)
	} else {
		completion, err = c.client.Chat.Completions.New(ctx, p)
	}
	if err != nil {
		return nil, refusal(err)
	}
	choice := &completion.Choices[0]
	a := &wireAnswer{text: choice.Message.Content, finish: choice.FinishReason, usage: completion.Usage.TotalTokens}
	for _, tc := range choice.Message.ToolCalls {
		a.calls = append(a.calls, call{tc.Function.Name, tc.Function.Arguments, tc.ID})
	}
	c.messages = append(c.messages, choice.Message.ToParam())
	return a, nil
}

// streamed reads a stream with the library's accumulator.
func (c *chatClient) streamed(ctx context.Context, p openai.ChatCompletionNewParams) (*openai.ChatCompletion, error) {
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	s := c.client.Chat.Completions.NewStreaming(ctx, p)
	defer s.Close()
	var acc openai.ChatCompletionAccumulator
	for s.Next() {
		if !acc.AddChunk(s.Current()) {
			return nil, errors.New("the accumulator refused a chunk")
		}
	}
	return &acc.ChatCompletion, s.Err()
}

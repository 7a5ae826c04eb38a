package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	einomodel "github.com/cloudwego/eino-ext/components/model/openai"
	einotool "github.com/cloudwego/eino/components/tool"
	einoutils "github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	einoschema "github.com/cloudwego/eino/schema"
	openaigo "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	goopenai "github.com/sashabaranov/go-openai"
	"github.com/tmc/langchaingo/llms"
	lcopenai "github.com/tmc/langchaingo/llms/openai"
)

// A contender prepares a run of the variant against a client and a base URL.
type contender struct {
	name string
	make func(v variant, client *http.Client, base string) (func() error, error)
}

var errWrong = errors.New("the run gave a wrong answer")

func checkAnswer(got string) error {
	if got != answer {
		return errWrong
	}
	return nil
}

func runOpenAIGo(v variant, client *http.Client, base string) (func() error, error) {
	c := openaigo.NewClient(option.WithAPIKey("k"), option.WithBaseURL(base), option.WithHTTPClient(client), option.WithMaxRetries(0))
	tools := []openaigo.ChatCompletionToolUnionParam{openaigo.ChatCompletionFunctionTool(openaigo.FunctionDefinitionParam{
		Name: toolName, Description: openaigo.String("Looks a key up."),
		Parameters: openaigo.FunctionParameters{"type": "object", "properties": map[string]any{"key": map[string]any{"type": "string"}, "n": map[string]any{"type": "integer"}}, "required": []string{"key", "n"}, "additionalProperties": false},
	})}
	return func() error {
		ctx := context.Background()
		p := openaigo.ChatCompletionNewParams{Model: "gpt-4o-mini", Tools: tools, Messages: []openaigo.ChatCompletionMessageParamUnion{openaigo.UserMessage(prompt)}}
		for range v.rounds + 1 {
			var msg openaigo.ChatCompletionMessage
			if v.stream {
				s := c.Chat.Completions.NewStreaming(ctx, p)
				acc := openaigo.ChatCompletionAccumulator{}
				for s.Next() {
					acc.AddChunk(s.Current())
				}
				if err := s.Err(); err != nil {
					return err
				}
				msg = acc.Choices[0].Message
			} else {
				r, err := c.Chat.Completions.New(ctx, p)
				if err != nil {
					return err
				}
				msg = r.Choices[0].Message
			}
			if len(msg.ToolCalls) == 0 {
				return checkAnswer(msg.Content)
			}
			p.Messages = append(p.Messages, msg.ToParam())
			for _, tc := range msg.ToolCalls {
				p.Messages = append(p.Messages, openaigo.ToolMessage(toolResult, tc.ID))
			}
		}
		return errWrong
	}, nil
}

func runGoOpenAI(v variant, client *http.Client, base string) (func() error, error) {
	cfg := goopenai.DefaultConfig("k")
	cfg.BaseURL, cfg.HTTPClient = base, client
	c := goopenai.NewClientWithConfig(cfg)
	tools := []goopenai.Tool{{Type: goopenai.ToolTypeFunction, Function: &goopenai.FunctionDefinition{Name: toolName, Description: "Looks a key up.",
		Parameters: map[string]any{"type": "object", "properties": map[string]any{"key": map[string]any{"type": "string"}, "n": map[string]any{"type": "integer"}}, "required": []string{"key", "n"}, "additionalProperties": false}}}}
	return func() error {
		ctx := context.Background()
		req := goopenai.ChatCompletionRequest{Model: "gpt-4o-mini", Tools: tools, Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: prompt}}, Stream: v.stream}
		for range v.rounds + 1 {
			var msg goopenai.ChatCompletionMessage
			if v.stream {
				s, err := c.CreateChatCompletionStream(ctx, req)
				if err != nil {
					return err
				}
				var text strings.Builder
				msg.Role = "assistant"
				for {
					ch, err := s.Recv()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						return err
					}
					if len(ch.Choices) == 0 {
						continue
					}
					text.WriteString(ch.Choices[0].Delta.Content)
					for _, tc := range ch.Choices[0].Delta.ToolCalls {
						for len(msg.ToolCalls) <= *tc.Index {
							msg.ToolCalls = append(msg.ToolCalls, goopenai.ToolCall{Type: goopenai.ToolTypeFunction})
						}
						m := &msg.ToolCalls[*tc.Index]
						if tc.ID != "" {
							m.ID, m.Function.Name = tc.ID, tc.Function.Name
						}
						m.Function.Arguments += tc.Function.Arguments
					}
				}
				s.Close()
				msg.Content = text.String()
			} else {
				r, err := c.CreateChatCompletion(ctx, req)
				if err != nil {
					return err
				}
				msg = r.Choices[0].Message
			}
			if len(msg.ToolCalls) == 0 {
				return checkAnswer(msg.Content)
			}
			req.Messages = append(req.Messages, msg)
			for _, tc := range msg.ToolCalls {
				req.Messages = append(req.Messages, goopenai.ChatCompletionMessage{Role: "tool", Content: toolResult, ToolCallID: tc.ID})
			}
		}
		return errWrong
	}, nil
}

type lookupIn struct {
	Key string `json:"key"`
	N   int    `json:"n"`
}

type lookupOut struct {
	OK bool `json:"ok"`
}

func runEino(v variant, client *http.Client, base string) (func() error, error) {
	ctx := context.Background()
	m, err := einomodel.NewChatModel(ctx, &einomodel.ChatModelConfig{APIKey: "k", BaseURL: base, Model: "gpt-4o-mini", HTTPClient: client})
	if err != nil {
		return nil, err
	}
	t, err := einoutils.InferTool(toolName, "Looks a key up.", func(context.Context, *lookupIn) (*lookupOut, error) { return &lookupOut{true}, nil })
	if err != nil {
		return nil, err
	}
	agent, err := react.NewAgent(ctx, &react.AgentConfig{ToolCallingModel: m, MaxStep: 4*v.rounds + 10,
		ToolsConfig: compose.ToolsNodeConfig{Tools: []einotool.BaseTool{t}}})
	if err != nil {
		return nil, err
	}
	return func() error {
		in := []*einoschema.Message{einoschema.UserMessage(prompt)}
		if !v.stream {
			out, err := agent.Generate(ctx, in)
			if err != nil {
				return err
			}
			return checkAnswer(out.Content)
		}
		s, err := agent.Stream(ctx, in)
		if err != nil {
			return err
		}
		defer s.Close()
		var text strings.Builder
		for {
			msg, err := s.Recv()
			if errors.Is(err, io.EOF) {
				return checkAnswer(text.String())
			}
			if err != nil {
				return err
			}
			text.WriteString(msg.Content)
		}
	}, nil
}

func runLangchain(v variant, client *http.Client, base string) (func() error, error) {
	m, err := lcopenai.New(lcopenai.WithToken("k"), lcopenai.WithBaseURL(base), lcopenai.WithModel("gpt-4o-mini"), lcopenai.WithHTTPClient(client))
	if err != nil {
		return nil, err
	}
	tools := []llms.Tool{{Type: "function", Function: &llms.FunctionDefinition{Name: toolName, Description: "Looks a key up.",
		Parameters: map[string]any{"type": "object", "properties": map[string]any{"key": map[string]any{"type": "string"}, "n": map[string]any{"type": "integer"}}, "required": []string{"key", "n"}}}}}
	return func() error {
		ctx := context.Background()
		msgs := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, prompt)}
		opts := []llms.CallOption{llms.WithTools(tools)}
		if v.stream {
			opts = append(opts, llms.WithStreamingFunc(func(context.Context, []byte) error { return nil }))
		}
		for range v.rounds + 1 {
			r, err := m.GenerateContent(ctx, msgs, opts...)
			if err != nil {
				return err
			}
			ch := r.Choices[0]
			if len(ch.ToolCalls) == 0 {
				return checkAnswer(ch.Content)
			}
			am := llms.MessageContent{Role: llms.ChatMessageTypeAI}
			for _, tc := range ch.ToolCalls {
				am.Parts = append(am.Parts, tc)
			}
			msgs = append(msgs, am)
			for _, tc := range ch.ToolCalls {
				msgs = append(msgs, llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{llms.ToolCallResponse{ToolCallID: tc.ID, Name: toolName, Content: toolResult}}})
			}
		}
		return errWrong
	}, nil
}

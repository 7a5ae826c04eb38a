//go:build !one_sdk

package conformance

import (
	"context"
	"encoding/json"
	"errors"

	"google.golang.org/genai"
)

// geminiClient is google.golang.org/genai.
type geminiClient struct {
	client   *genai.Client
	stream   bool
	contents []*genai.Content
}

func newGeminiClient(ctx context.Context, base, mode string) (wireClient, error) {
	client, err := genai.NewClient(ctx, &genai.ClientConfig{APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: base}})
	return &geminiClient{client: client, stream: mode == "stream"}, err
}

func (c *geminiClient) user(text string) {
	c.contents = append(c.contents, genai.NewContentFromText(text, genai.RoleUser))
}

func (c *geminiClient) results(calls []call, output string) {
	var parts []*genai.Part
	for _, called := range calls {
		parts = append(parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: called.ID, Name: called.Name, Response: map[string]any{"output": output}}})
	}
	c.contents = append(c.contents, genai.NewContentFromParts(parts, genai.RoleUser))
}

func (c *geminiClient) ask(ctx context.Context, model string, structured bool) (*wireAnswer, error) {
	config := &genai.GenerateContentConfig{Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: "weather", ParametersJsonSchema: weatherSchema}}}}}
	if structured {
		config.ResponseMIMEType, config.ResponseJsonSchema = "application/json", answerSchema
	}
	var response *genai.GenerateContentResponse
	var err error
	if c.stream {
		response, err = c.streamed(ctx, model, config)
	} else {
		response, err = c.client.Models.GenerateContent(ctx, model, c.contents, config)
	}
	if err != nil {
		return nil, err
	}
	if len(response.Candidates) != 1 || response.Candidates[0].Content == nil {
		return nil, errors.New("an answer without one candidate")
	}
	a := &wireAnswer{finish: string(response.Candidates[0].FinishReason), usage: int64(response.UsageMetadata.TotalTokenCount)}
	for _, part := range response.Candidates[0].Content.Parts {
		if !part.Thought {
			a.text += part.Text
		}
	}
	for _, called := range response.FunctionCalls() {
		args, err := json.Marshal(called.Args)
		if err != nil {
			return nil, err
		}
		a.calls = append(a.calls, call{called.Name, string(args), called.ID})
	}
	c.contents = append(c.contents, response.Candidates[0].Content)
	return a, nil
}

// streamed makes one answer of the chunks of a stream.
func (c *geminiClient) streamed(ctx context.Context, model string, config *genai.GenerateContentConfig) (*genai.GenerateContentResponse, error) {
	content := &genai.Content{Role: genai.RoleModel}
	var last *genai.GenerateContentResponse
	for chunk, err := range c.client.Models.GenerateContentStream(ctx, model, c.contents, config) {
		if err != nil {
			return nil, err
		}
		if last = chunk; len(chunk.Candidates) > 0 && chunk.Candidates[0].Content != nil {
			content.Parts = append(content.Parts, chunk.Candidates[0].Content.Parts...)
		}
	}
	if last == nil || len(last.Candidates) == 0 || last.Candidates[0].FinishReason == "" {
		return nil, errors.New("the stream has no finish reason")
	}
	last.Candidates[0].Content = content
	return last, nil
}

package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
)

// A wireClient is an official library for Go in one of its ways to ask, with the history of one dialogue.
type wireClient interface {
	user(text string)
	// ask sends the history, and appends the answer to it.
	ask(ctx context.Context, model string, structured bool) (*wireAnswer, error)
	results(calls []call, output string)
}

// A wireAnswer is what the library made of an answer.
type wireAnswer struct {
	text   string
	calls  []call
	server []string
	finish string
	usage  int64
}

// answerSchema is the schema of the structured answer.
var answerSchema = map[string]any{"type": "object", "properties": map[string]any{"answer": map[string]any{"type": "integer"}},
	"required": []string{"answer"}, "additionalProperties": false}

// weatherSchema is the schema of the client's own tool.
var weatherSchema = map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"}}

// converse holds the dialogue of a case.
func (c *wireCase) converse(ctx context.Context, name string, client wireClient) *wireOutcome {
	o := &wireOutcome{outcome: outcome{Client: name, Model: c.name}}
	client.user("Go on.")
	more := c.name == "again"
	for range 4 {
		a, err := client.ask(ctx, c.name, c.name == "structured")
		if err != nil {
			o.Error = err.Error()
			return o
		}
		o.Finish, o.Content, o.Usage = append(o.Finish, a.finish), a.text, o.Usage+a.usage
		o.Calls, o.Server = append(o.Calls, a.calls...), append(o.Server, a.server...)
		switch {
		case len(a.calls) > 0:
			client.results(a.calls, "rain")
		case more:
			more = false
			client.user("Tell me more.")
		default:
			if c.name == "structured" {
				if err := json.Unmarshal([]byte(a.text), &o.Parsed); err != nil {
					o.Error = err.Error()
				}
			}
			return o
		}
	}
	o.Error = "no answer after four turns"
	return o
}

// TestGoWires runs the same dialogues with the official Go libraries, whole and streamed.
func TestGoWires(t *testing.T) {
	base := wireServer(t)
	for _, client := range []struct {
		name  string
		words wireWords
		open  func(stream bool) (wireClient, error)
	}{
		{"openai-go responses", responsesWords, func(stream bool) (wireClient, error) { return newResponsesClient(base, stream), nil }},
		{"anthropic-sdk-go", messagesWords, func(stream bool) (wireClient, error) { return newMessagesClient(base, stream), nil }},
		{"google.golang.org/genai", geminiWords, func(stream bool) (wireClient, error) { return newGeminiClient(t.Context(), base, stream) }},
	} {
		for _, stream := range []bool{false, true} {
			for i := range wireCases {
				c := &wireCases[i]
				name := fmt.Sprintf("%s stream=%t", client.name, stream)
				t.Run(name+" "+c.name, func(t *testing.T) {
					t.Parallel()
					own, err := client.open(stream)
					if err != nil {
						t.Fatal(err)
					}
					c.check(t, c.converse(t.Context(), name, own), client.words)
				})
			}
		}
	}
}

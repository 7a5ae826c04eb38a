package conformance

import (
	"context"
	"encoding/json"
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
	before []*wireAnswer // those to which a tool runner of the library replied
	text   string
	calls  []call
	server []string
	finish string
	usage  int64
}

// answerSchema is the schema of the structured answer.
var answerSchema = map[string]any{"type": "object", "properties": map[string]any{"answer": map[string]any{"type": "integer"}},
	"required": []string{"answer"}, "additionalProperties": false}

// weatherJSON returns weatherSchema as JSON.
func weatherJSON() []byte {
	schema, err := json.Marshal(weatherSchema)
	if err != nil {
		panic(err) // it is words
	}
	return schema
}

// weatherSchema is the schema of the client's own tool.
var weatherSchema = map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"}}

// converse holds the dialogue of a case with its model behind a wire.
func (c *wireCase) converse(ctx context.Context, name, upstream string, client wireClient) *wireOutcome {
	o := &wireOutcome{outcome: outcome{Client: name, Model: c.name + "." + upstream}}
	client.user("Go on.")
	more := c.name == "again"
	for range 6 {
		a, err := client.ask(ctx, o.Model, c.name == "structured")
		if err != nil {
			o.Error = err.Error()
			return o
		}
		for _, one := range append(a.before, a) {
			o.Finish, o.Usage = append(o.Finish, one.finish), o.Usage+one.usage
			o.Calls, o.Server = append(o.Calls, one.calls...), append(o.Server, one.server...)
		}
		o.Content = a.text
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
	o.Error = "no answer after six turns"
	return o
}

// A goWire is an official library for Go, in each of its ways to ask.
type goWire struct {
	name  string
	wire  string // as a name of upstreamWires
	words wireWords
	modes []string
	open  func(ctx context.Context, base, mode string) (wireClient, error)
}

// goWires are those of openai-go and, without the tag one_sdk, the others: compiling them takes longer than their tests.
var goWires = []goWire{
	{"openai-go chat", "openai", chatWords, []string{"whole", "stream"}, newChatClient},
	{"openai-go responses", "responses", responsesWords, []string{"whole", "stream"}, newResponsesClient},
}

// TestGoWires runs the same dialogues with the official Go libraries, whole and streamed, and with their tool runners, on models
// behind each wire.
func TestGoWires(t *testing.T) {
	s := startWires(t)
	for _, client := range goWires {
		t.Run(client.name, func(t *testing.T) {
			for _, at := range s.cells(client.wire) {
				t.Run(at.name, func(t *testing.T) {
					t.Parallel()
					for _, mode := range client.modes {
						for _, c := range at.cases {
							own, err := client.open(t.Context(), at.base, mode)
							if err != nil {
								t.Fatal(err)
							}
							c.check(t, c.converse(t.Context(), client.name+" "+mode, at.upstream, own), client.words)
						}
					}
				})
			}
		})
	}
}

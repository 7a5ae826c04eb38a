package provider

import (
	"github.com/lathe-run/lathe"
)

// OpenAI returns a Chat for the named model on a server that is compatible with OpenAI's chat completions. See [New].
func OpenAI(model string, opts *Options) (*Chat, error) {
	return New(lathe.WireOpenAIChat, model, opts)
}

// Responses returns a Chat for the named model on a server that implements OpenAI's Responses or Open Responses. See [New].
func Responses(model string, opts *Options) (*Chat, error) {
	return New(lathe.WireResponses, model, opts)
}

// Anthropic returns a Chat for the named model on a server that implements Anthropic's Messages. See [New].
func Anthropic(model string, opts *Options) (*Chat, error) {
	return New(lathe.WireMessages, model, opts)
}

// Gemini returns a Chat for the named model on a server that implements Google's generateContent. See [New].
func Gemini(model string, opts *Options) (*Chat, error) { return New(lathe.WireGemini, model, opts) }

// vendors are the default labels of the provider in events and metrics.
var vendors = map[lathe.Wire]string{
	lathe.WireOpenAIChat: "openai", lathe.WireResponses: "openai", lathe.WireMessages: "anthropic", lathe.WireGemini: "gemini",
}

// answers are the names of an answer on each wire, for error messages.
var answers = map[lathe.Wire]string{
	lathe.WireOpenAIChat: "a chat completion", lathe.WireResponses: "a response of the Responses API",
	lathe.WireMessages: "a message of the Messages API", lathe.WireGemini: "an answer of generateContent",
}

// chunked is implemented by assemblers of wires on which the deltas of relayed bytes do not describe the bytes completely.
type chunked interface {
	UsageOnly() bool
	AppendShown(dst []lathe.Delta) []lathe.Delta
}

// lenient is implemented by assemblers that can end an answer after an error by which the server reports that it could not parse
// a call of the model.
type lenient interface {
	Unreadable(dst []lathe.Delta) ([]lathe.Delta, *lathe.Finish)
}

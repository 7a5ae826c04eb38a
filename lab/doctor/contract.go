package doctor

import (
	"github.com/lathe-run/lathe"
)

// A Contract is a test of whether a server obeys one request parameter, such as tool_choice. The parameter requires other calls than the
// prompt alone would cause.
type Contract struct {
	// Name is the name of the probe: choice-none, choice-required, choice-named or parallel-off.
	Name string
	// Prompt is the message of the user.
	Prompt string
	// NotOn lists the protocols that do not have the parameter.
	NotOn []lathe.Wire

	choice   lathe.ToolChoice
	parallel *bool
	kept     func(calls []lathe.ToolCall) bool
}

// Request returns the request of the test, without the name of a model. It belongs to the caller, except for its tools, which must not be
// changed.
func (c *Contract) Request() *lathe.Request {
	return &lathe.Request{Messages: []lathe.Message{lathe.User(c.Prompt)}, Tools: []*lathe.ToolSpec{getWeather, ping}, ToolChoice: c.choice, ParallelToolCalls: c.parallel}
}

// Kept reports whether an answer with these calls obeys the parameter.
func (c *Contract) Kept(calls []lathe.ToolCall) bool { return c.kept(calls) }

// Contracts returns all contracts. The slice belongs to the caller.
func Contracts() []Contract {
	return []Contract{
		{Name: "choice-required", Prompt: echoPrompt, choice: lathe.ToolChoice{Mode: lathe.ChoiceRequired}, kept: func(calls []lathe.ToolCall) bool { return len(calls) > 0 }},
		{Name: "choice-named", Prompt: WeatherPrompt, choice: lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: ping.Name},
			kept: func(calls []lathe.ToolCall) bool { return len(calls) > 0 && calls[0].Name == ping.Name }},
		{Name: "choice-none", Prompt: WeatherPrompt, choice: lathe.ToolChoice{Mode: lathe.ChoiceNone}, kept: func(calls []lathe.ToolCall) bool { return len(calls) == 0 }},
		{Name: "parallel-off", Prompt: cityPrompt, parallel: new(bool), NotOn: []lathe.Wire{lathe.WireGemini}, kept: func(calls []lathe.ToolCall) bool { return len(calls) <= 1 }},
	}
}

// contract returns the contract with that name. It panics if none exists.
func contract(name string) *Contract {
	for _, c := range Contracts() {
		if c.Name == name {
			return &c
		}
	}
	panic("doctor: no contract " + name)
}

// WeatherPrompt is a user message that asks for the weather of one city.
const WeatherPrompt = "What is the weather in Oslo?"

// Tools returns the tools that the requests of probes offer: weather has the parameter city, and nothing has no parameters. They must not
// be changed.
func Tools() (weather, nothing *lathe.ToolSpec) { return getWeather, ping }

// WithResult appends to req.Messages the model's message m, and a result with content for each of its calls.
func WithResult(req *lathe.Request, m lathe.Message, content string) {
	req.Messages = append(req.Messages, m)
	for _, c := range m.Calls() {
		req.Messages = append(req.Messages, lathe.Message{Role: lathe.RoleTool, Parts: []lathe.Part{lathe.ToolResult{CallID: c.ID, Name: c.Name, Content: content}}})
	}
}

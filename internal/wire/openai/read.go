package openai

import (
	"bytes"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A ChatRequest is a parsed request of a client.
type ChatRequest = wire.ClientRequest

// A reader parses one request.
type reader struct {
	wire.Reader
	called map[string]string // name by id of the calls so far, because results do not repeat names
}

// Names of the members that the codec reads, by object.
var (
	requestNames = rawjson.NewNames("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options",
		"temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "stop", "reasoning_effort", "response_format", "user", "n",
		"functions", "function_call", "lathe")
	optionNames  = rawjson.NewNames("include_usage", "include_obfuscation")
	formatNames  = rawjson.NewNames("type", "json_schema")
	choiceNames  = rawjson.NewNames("type", "function", "name")
	toolNames    = rawjson.NewNames("type", "function", "name", "description", "parameters")
	messageNames = rawjson.NewNames("role", "content", "name", "refusal", "tool_call_id", "tool_calls", "function_call",
		"reasoning_content", "reasoning", "thinking", "reasoning_details")
	callNames = rawjson.NewNames("id", "type", "function", "index", "name", "arguments")
	partNames = rawjson.NewNames("type", "text", "refusal", "image_url", "input_audio", "file", "video_url", "audio_url",
		"url", "detail", "data", "format", "filename", "file_id", "file_data")
)

// ParseRequest parses the body of a request like [ParseAny]. It also refuses forms that a [lathe.Request] cannot represent, and a tool
// choice that does not match the tools.
func ParseRequest(body []byte) (*ChatRequest, error) {
	req, err := ParseAny(body)
	if err != nil {
		return nil, err
	}
	if req.Foreign != nil {
		return nil, req.Foreign
	}
	if err := checkChoice(req); err != nil {
		return nil, err
	}
	return req, nil
}

// ParseAny parses the body of a request. It is strict where a mistake would change the meaning of the request, and stores unknown members;
// null is treated as absent. It accepts forms that a [lathe.Request] cannot represent but that a server can relay: ChatRequest.Foreign is
// set if there are any. It does not compare tool_choice with the tools. The error is an *[APIError] with status 400 that names the member
// at fault.
//
// A member whose name equals a name that Lathe reads only under Unicode case folding is refused: a model server that ignores case would use
// it instead of the member that was checked.
func ParseAny(body []byte) (*ChatRequest, error) {
	r := &reader{Reader: wire.NewReader(body), called: map[string]string{}}
	return r.ParseBody(requestNames, r.read)
}

func (r *reader) read(o wire.Object) {
	s := &r.Sampling
	r.Model, r.User, s.ReasoningEffort = o.OptString("model"), o.OptString("user"), o.OptString("reasoning_effort")
	s.Temperature, s.TopP, s.Seed = o.Float("temperature"), o.Float("top_p"), o.Int("seed")
	s.MaxTokens = o.Count("max_tokens")
	if n := o.Count("max_completion_tokens"); n != nil { // takes precedence over max_tokens
		s.MaxTokens = n
	}
	if n := o.Count("n"); n != nil {
		r.N = *n
	}
	switch rawjson.Kind(o.Get("stop")) {
	case 0:
	case '"':
		s.Stop = []string{o.String("stop")}
	case '[':
		s.Stop = o.Strings("stop")
	default:
		o.Fail("stop", "Must be a string or an array of strings.")
	}
	if format := o.OptObject("response_format"); format != nil {
		r.Object("response_format", format, formatNames)
		s.ResponseFormat = bytes.Clone(format)
	}
	r.Stream, r.ParallelToolCalls = o.Bool("stream"), o.OptBool("parallel_tool_calls")
	if o.Get("stream_options") != nil {
		options := o.Object("stream_options", optionNames)
		r.IncludeUsage, r.Obfuscate = options.Bool("include_usage"), options.Bool("include_obfuscation")
		options.DropRest()
	}
	for _, name := range [...]string{"functions", "function_call"} {
		if o.Get(name) != nil {
			r.Refer(name, "The old function calling is not supported: use tools and tool_choice.")
		}
	}
	if o.Get("tools") != nil {
		r.readTools(o)
	}
	if choice := o.Get("tool_choice"); choice != nil {
		r.readChoice(choice)
	}
	if o.Get("messages") != nil {
		r.Messages = make([]lathe.Message, 0, r.MessageEstimate())
		for el := range o.Elements("messages") {
			r.Messages = append(r.Messages, r.message(el))
		}
	}
	r.Unknown = o.Rest()
	if r.Model == "" {
		o.Fail("model", "Say which model to use.")
	}
	if len(r.Messages) == 0 {
		o.Fail("messages", "There must be at least one message.")
	}
}

// checkChoice returns an error if the tool choice does not match the tools.
func checkChoice(r *ChatRequest) *APIError {
	switch r.ToolChoice.Mode {
	case lathe.ChoiceRequired:
		if len(r.Tools) == 0 {
			return wire.BadRequest("tool_choice", "A call is required, but there are no tools.")
		}
	case lathe.ChoiceFunction:
		for _, t := range r.Tools {
			if t.Name == r.ToolChoice.Name {
				return nil
			}
		}
		return wire.BadRequest("tool_choice.function.name", "There is no tool with this name.")
	}
	return nil
}

func (r *reader) readTools(o wire.Object) {
	seen := map[string]bool{}
	for el := range o.Elements("tools") {
		t := r.tool(el)
		if t == nil {
			continue
		}
		if seen[t.Name] {
			r.Fail("function.name", "Two tools have this name.")
		}
		seen[t.Name] = true
		r.Tools = append(r.Tools, t)
	}
}

// tool parses one tool. It returns nil for a tool that a [lathe.Request] cannot represent.
func (r *reader) tool(v []byte) *lathe.ToolSpec {
	o := r.Object("", v, toolNames)
	if typ := o.Get("type"); !rawjson.EqualKey(typ, "function") {
		const only = "Only tools of type function are supported."
		if !rawjson.EqualKey(typ, "custom") { // with other types, the model server would call servers that the client chooses
			o.Fail("type", only)
		}
		r.Refer("type", only)
		return nil
	}
	fn := o.Object("function", toolNames)
	t := &lathe.ToolSpec{Name: fn.OptString("name"), Description: fn.OptString("description"), Schema: bytes.Clone(fn.OptObject("parameters"))}
	t.Extra = appendInner(o.Rest(), fn.Rest())
	if callName(t.Name) != t.Name {
		const need = "A tool needs a name of at most 64 letters, digits, _ and -."
		if t.Name == "" {
			fn.Fail("name", need)
		}
		r.Refer("function.name", need)
		return nil
	}
	return t
}

func (r *reader) readChoice(v []byte) {
	const at = "tool_choice"
	if rawjson.Kind(v) == '"' {
		switch mode := rawjson.Text(v); mode {
		case lathe.ChoiceAuto, lathe.ChoiceNone, lathe.ChoiceRequired:
			r.ToolChoice.Mode = mode
			return
		}
		r.Fail(at, "Must be auto, none, required or a function.")
	}
	o := r.Object(at, v, choiceNames)
	if typ := o.Get("type"); !rawjson.EqualKey(typ, "function") {
		const only = "Only a choice of type function is supported."
		if !rawjson.EqualKey(typ, "custom") && !rawjson.EqualKey(typ, "allowed_tools") {
			o.Fail("type", only)
		}
		r.Refer(at+".type", only)
		return
	}
	fn := o.Object("function", choiceNames)
	o.DropRest()
	r.ToolChoice = lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: fn.String("name")}
	fn.DropRest()
}

// sameChoice reports whether given, a value of tool_choice, is equivalent to c.
func sameChoice(given []byte, c lathe.ToolChoice) bool {
	r := reader{Reader: wire.NewReader(nil)}
	return r.Try(func() { r.readChoice(given) }) == nil && (r.ToolChoice == c || r.Foreign != nil)
}

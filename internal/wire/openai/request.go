package openai

import (
	"bytes"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A ChatRequest is a request as a server reads it.
type ChatRequest = wire.ClientRequest

// A reader reads a request.
type reader struct {
	*ChatRequest
	index   *rawjson.Index // of the body
	lenient bool           // forms that a ChatRequest cannot hold are noted in Foreign
	called  calledNames
}

// ParseRequest reads the body of a request. It is strict where a mistake would change what is
// asked, and keeps members that it does not know; null is the same as nothing. The error is an
// *[APIError] with status 400 that names the member at fault.
//
// A member whose name equals one that Lathe reads under Unicode case folding, but is not that name, is refused: a
// server that ignores case would take it in place of the one that was checked.
func ParseRequest(body []byte) (*ChatRequest, error) {
	req, err := parseRequest(body, false)
	if err == nil {
		err = checkChoice(req)
	}
	if err != nil {
		return nil, err
	}
	return req, nil
}

// ParseAny reads the body of a request as [ParseRequest] does, but takes forms that no [lathe.Request] has, which a
// server can pass on without reading them: ChatRequest.Foreign says that there are some. It does not compare
// tool_choice with the tools.
func ParseAny(body []byte) (*ChatRequest, error) {
	req, err := parseRequest(body, true)
	if err != nil {
		return nil, err
	}
	return req, nil
}

// foreign returns err, or notes it if r takes forms that it cannot hold.
func (r *reader) foreign(err *APIError) *APIError {
	if !r.lenient {
		return err
	}
	if r.Foreign == nil {
		r.Foreign = err
	}
	return nil
}

// Names of members that are read, by the object that has them.
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

func parseRequest(body []byte, lenient bool) (*ChatRequest, *APIError) {
	index, err := rawjson.CheckIndexed(body, rawjson.Limits{})
	if err != nil {
		return nil, wire.BadRequest("", "The body is not acceptable JSON: %v.", err)
	}
	if kind(body[rawjson.SkipSpace(body, 0):]) != '{' {
		return nil, wire.BadRequest("", "The body must be a JSON object.")
	}
	req := &ChatRequest{N: 1}
	r := &reader{ChatRequest: req, index: index, lenient: lenient}
	for key, v := range index.Members(body) {
		if err := wire.RejectAmbiguousKey(key, requestNames, ""); err != nil {
			return nil, err
		}
		if string(v) == "null" {
			continue
		}
		name := requestNames.Text(key)
		known, err := r.member(name, v)
		if err != nil {
			return nil, err
		}
		if !known {
			req.Unknown = append(req.Unknown, lathe.Member{Name: name, Value: bytes.Clone(v)})
		}
	}
	if req.Model == "" {
		return nil, wire.BadRequest("model", "Say which model to use.")
	}
	if len(req.Messages) == 0 {
		return nil, wire.BadRequest("messages", "There must be at least one message.")
	}
	return req, nil
}

// member takes in one member of the request. It reports whether it knows it.
func (r *reader) member(name string, v []byte) (bool, *APIError) {
	s := &r.Sampling
	var err *APIError
	switch name {
	case "model":
		r.Model, err = wire.ParseString(v, name)
	case "messages":
		r.Messages, err = r.parseMessages(v)
	case "tools":
		r.Tools, err = r.parseTools(v)
	case "tool_choice":
		r.ToolChoice, err = r.parseToolChoice(v)
	case "parallel_tool_calls":
		r.ParallelToolCalls, err = wire.ParsePointer(v, name, wire.ParseBool)
	case "stream":
		r.Stream, err = wire.ParseBool(v, name)
	case "stream_options":
		err = r.streamOptions(v)
	case "temperature":
		s.Temperature, err = wire.ParsePointer(v, name, wire.ParseFloat)
	case "top_p":
		s.TopP, err = wire.ParsePointer(v, name, wire.ParseFloat)
	case "max_tokens":
		if s.MaxTokens == nil { // max_completion_tokens is the newer word
			s.MaxTokens, err = wire.ParsePointer(v, name, wire.ParseCount)
		} else {
			_, err = wire.ParseCount(v, name)
		}
	case "max_completion_tokens":
		s.MaxTokens, err = wire.ParsePointer(v, name, wire.ParseCount)
	case "seed":
		s.Seed, err = wire.ParsePointer(v, name, wire.ParseInt)
	case "stop":
		s.Stop, err = parseStop(v)
	case "reasoning_effort":
		s.ReasoningEffort, err = wire.ParseString(v, name)
	case "response_format":
		if err = wire.NeedObject(v, name); err == nil {
			err = wire.RejectAmbiguousMember(v, formatNames, name)
			s.ResponseFormat = bytes.Clone(v)
		}
	case "user":
		r.User, err = wire.ParseString(v, name)
	case "n":
		r.N, err = wire.ParseCount(v, name)
	case "functions", "function_call":
		err = r.foreign(wire.BadRequest(name, "The old function calling is not supported: use tools and tool_choice."))
	default:
		return false, nil
	}
	return true, err
}

func (r *reader) streamOptions(v []byte) *APIError {
	if err := wire.CheckObject(v, optionNames, "stream_options"); err != nil {
		return err
	}
	r.drop(v, "stream_options", "include_usage", "include_obfuscation")
	for _, m := range []struct {
		name string
		dst  *bool
	}{{"include_usage", &r.IncludeUsage}, {"include_obfuscation", &r.Obfuscate}} {
		raw, ok := rawjson.Get(v, m.name)
		if !ok || string(raw) == "null" {
			continue
		}
		var err *APIError
		if *m.dst, err = wire.ParseBool(raw, "stream_options."+m.name); err != nil {
			return err
		}
	}
	return nil
}

// drop notes the members of obj, which stands at the path at, that are not among the names given.
func (r *reader) drop(obj []byte, at string, names ...string) {
	for _, m := range members(obj, names...) {
		r.Dropped = append(r.Dropped, at+"."+m.Name)
	}
}

// checkChoice refuses a tool choice that the tools do not allow.
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

func (r *reader) parseTools(v []byte) ([]*lathe.ToolSpec, *APIError) {
	if kind(v) != '[' {
		return nil, wire.BadRequest("tools", "Must be an array.")
	}
	var tools []*lathe.ToolSpec
	seen := map[string]bool{}
	n := 0
	for el := range r.index.Elements(v) {
		at := "tools[" + strconv.Itoa(n) + "]"
		n++
		t, err := r.parseTool(el, at)
		if err != nil {
			return nil, err
		}
		if t == nil {
			continue
		}
		if seen[t.Name] {
			return nil, wire.BadRequest(at+".function.name", "Two tools have this name.")
		}
		seen[t.Name] = true
		tools = append(tools, t)
	}
	return tools, nil
}

// parseTool reads one tool. It returns nil for a tool that r takes without reading it.
func (r *reader) parseTool(v []byte, at string) (*lathe.ToolSpec, *APIError) {
	if err := wire.CheckObject(v, toolNames, at); err != nil {
		return nil, err
	}
	typ, _ := rawjson.Get(v, "type")
	if !rawjson.EqualKey(typ, "function") {
		err := wire.BadRequest(at+".type", "Only tools of type function are supported.")
		if !rawjson.EqualKey(typ, "custom") { // with others the model server would call servers of the client's choice
			return nil, err
		}
		return nil, r.foreign(err)
	}
	t := &lathe.ToolSpec{Extra: members(v, "type", "function")}
	fn, _ := rawjson.Get(v, "function")
	at += ".function"
	if err := wire.CheckObject(fn, toolNames, at); err != nil {
		return nil, err
	}
	var err *APIError
	for key, v := range rawjson.Members(fn) {
		if string(v) == "null" {
			continue
		}
		switch {
		case rawjson.EqualKey(key, "name"):
			t.Name, err = wire.ParseString(v, at+".name")
		case rawjson.EqualKey(key, "description"):
			t.Description, err = wire.ParseString(v, at+".description")
		case rawjson.EqualKey(key, "parameters"):
			if err = wire.NeedObject(v, at+".parameters"); err == nil {
				t.Schema = bytes.Clone(v)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	t.Extra = appendInner(t.Extra, members(fn, "name", "description", "parameters"))
	if t.Name == "" || callName(t.Name) != t.Name {
		err := wire.BadRequest(at+".name", "A tool needs a name of at most 64 letters, digits, _ and -.")
		if t.Name == "" {
			return nil, err
		}
		return nil, r.foreign(err)
	}
	return t, nil
}

func (r *reader) parseToolChoice(v []byte) (lathe.ToolChoice, *APIError) {
	if kind(v) == '"' {
		switch mode := rawjson.Text(v); mode {
		case lathe.ChoiceAuto, lathe.ChoiceNone, lathe.ChoiceRequired:
			return lathe.ToolChoice{Mode: mode}, nil
		}
		return lathe.ToolChoice{}, wire.BadRequest("tool_choice", "Must be auto, none, required or a function.")
	}
	if err := wire.CheckObject(v, choiceNames, "tool_choice"); err != nil {
		return lathe.ToolChoice{}, err
	}
	typ, _ := rawjson.Get(v, "type")
	if !rawjson.EqualKey(typ, "function") {
		err := wire.BadRequest("tool_choice.type", "Only a choice of type function is supported.")
		if !rawjson.EqualKey(typ, "custom") && !rawjson.EqualKey(typ, "allowed_tools") {
			return lathe.ToolChoice{}, err
		}
		return lathe.ToolChoice{}, r.foreign(err)
	}
	fn, _ := rawjson.Get(v, "function")
	if err := wire.CheckObject(fn, choiceNames, "tool_choice.function"); err != nil {
		return lathe.ToolChoice{}, err
	}
	r.drop(v, "tool_choice", "type", "function")
	r.drop(fn, "tool_choice.function", "name")
	raw, _ := rawjson.Get(fn, "name")
	name, err := wire.ParseString(raw, "tool_choice.function.name")
	return lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: name}, err
}

func parseStop(v []byte) ([]string, *APIError) {
	if kind(v) == '"' {
		s, err := wire.ParseString(v, "stop")
		return []string{s}, err
	}
	if kind(v) != '[' {
		return nil, wire.BadRequest("stop", "Must be a string or an array of strings.")
	}
	var stop []string
	for el := range rawjson.Elements(v) {
		s, err := wire.ParseString(el, "stop["+strconv.Itoa(len(stop))+"]")
		if err != nil {
			return nil, err
		}
		stop = append(stop, s)
	}
	return stop, nil
}

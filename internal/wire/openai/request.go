package openai

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A ChatRequest is a request as a server reads it.
type ChatRequest struct {
	lathe.Request
	Stream, IncludeUsage bool
	Obfuscate            bool           // the sizes of events are to say nothing of what is in them
	N                    int            // choices asked for; 1 where nothing is said
	Unknown              []lathe.Member // members that Lathe does not know, in their order
}

// ParseRequest reads the body of a request. It is strict where a mistake would change what is
// asked, and keeps members that it does not know; null is the same as nothing. The error is an
// *[APIError] with status 400 that names the member at fault.
func ParseRequest(body []byte) (*ChatRequest, error) {
	req, err := parseRequest(body)
	if err != nil {
		return nil, err
	}
	return req, nil
}

// badRequest makes the error for the member param. Its text is fixed: it quotes nothing.
func badRequest(param, format string, args ...any) *APIError {
	return &APIError{Status: 400, Type: "invalid_request_error", Param: param, Message: fmt.Sprintf(format, args...)}
}

func parseRequest(body []byte) (*ChatRequest, *APIError) {
	if err := rawjson.Check(body, rawjson.Limits{}); err != nil {
		return nil, badRequest("", "The body is not acceptable JSON: %v.", err)
	}
	if kind(body[rawjson.SkipSpace(body, 0):]) != '{' {
		return nil, badRequest("", "The body must be a JSON object.")
	}
	req := &ChatRequest{N: 1}
	for key, v := range rawjson.Members(body) {
		if string(v) == "null" {
			continue
		}
		name := string(unquoted(key))
		known, err := req.member(name, v)
		if err != nil {
			return nil, err
		}
		if !known {
			req.Unknown = append(req.Unknown, lathe.Member{Name: name, Value: bytes.Clone(v)})
		}
	}
	if req.Model == "" {
		return nil, badRequest("model", "Say which model to use.")
	}
	if len(req.Messages) == 0 {
		return nil, badRequest("messages", "There must be at least one message.")
	}
	if err := req.checkChoice(); err != nil {
		return nil, err
	}
	nameResults(req.Messages)
	return req, nil
}

// member takes in one member of the request. It reports whether it knows it.
func (r *ChatRequest) member(name string, v []byte) (bool, *APIError) {
	s := &r.Sampling
	var err *APIError
	switch name {
	case "model":
		r.Model, err = parseString(v, name)
	case "messages":
		r.Messages, err = parseMessages(v)
	case "tools":
		r.Tools, err = parseTools(v)
	case "tool_choice":
		r.ToolChoice, err = parseToolChoice(v)
	case "parallel_tool_calls":
		r.ParallelToolCalls, err = parsePointer(v, name, parseBool)
	case "stream":
		r.Stream, err = parseBool(v, name)
	case "stream_options":
		err = r.streamOptions(v)
	case "temperature":
		s.Temperature, err = parsePointer(v, name, parseFloat)
	case "top_p":
		s.TopP, err = parsePointer(v, name, parseFloat)
	case "max_tokens":
		if s.MaxTokens == nil { // max_completion_tokens is the newer word
			s.MaxTokens, err = parsePointer(v, name, parseCount)
		} else {
			_, err = parseCount(v, name)
		}
	case "max_completion_tokens":
		s.MaxTokens, err = parsePointer(v, name, parseCount)
	case "seed":
		s.Seed, err = parsePointer(v, name, parseInt)
	case "stop":
		s.Stop, err = parseStop(v)
	case "reasoning_effort":
		s.ReasoningEffort, err = parseString(v, name)
	case "response_format":
		if err = needObject(v, name); err == nil {
			s.ResponseFormat = bytes.Clone(v)
		}
	case "user":
		r.User, err = parseString(v, name)
	case "n":
		r.N, err = parseCount(v, name)
	case "functions", "function_call":
		err = badRequest(name, "The old function calling is not supported: use tools and tool_choice.")
	default:
		return false, nil
	}
	return true, err
}

func (r *ChatRequest) streamOptions(v []byte) *APIError {
	if err := needObject(v, "stream_options"); err != nil {
		return err
	}
	for _, m := range []struct {
		name string
		dst  *bool
	}{{"include_usage", &r.IncludeUsage}, {"include_obfuscation", &r.Obfuscate}} {
		raw, ok := rawjson.Get(v, m.name)
		if !ok || string(raw) == "null" {
			continue
		}
		var err *APIError
		if *m.dst, err = parseBool(raw, "stream_options."+m.name); err != nil {
			return err
		}
	}
	return nil
}

// checkChoice refuses a tool choice that the tools do not allow.
func (r *ChatRequest) checkChoice() *APIError {
	switch r.ToolChoice.Mode {
	case lathe.ChoiceRequired:
		if len(r.Tools) == 0 {
			return badRequest("tool_choice", "A call is required, but there are no tools.")
		}
	case lathe.ChoiceFunction:
		for _, t := range r.Tools {
			if t.Name == r.ToolChoice.Name {
				return nil
			}
		}
		return badRequest("tool_choice.function.name", "There is no tool with this name.")
	}
	return nil
}

func parseTools(v []byte) ([]*lathe.ToolSpec, *APIError) {
	if kind(v) != '[' {
		return nil, badRequest("tools", "Must be an array.")
	}
	var tools []*lathe.ToolSpec
	seen := map[string]bool{}
	for el := range rawjson.Elements(v) {
		at := "tools[" + strconv.Itoa(len(tools)) + "]"
		t, err := parseTool(el, at)
		if err != nil {
			return nil, err
		}
		if seen[t.Name] {
			return nil, badRequest(at+".function.name", "Two tools have this name.")
		}
		seen[t.Name] = true
		tools = append(tools, t)
	}
	return tools, nil
}

func parseTool(v []byte, at string) (*lathe.ToolSpec, *APIError) {
	if err := needObject(v, at); err != nil {
		return nil, err
	}
	typ, _ := rawjson.Get(v, "type")
	if !rawjson.EqualKey(typ, "function") {
		return nil, badRequest(at+".type", "Only tools of type function are supported.")
	}
	fn, _ := rawjson.Get(v, "function")
	at += ".function"
	if err := needObject(fn, at); err != nil {
		return nil, err
	}
	t := &lathe.ToolSpec{}
	var err *APIError
	for key, v := range rawjson.Members(fn) {
		if string(v) == "null" {
			continue
		}
		switch {
		case rawjson.EqualKey(key, "name"):
			t.Name, err = parseString(v, at+".name")
		case rawjson.EqualKey(key, "description"):
			t.Description, err = parseString(v, at+".description")
		case rawjson.EqualKey(key, "parameters"):
			if err = needObject(v, at+".parameters"); err == nil {
				t.Schema = bytes.Clone(v)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if t.Name == "" || callName(t.Name) != t.Name {
		return nil, badRequest(at+".name", "A tool needs a name of at most 64 letters, digits, _ and -.")
	}
	return t, nil
}

func parseToolChoice(v []byte) (lathe.ToolChoice, *APIError) {
	if kind(v) == '"' {
		switch mode := string(unquoted(v)); mode {
		case lathe.ChoiceAuto, lathe.ChoiceNone, lathe.ChoiceRequired:
			return lathe.ToolChoice{Mode: mode}, nil
		}
		return lathe.ToolChoice{}, badRequest("tool_choice", "Must be auto, none, required or a function.")
	}
	if err := needObject(v, "tool_choice"); err != nil {
		return lathe.ToolChoice{}, err
	}
	typ, _ := rawjson.Get(v, "type")
	if !rawjson.EqualKey(typ, "function") {
		return lathe.ToolChoice{}, badRequest("tool_choice.type", "Only a choice of type function is supported.")
	}
	fn, _ := rawjson.Get(v, "function")
	if err := needObject(fn, "tool_choice.function"); err != nil {
		return lathe.ToolChoice{}, err
	}
	raw, _ := rawjson.Get(fn, "name")
	name, err := parseString(raw, "tool_choice.function.name")
	return lathe.ToolChoice{Mode: lathe.ChoiceFunction, Name: name}, err
}

func parseStop(v []byte) ([]string, *APIError) {
	if kind(v) == '"' {
		s, err := parseString(v, "stop")
		return []string{s}, err
	}
	if kind(v) != '[' {
		return nil, badRequest("stop", "Must be a string or an array of strings.")
	}
	var stop []string
	for el := range rawjson.Elements(v) {
		s, err := parseString(el, "stop["+strconv.Itoa(len(stop))+"]")
		if err != nil {
			return nil, err
		}
		stop = append(stop, s)
	}
	return stop, nil
}

func needObject(v []byte, param string) *APIError {
	if kind(v) != '{' {
		return badRequest(param, "Must be an object.")
	}
	return nil
}

func parseString(v []byte, param string) (string, *APIError) {
	if kind(v) != '"' {
		return "", badRequest(param, "Must be a string.")
	}
	return string(unquoted(v)), nil
}

func parseBool(v []byte, param string) (bool, *APIError) {
	switch string(v) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, badRequest(param, "Must be true or false.")
}

func parseFloat(v []byte, param string) (float64, *APIError) {
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || kind(v) == '"' {
		return 0, badRequest(param, "Must be a number.")
	}
	return f, nil
}

func parseInt(v []byte, param string) (int64, *APIError) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0, badRequest(param, "Must be an integer.")
	}
	return n, nil
}

func parseCount(v []byte, param string) (int, *APIError) {
	n, err := parseInt(v, param)
	if err == nil && (n < 1 || n > math.MaxInt32) {
		err = badRequest(param, "Must be at least 1 and at most %d.", math.MaxInt32)
	}
	return int(n), err
}

func parsePointer[T any](v []byte, param string, parse func([]byte, string) (T, *APIError)) (*T, *APIError) {
	x, err := parse(v, param)
	if err != nil {
		return nil, err
	}
	return &x, nil
}

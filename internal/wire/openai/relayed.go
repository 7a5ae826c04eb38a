package openai

import (
	"bytes"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// Cut returns the object body without the members that drop claims. All other bytes stay. body must be valid.
func Cut(body []byte, drop func(name string) bool) []byte {
	return rawjson.AppendEdited(make([]byte, 0, len(body)), body, func(name string, value []byte) ([]byte, []byte, bool) { return nil, value, !drop(name) }, nil)
}

// AppendRelayed appends the body of a client's request for the model server: byte for byte, except for
// the model's name; the members of req.Overrides; stream_options, so that the server sends the usage; the name of the
// token limit, if opts sets it; and tool_choice and parallel_tool_calls, if req differs. body must be valid.
func AppendRelayed(dst, body []byte, req *lathe.Request, opts *EncodeOptions) []byte {
	need := map[string][]byte{}
	for _, m := range req.Overrides {
		if !reserved(m.Name) {
			need[m.Name] = m.Value
		}
	}
	if req.Model != "" {
		need["model"] = rawjson.AppendQuote(nil, req.Model)
	}
	choice := len(req.Tools) > 0 && req.ToolChoice.Mode != ""
	if choice {
		need["tool_choice"] = appendToolChoice(nil, req.ToolChoice)
	}
	if _, named := need["parallel_tool_calls"]; !named && len(req.Tools) > 0 && req.ParallelToolCalls != nil {
		need["parallel_tool_calls"] = []byte("false")
		if *req.ParallelToolCalls {
			need["parallel_tool_calls"] = []byte("true")
		}
	}
	_, named := need["stream_options"]
	usage := !named && opts.Stream && opts.IncludeUsage
	if usage {
		need["stream_options"] = withUsage(nil)
	}
	newName := false
	if opts.MaxCompletionTokens {
		_, newName = rawjson.Get(body, "max_completion_tokens")
	}
	edit := func(name string, value []byte) (key, to []byte, keep bool) {
		if v, ok := need[name]; ok {
			delete(need, name)
			switch {
			case name == "tool_choice" && choice && sameChoice(value, req.ToolChoice):
				return nil, value, true
			case name == "stream_options" && usage:
				v = withUsage(value)
			}
			if bytes.Equal(v, value) {
				return nil, value, true
			}
			return nil, v, true
		}
		switch {
		case name == "stream_options":
			return nil, value, opts.Stream && opts.IncludeUsage
		case name == "max_tokens" && opts.MaxCompletionTokens:
			return []byte(`"max_completion_tokens"`), value, !newName
		}
		return nil, value, true
	}
	rest := func(dst []byte) []byte {
		for _, m := range req.Overrides { // in their order
			if v, ok := need[m.Name]; ok {
				dst = append(wire.AppendKey(dst, m.Name), v...)
				delete(need, m.Name)
			}
		}
		for _, name := range [...]string{"model", "stream_options", "tool_choice", "parallel_tool_calls"} {
			if v, ok := need[name]; ok {
				dst = append(wire.AppendKey(dst, name), v...)
			}
		}
		return dst
	}
	return rawjson.AppendEdited(dst, body, edit, rest)
}

// sameChoice reports whether the value of tool_choice says c.
func sameChoice(given []byte, c lathe.ToolChoice) bool {
	r := reader{ChatRequest: &ChatRequest{}, lenient: true}
	said, err := r.parseToolChoice(given)
	return err == nil && (said == c || r.Foreign != nil)
}

// withUsage returns stream_options that ask for the usage, with the other members of given.
func withUsage(given []byte) []byte {
	if v, _ := rawjson.Get(given, "include_usage"); string(v) == "true" {
		return given
	}
	out := wire.AppendMembers([]byte{'{'}, members(given, "include_usage"), nothing)
	return append(append(wire.AppendKey(out, "include_usage"), "true"...), '}')
}

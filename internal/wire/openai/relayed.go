package openai

import (
	"bytes"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// Cut returns the object body without the members that drop claims. All other bytes stay. body must be valid.
func Cut(body []byte, drop func(name string) bool) []byte {
	return splice(make([]byte, 0, len(body)), body, func(name string, value []byte) ([]byte, []byte, bool) { return nil, value, !drop(name) }, nil)
}

// AppendRelayed appends the body of a client's request as it is sent on: byte for byte, but for what must differ. That is
// the model's name; the members of req.Overrides; stream_options, so that the usage is told; the name under which the
// token limit goes, where opts says so; and tool_choice and parallel_tool_calls, where req differs. body must be valid.
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
	if len(req.Tools) > 0 && req.ToolChoice.Mode != "" {
		if given, ok := rawjson.Get(body, "tool_choice"); !ok || !sameChoice(given, req.ToolChoice) {
			need["tool_choice"] = appendToolChoice(nil, req.ToolChoice)
		}
	}
	if _, named := need["parallel_tool_calls"]; !named && len(req.Tools) > 0 && req.ParallelToolCalls != nil {
		need["parallel_tool_calls"] = []byte("false")
		if *req.ParallelToolCalls {
			need["parallel_tool_calls"] = []byte("true")
		}
	}
	given, _ := rawjson.Get(body, "stream_options")
	if _, named := need["stream_options"]; !named && opts.Stream && opts.IncludeUsage {
		need["stream_options"] = withUsage(given)
	}
	_, newName := rawjson.Get(body, "max_completion_tokens")
	edit := func(name string, value []byte) (key, to []byte, keep bool) {
		if v, ok := need[name]; ok {
			delete(need, name)
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
				dst = append(appendKey(dst, m.Name), v...)
				delete(need, m.Name)
			}
		}
		for _, name := range [...]string{"model", "stream_options", "tool_choice", "parallel_tool_calls"} {
			if v, ok := need[name]; ok {
				dst = append(appendKey(dst, name), v...)
			}
		}
		return dst
	}
	return splice(dst, body, edit, rest)
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
	out := appendUnread([]byte{'{'}, members(given, "include_usage"), nothing)
	return append(append(appendKey(out, "include_usage"), "true"...), '}')
}

// splice appends the object body with each member as edit says: under another key, unless that is nil, with another value,
// or not at all. rest, unless nil, appends further members before the closing bracket.
func splice(dst, body []byte, edit func(name string, value []byte) (key, to []byte, keep bool), rest func([]byte) []byte) []byte {
	start := len(dst)
	open := rawjson.SkipSpace(body, 0) + 1
	dst = append(dst, body[:open]...)
	copied := open // body[:copied] is dealt with
	kept := len(dst)
	for key, value := range rawjson.Members(body) {
		at := rawjson.SkipSpace(body, copied)
		if body[at] == ',' {
			at = rawjson.SkipSpace(body, at+1)
		}
		keyEnd := at + len(key)
		from := rawjson.SkipSpace(body, rawjson.SkipSpace(body, keyEnd)+1)
		end := from + len(value)
		name, to, keep := edit(string(unquoted(key)), value)
		if !keep {
			copied = end
			continue
		}
		lead := body[copied:at]
		if kept == start+open && copied > open { // the first that is kept: no comma before it
			lead = bytes.TrimLeft(lead, ", \t\r\n")
		}
		dst = append(dst, lead...)
		if name == nil {
			name = body[at:keyEnd]
		}
		dst = append(append(dst, name...), body[keyEnd:from]...)
		dst = append(dst, to...)
		copied, kept = end, len(dst)
	}
	if rest != nil {
		dst = rest(dst)
	}
	return append(dst, bytes.TrimLeft(body[copied:], ",")...)
}

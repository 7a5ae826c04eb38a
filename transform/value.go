package transform

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// The functions in this file change single values. They return the value that they were given if nothing changes, and otherwise a copy,
// because messages and definitions are shared.

const skipValidator = `"skip_thought_signature_validator"`

func isA[P lathe.Part](p lathe.Part) bool { _, ok := p.(P); return ok }

func hasCalls(m *lathe.Message) bool {
	return m.Role == lathe.RoleAssistant && slices.ContainsFunc(m.Parts, isA[lathe.ToolCall])
}

func hasMember(ms []lathe.Member, name string) bool {
	return slices.ContainsFunc(ms, func(m lathe.Member) bool { return m.Name == name })
}

func withMember(ms []lathe.Member, name, value string) []lathe.Member {
	return append(slices.Clip(ms), lathe.Member{Name: name, Value: json.RawMessage(value)})
}

// nullBlankContent removes blank text from a message with calls, which is then sent with `content: null`.
func nullBlankContent(m lathe.Message) lathe.Message {
	if !hasCalls(&m) {
		return m
	}
	found := false
	for _, p := range m.Parts {
		switch p := p.(type) {
		case lathe.Text:
			found = true
			if strings.TrimSpace(p.Text) != "" {
				return m
			}
		case lathe.Blob:
			return m
		default: // no content
		}
	}
	if found {
		m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), isA[lathe.Text])
	}
	return m
}

// addReasoningContent adds an empty reasoning_content. The codec omits it if it writes reasoning under that name.
func addReasoningContent(m lathe.Message) lathe.Message {
	if hasCalls(&m) && !hasMember(m.Extra, "reasoning_content") {
		m.Extra = withMember(m.Extra, "reasoning_content", `""`)
	}
	return m
}

// eachPart returns m with change applied to copies of its parts of type P. change returns false if it changed nothing; if none changed, m is
// returned as it is.
func eachPart[P lathe.Part](m lathe.Message, change func(*P) bool) lathe.Message {
	copied := false
	for i, p := range m.Parts {
		c, ok := p.(P)
		if !ok || !change(&c) {
			continue
		}
		if !copied {
			m.Parts, copied = slices.Clone(m.Parts), true
		}
		m.Parts[i] = c
	}
	return m
}

func addSignature(m lathe.Message) lathe.Message {
	if m.Role != lathe.RoleAssistant {
		return m
	}
	return eachPart(m, func(c *lathe.ToolCall) bool {
		if hasMember(c.Extra, "signature") {
			return false
		}
		c.Extra = withMember(c.Extra, "signature", skipValidator)
		return true
	})
}

// addExtraContent signs only the first call of a message: Gemini signs no other of parallel calls.
func addExtraContent(m lathe.Message) lathe.Message {
	if !hasCalls(&m) {
		return m
	}
	for _, p := range m.Parts {
		if c, ok := p.(lathe.ToolCall); ok && hasMember(c.Extra, "extra_content") {
			return m
		}
	}
	first := true
	return eachPart(m, func(c *lathe.ToolCall) bool {
		if !first {
			return false
		}
		first = false
		c.Extra = withMember(c.Extra, "extra_content", `{"google":{"thought_signature":`+skipValidator+`}}`)
		return true
	})
}

func stripDescription(s *lathe.ToolSpec) *lathe.ToolSpec {
	if s.Description == "" {
		return s
	}
	c := *s
	c.Description = ""
	return &c
}

// compactEnvelope removes empty `warnings`, `errors` and `data` from a result envelope, which is an object whose `ok` is true or false. The
// other members stay as they are, byte for byte, and so does any other text.
func compactEnvelope(content string) string {
	b := []byte(content)
	at := rawjson.SkipSpace(b, 0)
	if at == len(b) || b[at] != '{' || rawjson.Check(b, rawjson.Limits{}) != nil {
		return content
	}
	b = b[at:]
	if ok := rawjson.At(b, "ok"); string(ok) != "true" && string(ok) != "false" {
		return content
	}
	dropped := false
	out := rawjson.AppendEach(nil, b, func(dst, key, value []byte) []byte {
		if isOptional(key) && isEmpty(value) {
			dropped = true
			return dst
		}
		return append(dst, value...)
	})
	if !dropped {
		return content
	}
	return string(out)
}

func isOptional(key []byte) bool {
	return rawjson.EqualKey(key, "warnings") || rawjson.EqualKey(key, "errors") || rawjson.EqualKey(key, "data")
}

func isEmpty(value []byte) bool {
	return slices.Contains([]string{"{}", "[]", "null"}, rawjson.CompactText(value))
}

func fillArguments(c *lathe.ToolCall) bool {
	if c.Incomplete || c.ParseError != "" || c.Arguments == "{}" || strings.TrimSpace(c.Arguments) != "" {
		return false
	}
	c.Arguments = "{}"
	return true
}

// makeReadable replaces a call that could not be read by one with the arguments {}. The text of the unreadable call is already in the
// message, and the result that follows must remain the result of a call.
func makeReadable(c *lathe.ToolCall) bool {
	if c.ParseError == "" || c.Arguments == "{}" && c.Name != "" {
		return false
	}
	c.Name, c.Arguments = cmp.Or(c.Name, "unknown"), "{}"
	return true
}

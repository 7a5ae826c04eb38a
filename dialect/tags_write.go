package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
)

var tagsForm = form{call: appendTagCall, clean: maskTags, explained: true}

func appendTagCall(dst []byte, c lathe.ToolCall, args string) []byte {
	dst = append(dst, `<tool name="`...)
	dst = appendName(dst, c.Name)
	dst = append(dst, `" args>`...)
	dst = append(dst, args...)
	return append(dst, "</tool>"...)
}

// appendTagResult writes `<tool_result name="NAME">…</tool_result>`. A backslash masks the tags of
// calls and results in what the tool said.
func appendTagResult(dst []byte, r lathe.ToolResult) []byte {
	dst = append(dst, `<tool_result name="`...)
	dst = appendName(dst, r.Name)
	dst = append(dst, '"')
	if r.IsError {
		dst = append(dst, " error"...)
	}
	dst = append(dst, '>')
	dst = append(dst, maskTags(r.Content)...)
	return append(dst, "</tool_result>"...)
}

// maskTags puts a backslash before each `<tool` and `</tool`.
func maskTags(s string) string {
	var b strings.Builder
	from := 0
	for i := 0; i < len(s); i++ {
		if s[i] != '<' {
			continue
		}
		rest := strings.TrimPrefix(s[i+1:min(len(s), i+len("</tool"))], "/")
		if len(rest) >= len("tool") && strings.EqualFold(rest[:len("tool")], "tool") {
			b.WriteString(s[from:i])
			b.WriteByte('\\')
			from = i
		}
	}
	if from == 0 && b.Len() == 0 {
		return s
	}
	b.WriteString(s[from:])
	return b.String()
}

// appendName writes a tool's name, which may be what a model made up: other bytes than those of
// names become underscores.
func appendName(dst []byte, name string) []byte {
	for i := range len(name) {
		if c := name[i]; isNameByte(c) {
			dst = append(dst, c)
		} else {
			dst = append(dst, '_')
		}
	}
	return dst
}

package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A layout is how the calls of a grammar are written: what stands before, between and after name,
// key and value. A value that is a string is written as it stands, any other as JSON.
type layout struct {
	name, params         string // around the name
	key, value, valueEnd string // around key and value
	jsonValue            string // before a value that is no string; "": as value
	end                  string
}

// form returns how the dialect writes; result may be nil. The tags inside of a call stay in what
// people and tools wrote: they are XML that any page may hold.
func (g *grammar) form(result func(dst []byte, r lathe.ToolResult) []byte) form {
	var list []string
	for i, text := range g.list {
		if r := g.roles[i]; r == roleWrap || r == roleWrapClose || r >= roleStart || g.typed {
			list = append(list, text)
		}
	}
	return cleanForm(g.layout.appendCall, result, append(append(list, g.think[0], g.think[1]), g.reserved...))
}

// cleanForm makes a form that takes the marks apart in what people and tools wrote.
func cleanForm(call func([]byte, lathe.ToolCall, string) []byte, result func([]byte, lathe.ToolResult) []byte, marks []string) form {
	clean := newCleaner(marks)
	if result == nil {
		result = appendTagResult
	}
	return form{call: call, clean: clean, result: func(dst []byte, r lathe.ToolResult) []byte {
		r.Content = clean(r.Content)
		return result(dst, r)
	}}
}

func (l *layout) appendCall(dst []byte, c lathe.ToolCall, args string) []byte {
	dst = append(dst, l.name...)
	dst = appendName(dst, c.Name)
	dst = append(dst, l.params...)
	if rawjson.Check([]byte(args), rawjson.Limits{}) != nil || trimSpace(args)[0] != '{' {
		dst = l.appendParam(dst, "arguments", args, false)
		return append(dst, l.end...)
	}
	for key, value := range rawjson.Members([]byte(args)) {
		name, _ := rawjson.AppendUnquote(nil, key)
		if value[0] == '"' {
			text, _ := rawjson.AppendUnquote(nil, value)
			dst = l.appendParam(dst, string(name), string(text), false)
			continue
		}
		dst = l.appendParam(dst, string(name), string(value), true)
	}
	return append(dst, l.end...)
}

func (l *layout) appendParam(dst []byte, key, value string, json bool) []byte {
	dst = append(dst, l.key...)
	dst = append(dst, strings.Map(keyRune, key)...)
	if json && l.jsonValue != "" {
		dst = append(dst, l.jsonValue...)
	} else {
		dst = append(dst, l.value...)
	}
	dst = append(dst, value...)
	return append(dst, l.valueEnd...)
}

// keyRune makes what would end a tag an underscore.
func keyRune(r rune) rune {
	if r < ' ' || strings.ContainsRune(`<>"'`, r) {
		return '_'
	}
	return r
}

// appendToolResponse writes `<tool_response>`, the content on lines of its own, `</tool_response>`.
// The tags in what the tool said were taken apart before, by a space: where they are tokens of the model, a
// backslash before one leaves it a token.
func appendToolResponse(dst []byte, r lathe.ToolResult) []byte {
	dst = append(dst, "<tool_response>\n"...)
	dst = append(dst, maskTags(r.Content)...)
	return append(dst, "\n</tool_response>"...)
}

package dialect

import (
	"slices"
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
	f := cleanForm(g.callLayout, func(dst []byte, c lathe.ToolCall, args string) []byte {
		return g.appendCall(dst, c, args, nil)
	}, result, append(append(list, g.think[0], g.think[1]), g.reserved...))
	f.typed = func(dst []byte, c lathe.ToolCall, args string, schema []byte) []byte {
		return g.appendCall(dst, c, args, func(key string, tag valueTypes) valueTypes { return parameterTypes(schema, key, tag) })
	}
	return f
}

// cleanForm makes a form that takes the marks apart in what people and tools wrote.
func cleanForm(layout func() *callLayout, call func([]byte, lathe.ToolCall, string) []byte, result func([]byte, lathe.ToolResult) []byte, marks []string) form {
	clean := newCleaner(func() []string { return marks })
	if result == nil {
		result = appendTagResult
	}
	return form{call: call, clean: clean, layout: layout, result: func(dst []byte, r lathe.ToolResult) []byte {
		r.Content = clean(r.Content)
		return result(dst, r)
	}}
}

// appendCall writes a parameter for each member of the arguments. Where a tag cannot hold a key, or a value would end
// early or be read as another, the arguments are written as JSON in place of all parameters, which every parser of a
// grammar reads. types returns the types that a value is read as; nil: that of the value alone.
func (g *grammar) appendCall(dst []byte, c lathe.ToolCall, args string, types func(key string, tag valueTypes) valueTypes) []byte {
	l := &g.layout
	dst = append(dst, l.name...)
	dst = appendName(dst, c.Name)
	dst = append(dst, l.params...)
	if args = strings.TrimSpace(args); !isObject(args) {
		dst = l.appendParam(dst, "arguments", args, false)
		return append(dst, l.end...)
	}
	begin := len(dst)
	n := 0
	for key, value := range rawjson.Members([]byte(args)) {
		name, _ := rawjson.AppendUnquote(nil, key)
		text, isString := value, value[0] == '"'
		if isString {
			text, _ = rawjson.AppendUnquote(nil, value)
		}
		if n++; n > maxParameters || !g.allowsKey(string(name)) || !g.allowsValue(string(text)) ||
			types != nil && !g.readsSame(string(text), value, types(string(name), g.tagTypes(isString))) {
			dst = append(dst[:begin], args...)
			dst = append(dst, '\n')
			break
		}
		dst = l.appendParam(dst, string(name), string(text), !isString)
	}
	return append(dst, l.end...)
}

// allowsKey reports whether the tag of a parameter can hold the key.
func (g *grammar) allowsKey(key string) bool {
	if key == "" || len(key) > maxNameBytes || g.single && (key == "arguments" || key == "input") {
		return false
	}
	return strings.IndexFunc(key, func(r rune) bool { return r < ' ' || strings.ContainsRune(`<>"'`, r) }) < 0
}

// allowsValue reports whether text between the tags of a parameter is read as it stands.
func (g *grammar) allowsValue(text string) bool {
	if g.newline && (strings.HasPrefix(text, "\r") || strings.HasSuffix(text, "\r")) {
		return false
	}
	if g.paired && strings.HasPrefix(text, "\n") { // it would be the tag's
		return false
	}
	return !slices.ContainsFunc(g.list, func(mark string) bool { return strings.Contains(text, mark) })
}

// tagTypes returns what the tag of a parameter says of its value.
func (g *grammar) tagTypes(isString bool) valueTypes {
	switch {
	case !g.typed:
		return 0
	case isString:
		return typeString
	}
	return typeOther
}

// readsSame reports whether text, the value without its tags, is read as value.
func (g *grammar) readsSame(text string, value []byte, types valueTypes) bool {
	r := &reader{opts: Options{MaxPayloadBytes: len(text)}}
	v := rawValue{python: g.python}
	v.init(r)
	v.begin("", types, false)
	v.add(text)
	v.end(false)
	var got []byte
	for _, d := range r.out {
		got = append(got, d.Text...)
	}
	if value[0] != '"' {
		return string(got) == string(value)
	}
	unquoted, err := rawjson.AppendUnquote(nil, got)
	return err == nil && string(unquoted) == text
}

func (l *layout) appendParam(dst []byte, key, value string, json bool) []byte {
	dst = append(dst, l.key...)
	dst = append(dst, key...)
	if json && l.jsonValue != "" {
		dst = append(dst, l.jsonValue...)
	} else {
		dst = append(dst, l.value...)
	}
	dst = append(dst, value...)
	return append(dst, l.valueEnd...)
}

// appendToolResponse writes `<tool_response>`, the content on lines of its own, `</tool_response>`.
// The tags in what the tool said were taken apart before, by a space: where they are tokens of the model, a
// backslash before one leaves it a token.
func appendToolResponse(dst []byte, r lathe.ToolResult) []byte {
	dst = append(dst, "<tool_response>\n"...)
	dst = append(dst, maskTags(r.Content)...)
	return append(dst, "\n</tool_response>"...)
}

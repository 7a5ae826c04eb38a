package dialect

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// A layout contains the texts that the calls of a grammar consist of, apart from name, keys and values. A string value is written
// unquoted, any other as JSON:
//
//	<tool_call><function=write>    name, the tool's name, params
//	<parameter=path>a.txt</parameter>    key, the parameter's name, value, the text, valueEnd
//	</function></tool_call>    end
type layout struct {
	name, params         string // before and after the name
	key, value, valueEnd string // before the key, between key and value, after the value
	jsonValue            string // instead of value, if the value is no string; "" if they are equal
	end                  string
}

// form returns the form of a dialect of this grammar; result may be nil. In text from outside, the tags inside a call are not escaped,
// because any page of XML may contain them.
func (g *grammar) form(result func(r lathe.ToolResult) string) form {
	var list []string
	for i, text := range g.list {
		if r := g.roles[i]; r == roleWrap || r == roleWrapClose || r >= roleStart || g.typed {
			list = append(list, text)
		}
	}
	f := cleanForm(g.parser, g.callLayout, func(c lathe.ToolCall, args string) string { return g.callText(c, args, nil) }, result,
		append(append(list, g.think[0], g.think[1]), g.reserved...))
	f.typed = func(c lathe.ToolCall, args string, schema []byte) string {
		return g.callText(c, args, func(key string, tag valueTypes) valueTypes { return parameterTypes(schema, key, tag) })
	}
	return f
}

// cleanForm returns a form with this parser that splits the given marks in text from outside. result may be nil.
func cleanForm(parser func(Options) fullParser, layout func() *callLayout, call func(lathe.ToolCall, string) string, result func(lathe.ToolResult) string, marks []string) form {
	clean := newCleaner(func() []string { return marks })
	if result == nil {
		result = tagResult
	}
	return form{parser: parser, call: call, clean: clean, layout: layout, result: func(r lathe.ToolResult) string {
		r.Content = clean(r.Content)
		return result(r)
	}}
}

// callText returns a call with a parameter for each member of the arguments. If a tag cannot contain a key, or a value would end early or
// be read as another one, it writes all arguments as one JSON object instead, which the parser of every grammar reads. types returns the
// types as which a value is read; nil skips that comparison.
func (g *grammar) callText(c lathe.ToolCall, args string, types func(key string, tag valueTypes) valueTypes) string {
	l := &g.layout
	head := l.name + safeName(c.Name) + l.params
	if args = strings.TrimSpace(args); !isObject(args) {
		return head + l.key + "arguments" + l.value + args + l.valueEnd + l.end
	}
	var params []string
	for key, value := range rawjson.Members([]byte(args)) {
		name, text, tag := rawjson.Text(key), string(value), cmp.Or(l.jsonValue, l.value)
		stated := typeOther // the type that the tag states, in a typed grammar
		if value[0] == '"' {
			text, tag, stated = rawjson.Text(value), l.value, typeString
		}
		if !g.typed {
			stated = 0
		}
		readsBack := g.allowsKey(name) && g.allowsValue(text) && (types == nil || g.readsSame(text, value, types(name, stated)))
		if !readsBack || len(params) == maxParameters {
			return head + args + "\n" + l.end
		}
		params = append(params, l.key+name+tag+text+l.valueEnd)
	}
	return head + strings.Join(params, "") + l.end
}

// allowsKey reports whether the tag of a parameter can contain the key.
func (g *grammar) allowsKey(key string) bool {
	if key == "" || len(key) > maxNameBytes || g.isSole(key) {
		return false
	}
	return strings.IndexFunc(key, func(r rune) bool { return r < ' ' || strings.ContainsRune(`<>"'`, r) }) < 0
}

// allowsValue reports whether the parser reads text between the tags of a parameter unchanged.
func (g *grammar) allowsValue(text string) bool {
	if g.newline && (strings.HasPrefix(text, "\r") || strings.HasSuffix(text, "\r")) {
		return false
	}
	if g.paired && strings.HasPrefix(text, "\n") { // the parser would remove the newline
		return false
	}
	return !slices.ContainsFunc(g.list, func(mark string) bool { return strings.Contains(text, mark) })
}

// readsSame reports whether the parser reads text, a value between its tags, as the JSON value.
func (g *grammar) readsSame(text string, value []byte, types valueTypes) bool {
	r := &reader{opts: Options{MaxPayloadBytes: len(text)}}
	v := rawValue{python: g.python}
	v.init(r)
	v.begin("", types)
	v.add(text)
	v.end()
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

// toolResponseText returns a result in the tags `<tool_response>` and `</tool_response>`, with its content on separate lines. The caller
// has split the marks in the content with spaces: if a mark is a token of the model, a backslash before it would not prevent that.
func toolResponseText(r lathe.ToolResult) string {
	return "<tool_response>\n" + maskTags(r.Content) + "\n</tool_response>"
}

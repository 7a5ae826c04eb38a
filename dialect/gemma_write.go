package dialect

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// isObject reports whether s is a JSON object.
func isObject(s string) bool {
	return strings.HasPrefix(s, "{") && rawjson.Check([]byte(s), rawjson.Limits{}) == nil
}

// value returns valid JSON in the syntax of the form: keys without quotes, and strings in quote marks.
func (f *gemmaForm) value(value []byte) string {
	var b strings.Builder
	f.write(&b, value)
	return b.String()
}

func (f *gemmaForm) write(b *strings.Builder, value []byte) {
	comma := ""
	switch value[0] {
	case '{':
		b.WriteByte('{')
		for key, v := range rawjson.Members(value) {
			b.WriteString(comma + f.key(key) + ":")
			f.write(b, v)
			comma = ","
		}
		b.WriteByte('}')
	case '[':
		b.WriteByte('[')
		for v := range rawjson.Elements(value) {
			b.WriteString(comma)
			f.write(b, v)
			comma = ","
		}
		b.WriteByte(']')
	case '"':
		b.WriteString(f.string(value))
	default:
		b.Write(value)
	}
}

// key returns a key, which is given as a JSON string: without quotes if the parser reads it back so, else as it is.
func (f *gemmaForm) key(quoted []byte) string {
	name := quoted[1 : len(quoted)-1]
	if len(name) == 0 || slices.ContainsFunc(name, func(c byte) bool { return !keyByte(c) }) {
		return string(quoted)
	}
	return string(name)
}

// string returns a string, which is given as JSON, between quote marks. A string that contains the quote mark is written as JSON, with <
// escaped, so that it contains no mark.
func (f *gemmaForm) string(quoted []byte) string {
	text, err := rawjson.AppendUnquote(nil, quoted)
	switch {
	case err != nil:
		return string(quoted)
	case !strings.Contains(string(text), f.quote):
		return f.quote + string(text) + f.quote
	}
	return strings.ReplaceAll(quoteJSON(string(text)), "<", `\u003c`)
}

// response returns a tool result in the form that FunctionGemma reads: one string.
func (f *gemmaForm) response(r lathe.ToolResult) string {
	return "<start_function_response>response:" + safeName(r.Name) + "{value:" + f.quote + r.Content + f.quote + "}<end_function_response>"
}

// call returns a call. args that are no JSON object become the value of one parameter `arguments`.
func (f *gemmaForm) call(c lathe.ToolCall, args string) string {
	return f.open + gemmaCall + safeName(c.Name) + f.value([]byte(objectArguments(args))) + f.close
}

// objectArguments returns args if they are a JSON object, else an object in which they are the member `arguments`.
func objectArguments(args string) string {
	if args = strings.TrimSpace(args); isObject(args) {
		return args
	}
	return `{"arguments":` + jsonArguments(args) + "}"
}

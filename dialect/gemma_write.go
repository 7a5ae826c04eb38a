package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// isObject reports whether s is a JSON object.
func isObject(s string) bool {
	return strings.HasPrefix(s, "{") && rawjson.Check([]byte(s), rawjson.Limits{}) == nil
}

// appendValue appends valid JSON in the syntax of the form: keys without quotes, and strings in quote marks.
func (f *gemmaForm) appendValue(dst, value []byte) []byte {
	switch value[0] {
	case '{':
		dst = append(dst, '{')
		comma := false
		for key, v := range rawjson.Members(value) {
			if comma {
				dst = append(dst, ',')
			}
			comma = true
			dst = f.appendKey(dst, key)
			dst = append(dst, ':')
			dst = f.appendValue(dst, v)
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		comma := false
		for v := range rawjson.Elements(value) {
			if comma {
				dst = append(dst, ',')
			}
			comma = true
			dst = f.appendValue(dst, v)
		}
		return append(dst, ']')
	case '"':
		return f.appendString(dst, value)
	}
	return append(dst, value...)
}

// appendKey appends a key, which is given as a JSON string: without quotes if the parser reads it back so, else as it is.
func (f *gemmaForm) appendKey(dst, quoted []byte) []byte {
	for _, c := range quoted[1 : len(quoted)-1] {
		if !keyByte(c) {
			return append(dst, quoted...)
		}
	}
	if len(quoted) == 2 {
		return append(dst, quoted...)
	}
	return append(dst, quoted[1:len(quoted)-1]...)
}

// appendString appends a string, which is given as JSON, between quote marks. A string that contains the quote mark is written as JSON,
// with < escaped, so that it contains no mark.
func (f *gemmaForm) appendString(dst, quoted []byte) []byte {
	text, err := rawjson.AppendUnquote(nil, quoted)
	if err != nil {
		return append(dst, quoted...)
	}
	if s := string(text); !strings.Contains(s, f.quote) {
		dst = append(dst, f.quote...)
		dst = append(dst, s...)
		return append(dst, f.quote...)
	}
	q := string(rawjson.AppendQuote(nil, string(text)))
	return append(dst, strings.ReplaceAll(q, "<", `\u003c`)...)
}

// appendResponse appends a tool result in the form that FunctionGemma reads: one string.
func (f *gemmaForm) appendResponse(dst []byte, r lathe.ToolResult) []byte {
	dst = append(dst, "<start_function_response>response:"...)
	dst = appendName(dst, r.Name)
	dst = append(dst, "{value:"...)
	dst = append(dst, f.quote...)
	dst = append(dst, r.Content...)
	dst = append(dst, f.quote...)
	return append(dst, "}<end_function_response>"...)
}

// appendCall appends a call. args that are no JSON object become the value of one parameter `arguments`.
func (f *gemmaForm) appendCall(dst []byte, c lathe.ToolCall, args string) []byte {
	dst = append(dst, f.open...)
	dst = append(dst, gemmaCall...)
	dst = appendName(dst, c.Name)
	if args = strings.TrimSpace(args); !isObject(args) {
		args = `{"arguments":` + jsonArguments(args) + `}`
	}
	dst = f.appendValue(dst, []byte(args))
	return append(dst, f.close...)
}

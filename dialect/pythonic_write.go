package dialect

import (
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// appendCall appends a call with JSON literals as values, between the form's marks, with brackets if the form is bare. If a key cannot be
// the name of a keyword argument, the arguments are one dict: f(**{"a key": 1}).
func (f *pythonicForm) appendCall(dst []byte, c lathe.ToolCall, args string) []byte {
	open, end := f.open, f.close
	if f.bare {
		open, end = open+"[", "]"+end
	}
	if args = strings.TrimSpace(args); !isObject(args) {
		args = `{"arguments":` + jsonArguments(args) + `}`
	}
	dst = append(dst, open...)
	dst = appendName(dst, c.Name)
	dst = append(dst, '(')
	begin, comma, n := len(dst), false, 0
	for key, value := range rawjson.Members([]byte(args)) {
		if comma {
			dst = append(dst, ", "...)
		}
		comma = true
		name, _ := rawjson.AppendUnquote(nil, key)
		if n++; n > maxParameters || !isArgumentName(name) {
			dst = append(dst[:begin], "**"...)
			dst = append(dst, args...)
			break
		}
		dst = append(dst, name...)
		dst = append(dst, '=')
		dst = append(dst, value...)
	}
	dst = append(dst, ')')
	return append(dst, end...)
}

// isArgumentName reports whether key can be written as the name of a keyword argument; bytes beyond ASCII are allowed.
func isArgumentName(key []byte) bool {
	for _, c := range key {
		if !isNameByte(c) && c < utf8.RuneSelf || c == '.' || c == ':' {
			return false
		}
	}
	return len(key) > 0 && len(key) <= maxNameBytes
}

package dialect

import (
	"strings"
	"unicode/utf8"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// call returns a call with JSON literals as values, between the form's marks, with brackets if the form is bare. If a key cannot be the
// name of a keyword argument, the arguments are one dict: f(**{"a key": 1}).
func (f *pythonicForm) call(c lathe.ToolCall, args string) string {
	open, end := f.open, f.close
	if f.bare {
		open, end = open+"[", "]"+end
	}
	args = objectArguments(args)
	var keywords []string
	for key, value := range rawjson.Members([]byte(args)) {
		name, _ := rawjson.AppendUnquote(nil, key)
		if len(keywords) == maxParameters || !isArgumentName(name) {
			keywords = []string{"**" + args}
			break
		}
		keywords = append(keywords, string(name)+"="+string(value))
	}
	return open + safeName(c.Name) + "(" + strings.Join(keywords, ", ") + ")" + end
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

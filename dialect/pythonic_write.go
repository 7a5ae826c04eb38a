package dialect

import (
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/rawjson"
)

// appendCall writes a call with JSON literals for values, between the form's marks, and in brackets where lists stand without marks too.
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
	comma := false
	for key, value := range rawjson.Members([]byte(args)) {
		if comma {
			dst = append(dst, ", "...)
		}
		comma = true
		name, _ := rawjson.AppendUnquote(nil, key)
		dst = append(dst, strings.Map(argumentRune, string(name))...)
		dst = append(dst, '=')
		dst = append(dst, value...)
	}
	dst = append(dst, ')')
	return append(dst, end...)
}

// argumentRune makes what cannot stand in the name of an argument an underscore.
func argumentRune(r rune) rune {
	if r < 0x80 && !isNameByte(byte(r)) || r == '.' || r == ':' {
		return '_'
	}
	return r
}

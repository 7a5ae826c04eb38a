package rawjson

import (
	"bytes"
	"strings"
)

// Names of the repairs of RepairObject.
const (
	RepairBOM       = "bom"               // a byte order mark preceded the object
	RepairFence     = "code_fence"        // a Markdown code fence around the object
	RepairString    = "json_string"       // the object was written as a JSON string
	RepairCharacter = "control_character" // a string contained an unescaped line end or tab
	RepairComma     = "trailing_comma"    // a comma preceded a closing bracket
)

// RepairObject returns the object that text represents if text is not an object but can be read as one in only one way, and the names of
// the repairs, joined with commas. ok is false for all other texts. If the object was wrapped (in a fence, or as a string), the result
// begins with '{' and may still be invalid; without a wrapping it is valid. text must have no white space around it.
func RepairObject(text []byte) (object []byte, repaired string, ok bool) {
	var names []string
	if rest, found := bytes.CutPrefix(text, []byte("\ufeff")); found {
		text, names = bytes.TrimLeft(rest, " \t\r\n"), append(names, RepairBOM)
	}
	wrapped := false
	if len(text) > 0 && text[0] != '{' {
		name := RepairString
		if text[0] == '`' {
			name = RepairFence
		}
		inner, ok := UnwrapObject(text)
		if !ok {
			return nil, "", false
		}
		text, names, wrapped = inner, append(names, name), true
	}
	if Check(text, Limits{}) != nil {
		escaped := escapeCharacters(text)
		fixed := removeCommas(escaped)
		if Check(fixed, Limits{}) != nil {
			return text, strings.Join(names, ","), wrapped
		}
		if len(escaped) > len(text) {
			names = append(names, RepairCharacter)
		}
		if len(fixed) < len(escaped) {
			names = append(names, RepairComma)
		}
		text = fixed
	}
	return text, strings.Join(names, ","), len(names) > 0
}

// escapeCharacters returns a copy of text in which line ends and tabs in strings are escaped. A backslash before one is no escape of it: the
// copy is then as invalid as text.
func escapeCharacters(text []byte) []byte {
	out := make([]byte, 0, len(text)+16)
	inString := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"':
			inString = !inString
		case inString && c == '\\' && i+1 < len(text):
			out = append(out, c)
			i++ // to the escaped byte, which is copied below
		case inString && strings.IndexByte("\n\r\t", c) >= 0:
			out = appendEscape(out, c)
			continue
		}
		out = append(out, text[i])
	}
	return out
}

// removeCommas returns a copy of text without the commas between a value and a closing bracket.
func removeCommas(text []byte) []byte {
	out := make([]byte, 0, len(text))
	last := byte(0) // the last byte that is not white space; of a string, its quote
	for i := 0; i < len(text); {
		end := i + 1
		if text[i] == '"' {
			end = skipString(text, i)
		}
		if text[i] != ',' || !trails(text, i, last) {
			out = append(out, text[i:end]...)
		}
		if SkipSpace(text, i) == i {
			last = text[i]
		}
		i = end
	}
	return out
}

// trails reports whether the comma at i is between a value, whose last byte is last, and a closing bracket.
func trails(text []byte, i int, last byte) bool {
	next := SkipSpace(text, i+1)
	return next < len(text) && (text[next] == '}' || text[next] == ']') && last != '{' && last != '[' && last != ','
}

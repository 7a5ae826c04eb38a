package rawjson

import (
	"bytes"
	"strings"
)

// The names of what RepairObject repairs.
const (
	RepairBOM       = "bom"               // a byte order mark in front
	RepairFence     = "code_fence"        // a Markdown code fence around the object
	RepairString    = "json_string"       // the object was written as a JSON string
	RepairCharacter = "control_character" // a line end or a tab stood in a string as it is
	RepairComma     = "trailing_comma"    // a comma stood before a closing bracket
)

// RepairObject returns the object that text stands for, if text is not an object as it stands and has one reading all the same, and the
// names of what was repaired, joined with commas. It returns false for all other texts. An object that was wrapped (in a fence, or as a string)
// begins with '{' and may still be broken; without a wrapping the object is valid. text has no white space around it.
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
		fixed, characters, commas := repairSyntax(text)
		if Check(fixed, Limits{}) != nil {
			return text, strings.Join(names, ","), wrapped
		}
		text = fixed
		if characters {
			names = append(names, RepairCharacter)
		}
		if commas {
			names = append(names, RepairComma)
		}
	}
	return text, strings.Join(names, ","), len(names) > 0
}

// repairSyntax returns a copy of text with line ends and tabs in strings escaped, and without the commas that stand after a value and before a
// closing bracket, and which of the two it found.
func repairSyntax(text []byte) (out []byte, characters, commas bool) {
	out = make([]byte, 0, len(text)+16)
	inString := false
	last := byte(0) // the last byte outside of strings that is not white space
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case inString && c == '\\' && i+1 < len(text):
			out = append(out, c)
			i++
			c = text[i]
		case inString && strings.IndexByte("\n\r\t", c) >= 0:
			out = append(out, '\\')
			c = "nrt"[strings.IndexByte("\n\r\t", c)]
			characters = true
		case c == '"':
			inString = !inString
			last = c
		case inString || strings.IndexByte(" \n\r\t", c) >= 0:
		default:
			if c == ',' && trails(text, i, last) {
				commas = true
				continue
			}
			last = c
		}
		out = append(out, c)
	}
	return out, characters, commas
}

// trails reports whether the comma at i stands after a value, which ends with last, and before a closing bracket.
func trails(text []byte, i int, last byte) bool {
	next := SkipSpace(text, i+1)
	return next < len(text) && (text[next] == '}' || text[next] == ']') && last != '{' && last != '[' && last != ','
}

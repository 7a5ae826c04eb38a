package agent

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// complete returns the JSON that the beginning of a JSON text contains: open strings, arrays and objects are closed, and a name without a
// value, or a number, true, false or null that may go on, is left out. It returns nil if text contains no value yet. It changes text.
//
//	{"city":"Os             {"city":"Os"}
//	{"days":[1,2,3          {"days":[1,2]}
//	{"city":"Oslo","da      {"city":"Oslo"}
func complete(text []byte) []byte {
	var open []byte // the closing brackets of the open objects and arrays
	safe := 0       // text[:safe] is a value once the open brackets are closed
	isName := false // the next string is the name of a member
	for at := 0; at < len(text); {
		end := at + 1
		switch c := text[at]; c {
		case '{':
			open, isName, safe = append(open, '}'), true, end
		case '[':
			open, isName, safe = append(open, ']'), false, end
		case '}', ']':
			if len(open) == 0 || open[len(open)-1] != c {
				return nil
			}
			open, safe = open[:len(open)-1], end
		case ',':
			isName = len(open) > 0 && open[len(open)-1] == '}'
		case ':':
			isName = false
		case ' ', '\t', '\r', '\n': // between tokens
		case '"':
			var closed bool
			if end, closed = stringEnd(text, at); !closed {
				text = append(text[:end], '"')
				end++
			}
			if !isName {
				safe = end
			}
		default: // a number, true, false or null, which may go on at the end of the text
			end = len(text)
			if n := bytes.IndexAny(text[at:], ",:}] \t\r\n"); n >= 0 {
				end = at + n
				safe = end
			}
		}
		at = end
	}
	if safe == 0 {
		return nil
	}
	slices.Reverse(open)
	return append(text[:safe], open...)
}

// stringEnd returns the end of the string that begins at start. If the text ends before the string, closed is false and end is after the
// last complete character.
func stringEnd(text []byte, start int) (end int, closed bool) {
	end = start + 1
	for end < len(text) {
		if text[end] == '"' {
			return end + 1, true
		}
		n := characterLength(text[end:])
		if n > len(text)-end {
			break
		}
		end += n
	}
	return end, false
}

// characterLength returns the length of the character or escape at the beginning of s. It is above len(s) if s ends before the character.
func characterLength(s []byte) int {
	switch {
	case s[0] == '\\' && len(s) > 1 && s[1] == 'u':
		if len(s) > 3 && (s[2] == 'd' || s[2] == 'D') && s[3] >= '8' { // the first half of a surrogate pair
			return len(`\uD83D\uDE00`)
		}
		return len(`\u0000`)
	case s[0] == '\\':
		return len(`\n`)
	case !utf8.FullRune(s):
		return len(s) + 1
	}
	_, n := utf8.DecodeRune(s)
	return n
}

package agent

import (
	"slices"
	"strings"
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
	safe := 0       // the length of the beginning that is a value once the brackets are closed
	key := false    // the next string is the name of a member
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case '{', '[':
			open = append(open, c+2) // the closing bracket: '}' is '{'+2, and ']' is '['+2
			key = c == '{'
			i++
			safe = i
		case '}', ']':
			if len(open) == 0 || open[len(open)-1] != c {
				return nil
			}
			open = open[:len(open)-1]
			i++
			safe = i
		case ',':
			key = len(open) > 0 && open[len(open)-1] == '}'
			i++
		case ':':
			key = false
			i++
		case ' ', '\t', '\r', '\n':
			i++
		case '"':
			end, closed := stringEnd(text, i)
			if !closed {
				text = text[:end]
				if !key {
					text = append(text, '"')
					end++
				}
			}
			i = end
			if !key {
				safe = i
			}
		default:
			for i < len(text) && strings.IndexByte(",:}] \t\r\n", text[i]) < 0 {
				i++
			}
			if i < len(text) {
				safe = i
			}
		}
	}
	if safe == 0 {
		return nil
	}
	slices.Reverse(open)
	return append(text[:safe], open...)
}

// stringEnd returns the end of the string that begins at i. If the text ends before the string, closed is false and end is after the last
// complete character.
func stringEnd(text []byte, i int) (end int, closed bool) {
	end = i + 1
	for i = end; i < len(text); end = i {
		switch {
		case text[i] == '"':
			return i + 1, true
		case text[i] == '\\' && i+1 < len(text) && text[i+1] == 'u':
			n := 6
			if i+3 < len(text) && text[i+2]|0x20 == 'd' && text[i+3] >= '8' { // the first half of a surrogate pair
				n = 12
			}
			if i+n > len(text) {
				return end, false
			}
			i += n
		case text[i] == '\\':
			if i+2 > len(text) {
				return end, false
			}
			i += 2
		case !utf8.FullRune(text[i:]):
			return end, false
		default:
			_, n := utf8.DecodeRune(text[i:])
			i += n
		}
	}
	return end, false
}

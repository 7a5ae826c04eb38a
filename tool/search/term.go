package search

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// eachTerm calls yield with the terms of a text, in order, until yield returns false. The bytes of a term are valid until yield returns.
func eachTerm(text string, yield func(term []byte) bool) {
	var buf [maxTermBytes]byte
	word := buf[:0]
	var previous, spaceless rune // spaceless is the previous character of a text without spaces; 0: none
	flush := func() bool {
		term := stem(word)
		word = buf[:0]
		return len(term) == 0 || stopWords[string(term)] || yield(term)
	}
	for i, r := range text {
		switch {
		case isSpaceless(r):
			if len(word) > 0 && !flush() {
				return
			}
			// Pairs of characters, or a single character that has no neighbour.
			if next, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):]); spaceless != 0 || !isSpaceless(next) {
				if spaceless != 0 {
					word = utf8.AppendRune(word, spaceless)
				}
				word = utf8.AppendRune(word, r)
				if !yield(word) {
					return
				}
				word = buf[:0]
			}
			spaceless, previous = r, 0
			continue
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r):
			if len(word) > 0 && !flush() {
				return
			}
			spaceless, previous = 0, 0
			continue
		case unicode.IsUpper(r) && len(word) > 0 && (!unicode.IsUpper(previous) || lowerFollows(text[i+utf8.RuneLen(r):])):
			// a word begins: W in getWeather, S in HTTPStatus
			if !flush() {
				return
			}
		}
		if lower := unicode.ToLower(r); len(word)+utf8.RuneLen(lower) <= maxTermBytes {
			word = utf8.AppendRune(word, lower)
		}
		spaceless, previous = 0, r
	}
	if len(word) > 0 {
		flush()
	}
}

func lowerFollows(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return unicode.IsLower(r)
}

// isSpaceless reports whether r is a letter of a script without spaces between words.
func isSpaceless(r rune) bool {
	return r >= 0x0e00 && unicode.IsOneOf(spacelessScripts, r)
}

var spacelessScripts = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

// stopWords are frequent English words that do not describe the purpose of a tool.
var stopWords = func() map[string]bool {
	words := map[string]bool{}
	for _, w := range strings.Fields(`a about all an and any are as at be been by can could do does for from give had has have
		how i if in into is it its me my need no not of on or our please should so some that the their them then there these
		this to use using want was we were what when where which who will with would you your`) {
		words[string(stem([]byte(w)))] = true
	}
	return words
}()

// suffixes are the English endings that stem replaces, with their replacements. The first match applies.
var suffixes = []struct{ end, to string }{
	{"ization", "iz"}, {"ational", "at"}, {"ations", "at"}, {"ation", "at"}, {"ators", "at"}, {"ator", "at"}, {"ating", "at"}, {"ated", "at"}, {"ates", "at"}, {"ate", "at"},
	{"ions", ""}, {"ion", ""}, {"ments", ""}, {"ment", ""}, {"nesses", ""}, {"ness", ""}, {"ings", ""}, {"ing", ""}, {"ies", "y"}, {"ied", "y"},
	{"ers", ""}, {"er", ""}, {"ors", ""}, {"or", ""}, {"ed", ""}, {"es", ""}, {"ly", ""}, {"s", ""}, {"e", ""},
}

// minStem is the minimum number of bytes of a stem.
const minStem = 3

// stem removes an English suffix from a word in lower case, so that convert, converts, converted, converting and conversion have equal or
// similar stems. It is not a linguistic analysis: it only makes words equal that probably have the same meaning.
func stem(word []byte) []byte {
	if len(word) <= minStem || !isASCIILetter(word[len(word)-1]) {
		return word
	}
	for _, s := range suffixes {
		if rest := len(word) - len(s.end); rest >= minStem && string(word[rest:]) == s.end {
			if s.end == "s" && word[rest-1] == 's' { // such as address
				return word
			}
			word = append(word[:rest], s.to...)
			break
		}
	}
	if n := len(word); n > minStem && word[n-1] == word[n-2] && isASCIILetter(word[n-1]) { // such as planning, controlled
		word = word[:n-1]
	}
	return word
}

func isASCIILetter(c byte) bool { return 'a' <= c && c <= 'z' }

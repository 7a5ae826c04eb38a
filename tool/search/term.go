package search

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// termsOf returns the terms of a text, in order.
func termsOf(text string) []string {
	terms := make([]string, 0, len(text)/6) // about the number of words
	for field := range strings.FieldsFuncSeq(text, isSeparator) {
		start := 0 // of the current word
		var previous rune
		for i, r := range field {
			if i > 0 && beginsWord(previous, r, field[i+utf8.RuneLen(r):]) {
				terms = appendTerms(terms, field[start:i])
				start = i
			}
			previous = r
		}
		terms = appendTerms(terms, field[start:])
	}
	return terms
}

func isSeparator(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && !isSpaceless(r)
}

// beginsWord reports whether a word begins with r, which is between previous and rest: W in getWeather, S in HTTPStatus.
func beginsWord(previous, r rune, rest string) bool {
	if isSpaceless(previous) || isSpaceless(r) {
		return isSpaceless(previous) != isSpaceless(r)
	}
	next, _ := utf8.DecodeRuneInString(rest)
	return unicode.IsUpper(r) && (!unicode.IsUpper(previous) || unicode.IsLower(next))
}

// appendTerms appends the terms of a word, whose characters are either all spaceless or none: the pairs of neighbours, or the stem of the word
// unless it is a stop word.
func appendTerms(terms []string, word string) []string {
	if first, _ := utf8.DecodeRuneInString(word); isSpaceless(first) {
		return appendPairs(terms, word)
	}
	var buf [maxTermBytes]byte
	term := buf[:0]
	for _, r := range word {
		if lower := unicode.ToLower(r); len(term)+utf8.RuneLen(lower) <= maxTermBytes {
			term = utf8.AppendRune(term, lower)
		}
	}
	term = stem(term)
	if stopWords[string(term)] {
		return terms
	}
	return append(terms, string(term))
}

// appendPairs appends each pair of neighbouring characters, or the only character.
func appendPairs(terms []string, word string) []string {
	start := 0 // of the pair
	for i, r := range word {
		end := i + utf8.RuneLen(r)
		if i > 0 || end == len(word) {
			terms = append(terms, strings.Clone(word[start:end]))
		}
		start = i
	}
	return terms
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

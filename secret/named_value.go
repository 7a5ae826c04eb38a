package secret

// This file finds the end of a value behind the name of a secret, and the words behind a name that are not a value.

import "strings"

const (
	// noSecrets are words that may follow the name of a secret but are not a secret.
	noSecrets = " true false null none nil undefined valid invalid missing expired revoked required optional needed wrong correct incorrect " +
		"empty set unset unknown denied string str number integer int boolean bool bytes object "
	// explaining are words of error messages. Behind the name of a header and a colon they are not a value.
	explaining = noSecrets + "a an and are as at be been by can cannot could did do does for from had has have if in is isn't it its may must " +
		"no not of on only or our please should than that the there this to too was we were when which will with without would you your " +
		"absent accepted allowed attached authentication authorization authorized bad blank challenge check contains cookie cookies credentials " +
		"disabled enabled error expected failed failure field fields format found given header headers ignored include included insufficient key " +
		"malformed mismatch needs parameter permission permissions permitted present provided received refused rejected request requests requires " +
		"scheme schemes scope scopes see send sent session set sign signature specified supplied supported token tokens try type unauthenticated " +
		"unauthorized unexpected unrecognized unsupported use used user using value values verification "
	// closing are characters that, at the end of a value, do not belong to it.
	closing = "\"'`)]}>.:!?*\\"
	// minValue is the least length of a value without digits that follows a quoted name and a colon in an error text.
	minValue = 16
)

// value returns the position s[from:to] of the value at the beginning of s. It is empty if s does not begin with a secret.
func (n *name) value(s string, style style) (from, to int) {
	slashes := len(s) - len(strings.TrimLeft(s, `\`))
	if slashes == len(s) || !isQuote(s[slashes]) {
		return n.unquoted(s, style)
	}
	if n.closed == "" && s[slashes] == n.opened { // the quote ends a quotation that contains the name
		return 0, 0
	}
	from = slashes + 1
	to = from + quoted(s[from:], s[slashes], slashes)
	if n.isNone(s[from:to]) {
		to = from
	}
	return from, to
}

// unquoted returns what value returns, for a value without a quote before it: a list or object in brackets, the words of a header, or one
// word. An authentication scheme before it is not part of it.
func (n *name) unquoted(s string, style style) (from, to int) {
	from = len(schemePattern().FindString(s))
	rest := s[from:]
	if behind, ok := strings.CutPrefix(rest, Redacted); ok { // the rest of the word is removed, too
		return from, from + len(Redacted) + len(firstWord(behind))
	}
	if from == 0 && rest != "" && (rest[0] == '[' || rest[0] == '{') {
		return 0, balanced(s)
	}
	word := firstWord(rest)
	words := 1
	if from == 0 && n.text == "authorization" {
		words = 2 // the first word is an authentication scheme that the pattern does not know
	}
	isExplanation := style == errorText && (n.isExplained(word) || n.hasColon() && isSentence(rest, words))
	if n.isNone(word) || isExplanation {
		return from, from
	}
	if n.isHeader() {
		word = strings.TrimRight(rest[:headerLength(rest, words)], closing+",; \t")
	}
	return from, from + len(word)
}

// firstWord returns s up to the first blank, comma or semicolon, without closing characters.
func firstWord(s string) string {
	if end := strings.IndexAny(s, " \t\r\n,;"); end >= 0 {
		s = s[:end]
	}
	return strings.TrimRight(s, closing)
}

// hasColon reports whether a colon separates the name from the value.
func (n *name) hasColon() bool { return strings.HasPrefix(strings.TrimSpace(n.sign), ":") }

// isSentence reports whether the first n words of s, or all if s has fewer, are words of error messages. If the line contains an equals sign
// or a semicolon, it returns false.
func isSentence(s string, n int) bool {
	line, _, _ := strings.Cut(s[:min(len(s), maxNested)], "\n")
	if strings.ContainsAny(line, "=;") {
		return false
	}
	fields := strings.Fields(line)
	for _, word := range fields[:min(len(fields), n)] {
		if !explains(strings.TrimRight(word, closing+",")) {
			return false
		}
	}
	return len(fields) > 0
}

// explains reports whether a word is one of explaining.
func explains(word string) bool {
	return word != "" && strings.Contains(explaining, " "+strings.ToLower(word)+" ")
}

// isNone reports whether a word behind the name is not its value: it is one of noSecrets, or a number behind "tokens".
func (n *name) isNone(word string) bool {
	return word != "" && strings.Contains(noSecrets, " "+strings.ToLower(word)+" ") || n.text == "tokens" && numberPattern().MatchString(word)
}

// isExplained reports whether a word behind a quoted name and a colon begins an explanation in an error text, where a value would have
// quotes. A word with digits, or of minValue bytes or more, is a value.
func (n *name) isExplained(word string) bool {
	return n.closed != "" && n.hasColon() && !n.isHeader() && len(word) < minValue && !strings.ContainsAny(word, "0123456789")
}

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// quoted returns the length of the string at the beginning of s, after its first quote: 3 for x\"y" if slashes, the number of backslashes
// before the first quote, is 0. The closing quote has as many backslashes before it; a quote within the string has more.
func quoted(s string, quote byte, slashes int) int {
	escaped := 2*slashes + 2 // the backslashes that stand for one in the string: they do not escape a quote
	run := 0                 // backslashes before s[i]
	for i := range len(s) {
		if s[i] == '\\' {
			run++
			continue
		}
		if s[i] == quote && run%escaped <= slashes {
			return i - min(run, slashes)
		}
		run = 0
	}
	return len(s)
}

// afterQuote returns the index behind the string whose first quote is s[first]. slashes is the number of backslashes before that quote.
func afterQuote(s string, first, slashes int) int {
	end := first + 1 + quoted(s[first+1:], s[first], slashes)
	last := strings.IndexByte(s[end:], s[first]) // the number of backslashes before the closing quote
	if last < 0 {
		return len(s)
	}
	return end + last + 1
}

// slashesBefore returns the number of backslashes before s[i].
func slashesBefore(s string, i int) int { return i - len(strings.TrimRight(s[:i], `\`)) }

// balanced returns the length of the list or object at the beginning of s, up to its last bracket.
func balanced(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			i = afterQuote(s, i, slashesBefore(s, i)) - 1
		case '[', '{':
			depth++
		case ']', '}':
			depth--
			if depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// headerLength returns the length of the first n words of the value of a header. A word that ends with a comma, a semicolon, a colon or an
// equals sign is not counted, because another word follows it: "a=1; b=2" has one word.
func headerLength(s string, n int) int {
	at := 0
	for n > 0 {
		at = len(s) - len(strings.TrimLeft(s[at:], " \t"))
		length, isLast := headerWord(s[at:])
		at += length
		if isLast || length == 0 {
			break
		}
		if !strings.ContainsRune(",;:=", rune(s[at-1])) {
			n--
		}
	}
	return at
}

// headerWord returns the length of the word at the beginning of s, which may contain a quoted string behind an equals sign. Any other quote
// ends the word and the value of the header: isLast is then true.
func headerWord(s string) (length int, isLast bool) {
	for length < len(s) && !strings.ContainsRune(" \t\r\n", rune(s[length])) {
		if !isQuote(s[length]) {
			length++
			continue
		}
		slashes := slashesBefore(s, length)
		if !strings.HasSuffix(s[:length-slashes], "=") {
			return length - slashes, true
		}
		length = afterQuote(s, length, slashes)
	}
	return length, false
}

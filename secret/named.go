package secret

// This file finds values by the names before them: x in `api_key=x`, `"password": "x"`, `Authorization: Bearer x` and `--token x`.

import (
	"regexp"
	"strings"
	"sync"
)

// The expressions find values by the names around them, in one pass. A name (namePattern) is that of a secret in any spelling: its words are joined by an
// underscore, a hyphen, a blank or a change of case, and other words may precede them. The value follows an equals sign or a colon, a flag
// of a command, and in prose the word "is".
var (
	pemPattern      = lazy(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`)
	userInfoPattern = lazy(`(:\\?/\\?/)[^\s/?#"'<>\\]+@`)
	namePattern     = lazy(`(?i)(--(?:[a-z\d]+-)*)?` +
		`((?:api|access|private|secret|signing|encryption|account|master|auth|shared|subscription)[ _-]*keys?|` +
		`pass[ _-]?(?:word|wd|phrase|code)s?|pwd|secrets?|tokens?|credentials?|creds|authorization|cookies?|pass|auth)` +
		`(?:[_-]?\d+|[_-](?:base|value|prod|dev|test|staging|old|new))*` +
		"([\\\\\"'`*)\\]]*)" + // what closes a quoted name
		`(\s*(?::=?|=[=>]?)[\s*]*|\s+(?:is|was)\s+(?:(?:now|set\s+to)\s+)?|[ \t]+)`)
	schemePattern  = lazy(`(?i)^(?:bearer|basic|token|digest|negotiate|api-?key|oauth|dpop|aws4-hmac-sha256)[ \t]+`)
	numberPattern  = lazy(`^[-+~]?\d[\d_.,/]*$`)
	addressPattern = lazy(`[\w.+-]+@[\w-]+(?:\.[\w-]+)+`)
)

// lazy returns a function that compiles expr in its first call.
func lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

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

// ScrubProse returns text of a model or a person as [Scrub] does, and also without e-mail addresses and without what a sentence or a file
// names as a secret ("the password is x", "token: x"). If in doubt, it removes a word, which would be too strict for error messages.
// ScrubProse is idempotent.
func ScrubProse(text string) string {
	return addressPattern().ReplaceAllString(scrub(text, prose), Redacted)
}

// scrubNamed replaces private keys in PEM, user information in URLs, and values that follow the name of a secret.
func scrubNamed(text string, style style) string {
	text = pemPattern().ReplaceAllString(text, Redacted)
	text = userInfoPattern().ReplaceAllString(text, "${1}"+Redacted+"@")
	var b strings.Builder
	done, at := 0, 0 // text[:done] is in b, and text[:at] is read
	for {
		n := nextName(text, at)
		if n == nil {
			return b.String() + text[done:]
		}
		at = n.end
		onNextLine := strings.ContainsAny(n.sign, "\r\n")
		if !n.assigns(style) || style == errorText && onNextLine {
			continue
		}
		from, to := n.value(text[at:], style)
		value := text[at+from : at+to]
		isSecret := value != "" && value != Redacted
		if isSecret && namesAnother(text[at+from:], len(value), style) {
			continue
		}
		if isSecret {
			b.WriteString(text[done : at+from])
			b.WriteString(Redacted)
			done = at + to
		}
		at += to
	}
}

// nextName searches text in windows of this many bytes that overlap, since the expression is slow and most text contains no word of a name.
// A match must end margin bytes before the end of its window, unless the window is the last one.
const window, overlap, margin = 256, 64, 16

// nextName returns the first name of a secret in text[at:], or nil if text[at:] names no secret.
func nextName(text string, at int) *name {
	for {
		part := text[at:min(len(text), at+window)]
		isLast := at+len(part) == len(text)
		var match []int
		if mayName(part) {
			match = namePattern().FindStringSubmatchIndex(part)
		}
		switch {
		case match == nil && isLast:
			return nil
		case match == nil:
			at += len(part) - overlap
		case !isLast && match[0] > 0 && match[1] > len(part)-margin:
			at += match[0] // the match may continue behind the window: search again from its start
		default:
			return newName(text, at, match)
		}
	}
}

// newName returns the name of a match in text[at:]. The groups of the match are the flag, the name, what closes it, and the sign.
func newName(text string, at int, match []int) *name {
	group := func(i int) string { return text[at+match[2*i] : at+match[2*i+1]] }
	n := &name{text: strings.ToLower(group(2)), closed: group(3), sign: group(4), flag: match[2] >= 0, start: at + match[0], end: at + match[1]}
	if first := at + match[4]; first > 0 {
		n.opened = quoteBefore(text[:first])
		n.joined, n.dashed = isJoined(text[first-1], text[first]), text[first-1] == '-'
	}
	return n
}

// mayName reports whether text contains one of the words of which every name of a secret contains at least one.
func mayName(text string) bool {
	text = strings.ToLower(text)
	for _, word := range [...]string{"key", "pass", "pwd", "secret", "token", "cred", "auth", "cookie"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// maxNested limits, in bytes, the text behind a name in which namesAnother searches for another name, and in which isSentence reads.
const maxNested = 128

// namesAnother reports whether the first length bytes of s, which would be a value, end with the name of another secret that has a value of
// its own, as in "secrets: api key: x".
func namesAnother(s string, length int, style style) bool {
	if length >= maxNested {
		return false
	}
	for at := 0; at < length; {
		n := nextName(s[:min(len(s), maxNested)], at)
		if n == nil || n.start >= length {
			return false
		}
		if n.end > length && n.assigns(style) {
			return true
		}
		at = n.end
	}
	return false
}

// isJoined reports whether the byte first, behind the byte before, begins a word within a longer name: behind an underscore or a hyphen, or
// as a capital behind a small letter.
func isJoined(before, first byte) bool {
	return before == '_' || before == '-' || before >= 'a' && before <= 'z' && first >= 'A' && first <= 'Z'
}

// A name is the name of a secret in a text, with its surroundings. In {"my_apiKey": "x"}, opened is the quote before my, text is apikey,
// closed is the quote after it, and sign is the colon and the space.
type name struct {
	text       string // in lower case
	start, end int    // the indexes at which the match begins, and at which the value begins
	opened     byte   // the quote before the name, or 0
	closed     string // what closes a quoted name
	sign       string // what separates the name from the value
	flag       bool   // it is a flag of a command: --token
	joined     bool   // another word precedes it in the same name
	dashed     bool   // a hyphen precedes it
}

// isHeader reports whether the value is that of a header, which may be a list of words.
func (n *name) isHeader() bool {
	return n.text == "authorization" || strings.HasPrefix(n.text, "cookie")
}

// assigns reports whether the text behind the name is its value.
func (n *name) assigns(style style) bool {
	sign := strings.TrimSpace(n.sign)
	if sign == "" {
		return n.flag
	}
	isWord := strings.ContainsRune("iIwW", rune(sign[0])) // "is" or "was"
	if style == errorText && isWord {
		return false
	}
	isQuoted := strings.ContainsAny(n.closed, "\"'`")
	isField := sign[0] == ':' && (n.isHeader() || n.dashed || strings.Contains(n.text, "-"))
	sure := n.flag || sign == "=" || isQuoted || isField
	switch n.text {
	case "tokens": // mostly counts of tokens
		return sure
	// These are also common words, and the ends of other words.
	case "pass", "auth":
		return sure || style == prose && n.joined
	}
	return sure || style == prose
}

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

const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// quoteBefore returns the quote before the name at the end of text, or 0.
func quoteBefore(text string) byte {
	text = strings.TrimRight(text[max(0, len(text)-margin):], alphanumeric+"_-")
	if text == "" || !isQuote(text[len(text)-1]) {
		return 0
	}
	return text[len(text)-1]
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

package secret

import (
	"regexp"
	"strings"
	"sync"
)

// Values are found by the names around them, in one pass. A name is that of a secret in any spelling: its words are joined by
// an underscore, a hyphen, a blank or their case, and other words may stand before them. The value stands behind an equals sign or a
// colon, behind a flag of a command, and in prose behind "is".
var patterns = sync.OnceValue(func() (p struct{ pem, userInfo, named, scheme, number, address *regexp.Regexp }) {
	p.pem = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`)
	p.userInfo = regexp.MustCompile(`(:\\?/\\?/)[^\s/?#"'<>\\]+@`)
	p.named = regexp.MustCompile(`(?i)(--(?:[a-z\d]+-)*)?` +
		`((?:api|access|private|secret|signing|encryption|account|master|auth|shared|subscription)[ _-]*keys?|` +
		`pass[ _-]?(?:word|wd|phrase|code)s?|pwd|secrets?|tokens?|credentials?|creds|authorization|cookies?|pass|auth)` +
		`(?:[_-]?\d+|[_-](?:base|value|prod|dev|test|staging|old|new))*` +
		"([\\\\\"'`*)\\]]*)" + // what ends a name that is quoted
		`(\s*(?::=?|=[=>]?)[\s*]*|\s+(?:is|was)\s+(?:(?:now|set\s+to)\s+)?|[ \t]+)`)
	p.scheme = regexp.MustCompile(`(?i)^(?:bearer|basic|token|digest|negotiate|api-?key|oauth|dpop|aws4-hmac-sha256)[ \t]+`)
	p.number = regexp.MustCompile(`^[-+~]?\d[\d_.,/]*$`)
	p.address = regexp.MustCompile(`[\w.+-]+@[\w-]+(?:\.[\w-]+)+`)
	return p
})

const (
	// noSecrets are words that stand behind the name of a secret and are none.
	noSecrets = " true false null none nil undefined valid invalid missing expired revoked required optional needed wrong correct incorrect " +
		"empty set unset unknown denied string str number integer int boolean bool bytes object "
	// explaining are words of which errors are made, and which are no values, where they stand behind the name of a header and a colon.
	explaining = noSecrets + "a an and are as at be been by can cannot could did do does for from had has have if in is isn't it its may must " +
		"no not of on only or our please should than that the there this to too was we were when which will with without would you your " +
		"absent accepted allowed attached authentication authorization authorized bad blank challenge check contains cookie cookies credentials " +
		"disabled enabled error expected failed failure field fields format found given header headers ignored include included insufficient key " +
		"malformed mismatch needs parameter permission permissions permitted present provided received refused rejected request requests requires " +
		"scheme schemes scope scopes see send sent session set sign signature specified supplied supported token tokens try type unauthenticated " +
		"unauthorized unexpected unrecognized unsupported use used user using value values verification "
	// closing are characters that are not of the value before them.
	closing = "\"'`)]}>.:!?*\\"
	// minValue is the least length of a value without digits behind a quoted name, in the text of an error.
	minValue = 16
)

// ScrubProse returns text of a model or a person as [Scrub] does, and also without e-mail addresses and without what a sentence or a
// file calls a secret ("the password is x", "token: x"). In doubt a word is taken for a secret, which would be too much for the messages
// of errors. ScrubProse is idempotent.
func ScrubProse(text string) string {
	return patterns().address.ReplaceAllString(scrub(text, true), Redacted)
}

// scrubNamed replaces user information in URLs and values by their names. Outside of prose only what is clearly assigned is a value.
func scrubNamed(text string, prose bool) string {
	text = patterns().pem.ReplaceAllString(text, Redacted)
	text = patterns().userInfo.ReplaceAllString(text, "${1}"+Redacted+"@")
	var b strings.Builder
	done, at := 0, 0 // text[:done] is in b, and text[:at] is read
	for {
		n, _, behind := nextName(text, at)
		if behind < 0 {
			return b.String() + text[done:]
		}
		if at = behind; !n.assigns(prose) || !prose && strings.ContainsAny(n.sign, "\r\n") {
			continue
		}
		from, to := n.value(text[at:], prose)
		if value := text[at+from : at+to]; value == "" || value == Redacted {
			at += to
		} else if !namesAnother(text[at+from:], to-from, prose) {
			b.WriteString(text[done : at+from])
			b.WriteString(Redacted)
			at += to
			done = at
		}
	}
}

// A name and its sign are looked for in windows that overlap, since the expression is slow and most text has no word of a name: what is
// between a name and its value is read up to this size.
const window, overlap, margin = 256, 64, 16

// nextName returns the first name of a secret in text[at:], with the indexes in text at which the name and its value begin. If text[at:]
// has no such name, they are -1.
func nextName(text string, at int) (n name, start, behind int) {
	for {
		part := text[at:min(len(text), at+window)]
		isLast := at+len(part) == len(text)
		var m []int
		if mayName(part) {
			m = patterns().named.FindStringSubmatchIndex(part)
		}
		switch {
		case m != nil && !isLast && m[0] > 0 && m[1] > len(part)-margin: // it may go on
			at += m[0]
			continue
		case m != nil:
			group := func(i int) string { return part[m[2*i]:m[2*i+1]] }
			n = name{text: strings.ToLower(group(2)), closed: group(3), sign: group(4), flag: m[2] >= 0}
			if first := at + m[4]; first > 0 {
				n.opened = quoteBefore(text[:first])
				n.joined, n.dashed = isJoined(text[first-1], text[first]), text[first-1] == '-'
			}
			return n, at + m[0], at + m[1]
		case isLast:
			return n, -1, -1
		}
		at += len(part) - overlap
	}
}

// mayName reports whether text has a word that every name has one of.
func mayName(text string) bool {
	text = strings.ToLower(text)
	for _, word := range [...]string{"key", "pass", "pwd", "secret", "token", "cred", "auth", "cookie"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// maxNested is how far a name that stands where a value is expected is looked for.
const maxNested = 128

// namesAnother reports whether what would be a value, of that length, has the name of another secret at its end, as in
// "secrets: api key: x".
func namesAnother(s string, length int, prose bool) bool {
	if length >= maxNested {
		return false
	}
	for at := 0; at < length; {
		n, start, behind := nextName(s[:min(len(s), maxNested)], at)
		if behind < 0 || start >= length {
			return false
		}
		if behind > length && n.assigns(prose) {
			return true
		}
		at = behind
	}
	return false
}

// isJoined reports whether a word begins within a name.
func isJoined(before, first byte) bool {
	return before == '_' || before == '-' || before >= 'a' && before <= 'z' && first >= 'A' && first <= 'Z'
}

// A name is that of a secret, in lower case, and what stands around it.
type name struct {
	text, closed, sign   string
	opened               byte // the quote before the name, or 0
	flag, joined, dashed bool // it is a flag of a command; a word stands before it in the same name; a hyphen stands before it
}

// isHeader reports whether the value is that of a header, which may be a list.
func (n *name) isHeader() bool {
	return n.text == "authorization" || strings.HasPrefix(n.text, "cookie")
}

// assigns reports whether a value follows.
func (n *name) assigns(prose bool) bool {
	sign := strings.TrimSpace(n.sign)
	if sign == "" {
		return n.flag
	}
	if c := sign[0] | 0x20; !prose && (c == 'i' || c == 'w') {
		return false
	}
	sure := n.flag || sign == "=" || strings.ContainsAny(n.closed, "\"'`") ||
		sign[0] == ':' && (n.isHeader() || n.dashed || strings.Contains(n.text, "-"))
	switch n.text {
	case "tokens": // are counted more often than shown
		return sure
	case "pass", "auth": // are also words, and ends of words
		return sure || prose && n.joined
	}
	return sure || prose
}

// value returns where the value at the beginning of s is: s[from:to] is empty if that is no secret.
func (n *name) value(s string, prose bool) (from, to int) {
	slashes := len(s) - len(strings.TrimLeft(s, `\`))
	if slashes == len(s) || !isQuote(s[slashes]) {
		return n.unquoted(s, prose)
	}
	if n.closed == "" && s[slashes] == n.opened { // it ends a quotation that the name is in
		return 0, 0
	}
	from = slashes + 1
	if to = from + quoted(s[from:], s[slashes], slashes); n.isNone(s[from:to]) {
		to = from
	}
	return from, to
}

// unquoted is value for one that does not begin with a quote.
func (n *name) unquoted(s string, prose bool) (from, to int) {
	p := patterns()
	from = len(p.scheme.FindString(s))
	rest, known := s[from:], 0
	if strings.HasPrefix(rest, Redacted) {
		known = len(Redacted) // nothing follows but what is left of a word
	} else if from == 0 && rest != "" && (rest[0] == '[' || rest[0] == '{') {
		return 0, balanced(s)
	}
	end := strings.IndexAny(rest, " \t\r\n,;")
	if end < 0 {
		end = len(rest)
	}
	word := strings.TrimRight(rest[known:end], closing)
	if known == 0 && (n.isNone(word) || !prose && n.isExplained(word)) {
		return from, from
	}
	words := 1
	if from == 0 && n.text == "authorization" {
		words = 2 // of which the first is a scheme that is not known
	}
	if known == 0 && !prose && strings.HasPrefix(strings.TrimSpace(n.sign), ":") && isSentence(rest, words) {
		return from, from
	}
	if known == 0 && n.isHeader() {
		word = strings.TrimRight(rest[:listed(rest, words)], closing+",; \t")
	}
	return from, from + known + len(word)
}

// isSentence reports whether so many words at the beginning of s, or all of them, are of a sentence that explains something. A line
// that assigns anything is none.
func isSentence(s string, words int) bool {
	line, _, _ := strings.Cut(s[:min(len(s), maxNested)], "\n")
	if strings.ContainsAny(line, "=;") {
		return false
	}
	fields := strings.Fields(line)
	for _, word := range fields[:min(len(fields), words)] {
		if !explains(strings.TrimRight(word, closing+",")) {
			return false
		}
	}
	return len(fields) > 0
}

// explains reports whether a word is one of those that errors are made of.
func explains(word string) bool {
	return word != "" && strings.Contains(explaining, " "+strings.ToLower(word)+" ")
}

// isNone reports whether a word behind the name is none of its values: it says something of it, or is a number of tokens.
func (n *name) isNone(word string) bool {
	return word != "" && strings.Contains(noSecrets, " "+strings.ToLower(word)+" ") || n.text == "tokens" && patterns().number.MatchString(word)
}

// isExplained reports whether a word behind a quoted name and a colon begins an explanation, in the text of an error: a value has quotes there.
func (n *name) isExplained(word string) bool {
	return n.closed != "" && strings.HasPrefix(strings.TrimSpace(n.sign), ":") && !n.isHeader() && len(word) < minValue && !strings.ContainsAny(word, "0123456789")
}

// quoteBefore returns the quote that stands before the name at the end of text, or 0.
func quoteBefore(text string) byte {
	text = strings.TrimRight(text[max(0, len(text)-margin):], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
	if text == "" || !isQuote(text[len(text)-1]) {
		return 0
	}
	return text[len(text)-1]
}

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// quoted returns the length of the string at the beginning of s. Its last quote has as many backslashes before it as its first one:
// one that is a part of it has more.
func quoted(s string, quote byte, slashes int) int {
	run := 0
	for i := range len(s) {
		if s[i] == '\\' {
			run++
			continue
		}
		if s[i] == quote && run%(2*slashes+2) <= slashes {
			return i - min(run, slashes)
		}
		run = 0
	}
	return len(s)
}

// afterQuote returns the index behind the string that begins with the quote at s[i], before which there are backslashes.
func afterQuote(s string, i, slashes int) int {
	quote := s[i]
	i++
	for i += quoted(s[i:], quote, slashes); i < len(s) && s[i] != quote; {
		i++
	}
	return min(i+1, len(s))
}

// balanced returns the length of the list or object at the beginning of s.
func balanced(s string) int {
	depth, run := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			run++
			continue
		case '"':
			i = afterQuote(s, i, run) - 1
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		run = 0
	}
	return len(s)
}

// listed returns the length of so many words of a header. A word that ends with a comma, a semicolon or a sign has another one behind it.
func listed(s string, words int) int {
	i := 0
	for words > 0 && i < len(s) && s[i] != '\n' && s[i] != '\r' {
		if s[i] == ' ' || s[i] == '\t' {
			i++
			continue
		}
		for i < len(s) && !strings.ContainsRune(" \t\r\n", rune(s[i])) {
			if !isQuote(s[i]) {
				i++
				continue
			}
			before := len(strings.TrimRight(s[:i], `\`))
			if before == 0 || s[before-1] != '=' {
				return before
			}
			i = afterQuote(s, i, i-before)
		}
		if !strings.ContainsRune(",;:=", rune(s[i-1])) {
			words--
		}
	}
	return i
}

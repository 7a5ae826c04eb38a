package secret

// This file finds values by the names before them: x in `api_key=x`, `"password": "x"`, `Authorization: Bearer x` and `--token x`.

import (
	"regexp"
	"strings"
	"sync"
)

// namePattern matches the name of a secret in any spelling, and what separates it from the text behind it. The words of a name are joined by an
// underscore, a hyphen, a blank or a change of case, and other words may precede them. The value follows an equals sign or a colon, a flag
// of a command, and in prose the word "is". Its groups are, by number:
//
//  1. the flag of a command and the words before the name in it, as in --my-
//  2. the name, without the number or the word that may follow it, as in token_2
//  3. what closes a quoted name
//  4. the sign that separates the name from the value
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
	done, at := 0, 0 // text[:done] is in b, and text[:at] is read; done <= at
	for {
		n := nextName(text, at)
		if n == nil {
			return b.String() + text[done:]
		}
		at = n.end // the value is text[at+from : at+to]
		onNextLine := strings.ContainsAny(n.sign, "\r\n")
		if !n.assigns(style) || style == errorText && onNextLine {
			continue
		}
		from, to := n.value(text[at:], style)
		if value := text[at+from : at+to]; value != "" && value != Redacted {
			if namesAnother(text[at+from:], len(value), style) {
				continue // only the value of the other name is a secret
			}
			b.WriteString(text[done : at+from])
			b.WriteString(Redacted)
			done = at + to
		}
		at += to
	}
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

// nextName searches text in windows of this many bytes that overlap, since the expression is slow and most text contains no word of a name.
// A match must end margin bytes before the end of its window, unless the window is the last one: the match could continue behind it. Such a
// match is searched for again in a window that begins with it, where it is accepted at any length.
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

// newName returns the name of a match in text[at:]. namePattern lists the groups of the match.
func newName(text string, at int, match []int) *name {
	group := func(i int) string { return text[at+match[2*i] : at+match[2*i+1]] }
	n := &name{text: strings.ToLower(group(2)), closed: group(3), sign: group(4), flag: match[2] >= 0, start: at + match[0], end: at + match[1]}
	if first := at + match[4]; first > 0 {
		n.opened = quoteBefore(text[:first])
		n.joined, n.dashed = isJoined(text[first-1], text[first]), text[first-1] == '-'
	}
	return n
}

// isJoined reports whether the byte first, behind the byte before, begins a word within a longer name: behind an underscore or a hyphen, or
// as a capital behind a small letter.
func isJoined(before, first byte) bool {
	return before == '_' || before == '-' || before >= 'a' && before <= 'z' && first >= 'A' && first <= 'Z'
}

const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// maxWords limits, in bytes, the other words between a quote and the name of a secret, with the quote.
const maxWords = 16

// quoteBefore returns the quote before the name, which begins at the end of text and may have other words before it; 0 if none exists.
func quoteBefore(text string) byte {
	text = strings.TrimRight(text[max(0, len(text)-maxWords):], alphanumeric+"_-")
	if text == "" || !isQuote(text[len(text)-1]) {
		return 0
	}
	return text[len(text)-1]
}

// isHeader reports whether the value is that of a header, which may be a list of words.
func (n *name) isHeader() bool {
	return n.text == "authorization" || strings.HasPrefix(n.text, "cookie")
}

// assigns reports whether the text behind the name is its value.
func (n *name) assigns(style style) bool {
	sign := strings.TrimSpace(n.sign)
	if sign == "" { // only blanks separate the name from the text behind it
		return n.flag
	}
	isWord := strings.ContainsRune("iIwW", rune(sign[0])) // "is" or "was"
	if style == errorText && isWord {
		return false
	}
	isQuoted := strings.ContainsAny(n.closed, "\"'`")
	isField := sign[0] == ':' && (n.isHeader() || n.dashed || strings.Contains(n.text, "-"))
	isClear := n.flag || sign == "=" || isQuoted || isField
	// "tokens" is mostly a count. The others are also common words and, alone, the ends of other words.
	isDoubtful := n.text == "tokens" || (n.text == "pass" || n.text == "auth") && !n.joined
	return isClear || style == prose && !isDoubtful
}

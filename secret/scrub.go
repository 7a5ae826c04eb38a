package secret

import "strings"

// minKnown is the least length, in bytes, of a known secret that Scrub removes. Shorter ones are placeholders for local servers ("x", "-"),
// and their removal would only make the text unreadable.
const minKnown = 4

// minToken is the least length, in bytes, of a key: a word after "Bearer" or "Basic", or with the prefix of a known kind of key.
const minToken = 8

// Scrub returns text with [Redacted] in place of each secret. It replaces:
//
//   - the known secrets of at least 4 bytes, also one that is truncated at the end of text
//   - what looks like a key: the word after "Bearer" or "Basic", words with the prefix of a known kind of key, and JSON web tokens
//   - values assigned to the name of a secret (`DB_PASS=x`, `"apiKey": "x"`), also within a string of JSON
//   - values of headers that authorize (`Cookie: x`, `X-Auth-Token: x`) and of flags (`--token x`)
//   - user information in URLs, and private keys in PEM
//
// Words that explain a header ("authorization: the header is malformed") stay. The time is linear in the length of text.
func Scrub(text string, known ...Secret) string { return scrub(text, errorText, known...) }

// A style says by whom a text is written, which decides what counts as a secret in it.
type style int

const (
	errorText style = iota // by programs: a value must be clearly assigned to the name of a secret
	prose                  // by models and people: "the password is x" assigns a value, too
)

func scrub(text string, style style, known ...Secret) string {
	for _, k := range known {
		text = scrubKnown(text, k.Reveal())
	}
	text = scrubNamed(text, style)
	var b strings.Builder
	done := 0            // text[:done] is in b
	afterScheme := false // the previous word is "Bearer" or "Basic"
	for start, end := nextWord(text, 0); start < end; start, end = nextWord(text, end) {
		word := text[start:end]
		isKey := len(word) >= minToken && (afterScheme && !explains(word) || hasKeyPrefix(word))
		isRedacted := start > 0 && strings.HasPrefix(text[start-1:], Redacted)
		if isKey && !isRedacted {
			b.WriteString(text[done:start])
			b.WriteString(Redacted)
			done = end
		}
		afterScheme = strings.EqualFold(word, "bearer") || strings.EqualFold(word, "basic")
	}
	return b.String() + text[done:]
}

// scrubKnown replaces the value of a known secret, and the beginning of the value at the end of text.
func scrubKnown(text, value string) string {
	if len(value) < minKnown {
		return text
	}
	text = strings.ReplaceAll(text, value, Redacted)
	for n := min(len(value)-1, len(text)); n >= minKnown; n-- {
		if strings.HasSuffix(text, value[:n]) {
			return text[:len(text)-n] + Redacted
		}
	}
	return text
}

// nextWord returns the position of the first word in text[at:] that consists of bytes of keys; start is end if text[at:] has none.
func nextWord[T string | []byte](text T, at int) (start, end int) {
	for start = at; start < len(text) && !isTokenByte(text[start]); {
		start++
	}
	for end = start; end < len(text) && isTokenByte(text[end]); {
		end++
	}
	return start, end
}

// isTokenByte reports whether c occurs in a key: the bytes of base64, base64url, hexadecimal and dotted tokens, and the asterisk with which
// servers mask the middle of a key.
func isTokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '-' || c == '_' || c == '.' || c == '+' || c == '/' || c == '~' || c == '*'
}

func hasKeyPrefix(word string) bool {
	for _, p := range [...]string{
		"sk-", "sk_", "pk-", "pk_", "rk_", "xai-", "gsk_", "hf_", "r8_", "nvapi-", "pplx-", "fw_", "csk-",
		"AIza", "AKIA", "ASIA", "ya29.", "ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "eyJ",
	} {
		if strings.HasPrefix(word, p) {
			return true
		}
	}
	return false
}

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
func Scrub(text string, known ...Secret) string { return scrub(text, false, known...) }

func scrub(text string, prose bool, known ...Secret) string {
	for _, k := range known {
		if v := k.Reveal(); len(v) >= minKnown {
			text = strings.ReplaceAll(text, v, Redacted)
			for n := min(len(v)-1, len(text)); n >= minKnown; n-- {
				if strings.HasSuffix(text, v[:n]) {
					text = text[:len(text)-n] + Redacted
					break
				}
			}
		}
	}
	text = scrubNamed(text, prose)
	var b strings.Builder
	done := 0 // text[:done] is in b
	scheme := false
	for i := 0; i < len(text); {
		if !isTokenByte(text[i]) {
			i++
			continue
		}
		start := i
		for i < len(text) && isTokenByte(text[i]) {
			i++
		}
		word := text[start:i]
		scrubbed := start > 0 && strings.HasPrefix(text[start-1:], Redacted)
		if len(word) >= minToken && (scheme && !explains(word) || hasKeyPrefix(word)) && !scrubbed {
			b.WriteString(text[done:start])
			b.WriteString(Redacted)
			done = i
		}
		scheme = strings.EqualFold(word, "bearer") || strings.EqualFold(word, "basic")
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
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

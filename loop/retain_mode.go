package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/lazy"
	"github.com/lathe-run/lathe/secret"
)

// retainedSlice is how many characters of commentary are hashed, or kept as a snippet.
const retainedSlice = 160

// What a snippet does not show besides keys in a known form: the value of what is named as a secret, and addresses.
var (
	namedSecret = lazy.Regexp(`(?i)((?:secret|token|pass(?:word|wd|phrase)|pwd|api[_-]?key|(?:access|private)[_-]?key|credential|authorization|cookie)s?["']?\s*(?:[:=]|\bis\b)\s*(?:(?:bearer|basic)\s+)?)` +
		`(?:\[redacted\]|"[^"]*"?|'[^']*'?|[^\s,;]+)`)
	address = lazy.Regexp(`[\w.+-]+@[\w-]+(?:\.[\w-]+)+`)
)

// hashedForm matches a slice that is hashed already, so that hashing is idempotent.
var hashedForm = lazy.Regexp(`^\[commentary: \d+ characters, [0-9a-f]{16}\]$`)

// commentary returns the parts of a model's message with what is kept of its commentary.
func (o *Retention) commentary(parts []lathe.Part) []lathe.Part {
	isCommentary := func(p lathe.Part) bool { t, ok := p.(lathe.Text); return ok && t.Commentary }
	if o.Mode == RawEphemeral || !slices.ContainsFunc(parts, isCommentary) {
		return parts
	}
	out := make([]lathe.Part, 0, len(parts))
	for _, p := range parts {
		if !isCommentary(p) {
			out = append(out, p)
			continue
		}
		t := p.(lathe.Text)
		switch o.Mode {
		case HashedSlice:
			t.Text = hashedSlice(t.Text)
		case RedactedSnippets:
			t.Text = snippet(t.Text)
		default:
			continue
		}
		out = append(out, t)
	}
	return out
}

// snippet returns the beginning of s without secrets. They are replaced before s is cut, since half a secret is not known as one.
func snippet(s string) string {
	s = namedSecret().ReplaceAllString(s, "${1}"+secret.Redacted)
	s = secret.Scrub(address().ReplaceAllString(s, secret.Redacted))
	short := firstCharacters(s, retainedSlice)
	if at := strings.LastIndexByte(short, '['); at >= 0 && len(short) < len(s) && strings.HasPrefix(secret.Redacted, short[at:]) {
		short = short[:at] // half of what stands for a secret would count as one the next time
	}
	return short
}

func hashedSlice(s string) string {
	if hashedForm().MatchString(s) {
		return s
	}
	slice := firstCharacters(s, retainedSlice)
	sum := sha256.Sum256([]byte(slice))
	return fmt.Sprintf("[commentary: %d characters, %s]", strings.Count(slice, "")-1, hex.EncodeToString(sum[:8]))
}

// firstCharacters returns the first n characters of s.
func firstCharacters(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

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

// snippet returns the beginning of s without secrets. They are replaced before s is cut, since half a secret is not known as
// one, and again after it, since half a word may be taken for one. A snippet of a snippet is itself.
func snippet(s string) string {
	for range 4 { // two, but for words that a cut makes twice
		scrubbed := secret.ScrubProse(s)
		s = firstCharacters(scrubbed, retainedSlice)
		if len(s) == len(scrubbed) {
			break
		}
		if at := strings.LastIndexByte(s, '['); at >= 0 && strings.HasPrefix(secret.Redacted, s[at:]) {
			s = s[:at] // half of what stands for a secret would count as one the next time
		}
	}
	return s
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

package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/lazy"
)

// retainedSlice is how many characters of commentary are hashed, or kept as a snippet.
const retainedSlice = 160

// secretWords are what a snippet does not show.
var secretWords = lazy.Regexp(`(?i)(user|secret|api[_-]?key)`)

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
			t.Text = secretWords().ReplaceAllString(firstCharacters(t.Text, retainedSlice), "***")
		default:
			continue
		}
		out = append(out, t)
	}
	return out
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

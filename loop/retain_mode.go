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

// retainedSlice is the number of characters of commentary that are hashed or retained as a snippet.
const retainedSlice = 160

// hashedForm matches the result of hashedSlice, so that hashing is idempotent.
var hashedForm = lazy.Regexp(`^\[commentary: \d+ characters, [0-9a-f]{16}\]$`)

// commentary returns the parts of a message with their commentary shortened according to the mode.
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
		var retained bool
		if t.Text, retained = o.shorten(t.Text); retained {
			out = append(out, t)
		}
	}
	return out
}

// shorten returns what the mode retains of a commentary; retained is false if that is nothing.
func (o *Retention) shorten(s string) (short string, retained bool) {
	switch o.Mode {
	case HashedSlice:
		return hashedSlice(s), true
	case RedactedSnippets:
		return snippet(s), true
	}
	return "", false
}

// snippet returns the first retainedSlice characters of s without secrets. Secrets are replaced before s is cut, because a part of a secret
// is not recognised, and again after it, because a cut word may look like one. snippet is idempotent.
func snippet(s string) string {
	for range 4 { // two rounds are usually enough; a cut may create another match
		scrubbed := secret.ScrubProse(s)
		s = firstCharacters(scrubbed, retainedSlice)
		if len(s) == len(scrubbed) {
			break
		}
		if at := strings.LastIndexByte(s, '['); at >= 0 && strings.HasPrefix(secret.Redacted, s[at:]) {
			s = s[:at] // a cut placeholder would look like a secret in the next round
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
		n--
		if n < 0 {
			return s[:i]
		}
	}
	return s
}
